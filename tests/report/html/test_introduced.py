"""Who broke it: the round in which a case began to fail and the step whose edit it came with, and how that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.report.html.introduced import Introductions, RoundEdits
from pytest_evocode.results.records import Case, FailureKind, RoundRecord, Verdict
from tests.report.html.recordings import (
    Played,
    change,
    failing,
    passing,
    recorded,
    shown,
    step,
    trajectory,
    write_attempt,
)

LEDGER = change("ledger/report.py", "a = 1\n", "a = 2\n")
OTHER = change("ledger/other.py", "b = 1\n", "b = 2\n")
LATER = change("ledger/report.py", "a = 2\n", "a = 3\n")


def introduced(directory: Path, index: int) -> dict[str, Any]:
    """Who introduced the failure of the only failing case of a round."""
    (found,) = [case["introduced"] for case in shown(directory).round(index)["cases"] if case["status"] != "passed"]
    assert found is not None
    return dict(found)


def test_the_last_edit_of_a_file_that_the_failure_names(tmp_path: Path) -> None:
    edits = trajectory(step(2, LEDGER), step(3, LATER), step(4, OTHER))
    case = failing("x", reason="Traceback\n  File '/app/ledger/report.py', line 3, in f\nKeyError")
    found = introduced(write_attempt(tmp_path, Played([case], edits)), 1)
    assert (found["round"], found["step"]) == (1, 3)
    assert found["why"] == (
        "It is first checked in this round; the last edit of ledger/report.py, which the failure names."
    )


@pytest.mark.parametrize("text", ["xledger/report.py", "ledger/report.pyc", "ledger.report", "old/ledger/report.py"])
def test_a_file_of_another_name_is_not_named(tmp_path: Path, text: str) -> None:
    edits = trajectory(step(2, LEDGER), step(3, OTHER))
    found = introduced(write_attempt(tmp_path, Played([failing("x", reason=text)], edits)), 1)
    assert found["step"] is None
    assert "2 steps edited files in it, none of which the failure names" in found["why"]


def test_the_only_edit_of_the_round(tmp_path: Path) -> None:
    edits = trajectory(step(2, command="ls"), step(3, LEDGER, OTHER))
    found = introduced(write_attempt(tmp_path, Played([failing("x", reason="wrong")], edits)), 1)
    assert (found["step"], "the only edit in this round" in found["why"]) == (3, True)


def test_the_only_edit_of_the_product(tmp_path: Path) -> None:
    tests = change("tests/test_report.py", None, "def test(): pass\n")
    edits = trajectory(step(2, LEDGER), step(3, tests))
    found = introduced(write_attempt(tmp_path, Played([failing("x")], edits)), 1)
    assert (found["step"], "neither test nor prose" in found["why"]) == (2, True)


def test_a_file_that_the_suites_output_names(tmp_path: Path) -> None:
    edits = trajectory(step(2, LEDGER), step(3, OTHER))
    played = Played([failing("x")], edits, output="ledger/report.py:3: KeyError\n")
    found = introduced(write_attempt(tmp_path, played), 1)
    assert (found["step"], "which the suite's output names" in found["why"]) == (2, True)


def test_what_a_test_run_writes_is_no_edit(tmp_path: Path) -> None:
    written = change("report.txt", None, "x\n")
    edits = trajectory(step(2, LEDGER), step(3, written, command="python -m pytest"))
    found = introduced(write_attempt(tmp_path, Played([failing("x")], edits)), 1)
    assert found["step"] == 2


def test_a_failure_stays_that_of_the_round_in_which_it_began(tmp_path: Path) -> None:
    directory = write_attempt(
        tmp_path,
        Played([passing("x")], trajectory(step(2, OTHER))),
        Played([failing("x", failure="regression")], trajectory(step(2, LEDGER))),
        Played([failing("x", failure="carried")], trajectory(step(5, LATER))),
    )
    second, third = introduced(directory, 2), introduced(directory, 3)
    assert second == third
    assert (third["round"], third["step"]) == (2, 2)
    assert third["why"].startswith("It passed until this round")


def test_a_case_that_was_repaired_and_broken_again_began_anew(tmp_path: Path) -> None:
    directory = write_attempt(
        tmp_path,
        Played([failing("x")], trajectory(step(2, LEDGER))),
        Played([passing("x")], trajectory(step(2, LEDGER))),
        Played([failing("x", failure="regression")], trajectory(step(9, LATER))),
    )
    found = introduced(directory, 3)
    assert (found["round"], found["step"]) == (3, 9)


def test_a_round_without_a_verdict_in_between_may_be_to_blame(tmp_path: Path) -> None:
    edits = trajectory(step(2, LEDGER))
    directory = write_attempt(
        tmp_path,
        Played([passing("x")], edits),
        Played(None, edits),
        Played([failing("x", failure="regression")], edits),
    )
    found = introduced(directory, 3)
    assert (found["round"], found["step"]) == (3, None)
    assert "round 2 had no verdict" in found["why"]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (None, "what the agent edited in it was not recorded"),
        (trajectory(step(2, command="ls")), "no edit was recorded in it"),
    ],
)
def test_without_an_edit_nobody_can_tell(tmp_path: Path, document: dict[str, Any] | None, why: str) -> None:
    found = introduced(write_attempt(tmp_path, Played([failing("x")], document)), 1)
    assert (found["step"], why in found["why"]) == (None, True)


def test_calls_tell_where_files_were_not_watched(tmp_path: Path) -> None:
    edit = step(2)
    edit["tool_calls"][0] |= {
        "function_name": "Edit",
        "arguments": {"file_path": "/app/ledger/report.py", "old_string": "a", "new_string": "b"},
    }
    edit["extra"] = None
    case = failing("x", reason="ledger/report.py:1: in f")
    found = introduced(write_attempt(tmp_path, Played([case], trajectory(edit, watched=False))), 1)
    assert found["step"] == 2
    assert "as its calls say, the last edit of /app/ledger/report.py" in found["why"]


def test_what_a_fork_inherited_is_its_own_failure_only_once_it_has_passed() -> None:
    edits = RoundEdits(recorded=True)
    introductions = Introductions()
    found = []
    kinds: list[tuple[int, FailureKind | None]] = [(3, "carried"), (4, "carried"), (5, None), (6, "regression")]
    for index, failure in kinds:
        case = Case(id="old", status="failed" if failure else "passed", failure=failure)
        record = RoundRecord(
            task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=6, outcome="failed",
            verdict=Verdict(reward=0.0, rewards={"reward": 0.0}, cases=(case,)),
        )  # fmt: skip
        found.append({place: each["round"] for place, each in introductions.of_round(record, edits, "").items()})
    assert found == [{}, {}, {}, {0: 6}]


def test_in_a_recorded_attempt() -> None:
    case = next(
        each for each in shown(recorded("recipes/reckless")).round(2)["cases"] if each["id"].endswith("[1/0 cup sugar]")
    )
    assert case["failure"] == "carried"
    assert (case["introduced"]["round"], case["introduced"]["step"]) == (1, 5)
    assert "recipes/recipe.py" in case["introduced"]["why"]
