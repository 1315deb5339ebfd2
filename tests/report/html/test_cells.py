"""The rounds of an attempt as characters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.report.html.attempt import with_cases
from pytest_evocode.report.html.cells import cells_of
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import Case, FailureKind, RoundRecord, Verdict
from tests.report.html.recordings import Played, failing, passing, stored, write_attempt

RECORD: dict[str, Any] = {"task": "t", "agent": "a", "attempt": 1, "round": "round-1", "index": 1, "declared_rounds": 1}


def of_kinds(*kinds: FailureKind) -> list[Case]:
    """Failing cases of these kinds, and one that passed."""
    return [passing("x"), *(failing(kind, failure=kind) for kind in kinds)]


def played(tmp_path: Path, *rounds: Played, declared: int = 0) -> StoredAttempt:
    """An attempt whose rounds went so, with its cases."""
    return with_cases(stored(write_attempt(tmp_path, *rounds, declared=declared)))[0]


@pytest.mark.parametrize(
    ("kinds", "cell"),
    [
        (("stale", "carried", "new miss", "regression"), "r"),
        (("stale", "carried", "new miss"), "n"),
        (("stale", "carried"), "c"),
        (("stale",), "s"),
        ((), "p"),
    ],
)
def test_the_gravest_kind_of_its_cases_names_a_round(tmp_path: Path, kinds: tuple[FailureKind, ...], cell: str) -> None:
    assert cells_of(played(tmp_path, Played(of_kinds(*kinds)))) == cell


@pytest.mark.parametrize(
    ("fields", "cell"),
    [
        ({"outcome": "passed"}, "p"),
        ({"outcome": "not reached"}, "-"),
        ({"outcome": "undecided", "verdict": Verdict(reward=None, rewards={"tests": 1, "style": 0})}, "u"),
        ({"outcome": "failed"}, "b"),
        ({"outcome": "failed", "timed_out": "agent"}, "t"),
        ({"outcome": "failed", "timed_out": "verifier"}, "t"),
        ({"outcome": "error", "fault": "agent"}, "a"),
        ({"outcome": "error", "fault": "infrastructure"}, "i"),
        ({"outcome": "error"}, "i"),
        ({"outcome": "failed", "verdict": Verdict(reward=0, rewards={}, cases=(passing("x"),))}, "o"),
        ({"outcome": "failed", "verdict": Verdict(reward=0, rewards={}, void=True)}, "o"),
    ],
)
def test_rounds_without_failing_cases_are_named_by_what_happened(
    tmp_path: Path, fields: dict[str, Any], cell: str
) -> None:
    attempt = played(tmp_path, Played([passing("x")]))
    record = RoundRecord(**{**RECORD, **fields})
    assert cells_of(replace(attempt, record=attempt.record.model_copy(update={"rounds": (record,)}))) == cell


def test_rounds_without_a_record_were_not_selected_not_reached_or_are_under_way(tmp_path: Path) -> None:
    attempt = replace(played(tmp_path, Played([passing("x")]), declared=5), selected=(1, 3, 4, 5))
    assert cells_of(attempt) == "p.---"
    assert cells_of(attempt, under_way=True) == "p.?--"
    single = replace(attempt, record=attempt.record.model_copy(update={"mode": "single-round"}))
    assert cells_of(single, under_way=True) == "p.???"


def test_kinds_that_records_lack_come_from_the_rounds_before(tmp_path: Path) -> None:
    rounds = [[passing("a"), failing("b")], [failing("a"), failing("b")], [failing("c")]]
    bare = [Played([case.model_copy(update={"failure": None}) for case in cases]) for cases in rounds]
    assert cells_of(played(tmp_path, *bare)) == "nrn"


def test_without_cases_a_failed_round_is_of_no_kind(tmp_path: Path) -> None:
    attempt = stored(write_attempt(tmp_path, Played(of_kinds("regression"))))
    assert cells_of(attempt) == "o"
    assert cells_of(with_cases(attempt)[0]) == "r"
