"""How a failing case stands to the earlier rounds of its attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.metrics.failures import RoundFailure, failing_cases, failure_kinds, judge_cases, round_failure
from pytest_evocode.metrics.grid import Grid, suite_facts
from pytest_evocode.results.records import Case, CaseStatus, FailureKind, Outcome, RoundRecord, Verdict

MakeRecord = Callable[..., RoundRecord]


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ((), "new miss"),
        (({},), "new miss"),
        (({"y": "f"},), "new miss"),
        (({"x": "p"},), "regression"),
        (({"x": "f"},), "carried"),
        (({"x": "e"},), "carried"),
        (({"x": "s"},), "carried"),
        (({"x": "p"}, {"x": "f"}), "regression"),
        (({"x": "p"}, {"x": "f"}, {"x": "e"}), "regression"),
        (({"x": "f"}, {"x": "p"}), "regression"),
        (({"x": "p"}, {"y": "p"}), "regression"),
        (({"x": "f"}, {"y": "p"}), "carried"),
        (({"x": "p"}, {"x": "s"}), "regression"),
        (({"x": "f"}, {"x": "s"}), "carried"),
    ],
)
@pytest.mark.parametrize("status", ["failed", "error"])
def test_a_failing_case_is_a_regression_once_it_passed_and_carried_as_long_as_it_never_did(
    record: MakeRecord, before: tuple[dict[str, str], ...], kind: FailureKind, status: CaseStatus
) -> None:
    earlier = [record("t", index, "failed", of=9, cases=cases) for index, cases in enumerate(before, 1)]
    (judged,) = judge_cases([Case(id="x", status=status)], earlier)
    assert judged == Case(id="x", status=status, failure=kind)


@pytest.mark.parametrize("status", ["passed", "skipped"])
def test_a_case_that_did_not_fail_is_of_no_kind(record: MakeRecord, status: CaseStatus) -> None:
    case = Case(id="x", status=status)
    assert judge_cases([case], [record("t", 1, "failed", cases={"x": "f"})]) == (case,)


@pytest.mark.parametrize("outcome", ["error", "not reached"])
def test_a_case_that_an_unverified_round_required_first_is_carried_and_no_new_miss(
    record: MakeRecord, outcome: Outcome
) -> None:
    earlier = [record("t", 1, outcome, of=2)]
    judged = judge_cases(
        [Case(id="x", status="failed", origin="round-1"), Case(id="y", status="failed", origin="round-2")], earlier
    )
    assert [case.failure for case in judged] == ["carried", "new miss"]


def test_an_origin_that_is_no_round_says_nothing(record: MakeRecord) -> None:
    earlier = [record("t", 1, of=2, cases={"x": "p"})]
    cases = [Case(id="x", status="failed", origin="?"), Case(id="y", status="failed", origin="step one")]
    assert [case.failure for case in judge_cases(cases, earlier)] == ["regression", "new miss"]


def test_cases_without_an_id_are_not_taken_for_one_another(record: MakeRecord) -> None:
    earlier = [record("t", 1, of=3, cases={"": status}) for status in "ps"]
    (judged,) = judge_cases([Case(id="", status="failed")], earlier)
    assert judged.failure == "new miss"


def test_the_other_cases_and_their_order_are_left_as_they_are(record: MakeRecord) -> None:
    cases = [Case(id="b", status="failed", reason="r"), Case(id="a", status="passed"), Case(id="b", status="skipped")]
    judged = judge_cases(cases, [])
    assert [(case.id, case.status, case.failure) for case in judged] == [
        ("b", "failed", "new miss"),
        ("a", "passed", None),
        ("b", "skipped", None),
    ]
    assert judged[0].reason == "r"


def test_judging_again_changes_nothing(record: MakeRecord) -> None:
    earlier = [record("t", 1, of=2, cases={"x": "p"})]
    judged = judge_cases([Case(id="x", status="failed")], earlier)
    assert judge_cases(judged, earlier) == judged


# Attempts whose cases nobody has judged, and rounds.


def test_the_cases_of_foreign_records_are_judged_by_attempt_and_in_order(record: MakeRecord) -> None:
    records = [
        record("t", 3, "failed", of=3, cases={"x": "f", "y": "f"}),
        record("t", 2, "failed", of=3, cases={"x": "p", "y": "f"}),
        record("t", 1, "failed", of=3, cases={"x": "p"}, attempt=2),
        record("t", 1, "passed", of=3, cases={"x": "p"}),
        record("t", 2, "failed", of=3, cases={"y": "f", "x": "f"}, attempt=2),
    ]
    assert [(each.attempt, each.index, case.id, kind) for each, case, kind in failing_cases(records)] == [
        (1, 2, "y", "new miss"),
        (1, 3, "x", "regression"),
        (1, 3, "y", "carried"),
        (2, 2, "y", "new miss"),
        (2, 2, "x", "regression"),
    ]


def test_cases_that_were_judged_stay_as_they_are(record: MakeRecord) -> None:
    stale = Verdict(reward=0, rewards={}, cases=(Case(id="x", status="failed", failure="stale"),))
    records = [record("t", 1, "failed", of=2), record("t", 2, "failed", of=2, verdict=stale)]
    assert [kind for _, _, kind in failing_cases(records)] == ["stale"]


@pytest.mark.parametrize(
    ("outcome", "values", "kind"),
    [
        ("passed", {"cases": "p"}, None),
        ("passed", {"cases": ""}, None),
        ("not reached", {}, None),
        ("failed", {"cases": "pf"}, "cases"),
        ("failed", {"cases": "pe"}, "cases"),
        ("failed", {"cases": "ps"}, "cases"),
        ("failed", {"cases": ""}, "build"),
        ("failed", {"cases": "ss"}, "build"),
        ("failed", {"cases": "pp"}, "other"),
        ("failed", {"cases": "pf", "timed_out": "agent"}, "timeout"),
        ("failed", {"cases": "", "timed_out": "verifier"}, "timeout"),
        ("error", {"fault": "agent"}, "agent error"),
        ("error", {"fault": "infrastructure"}, "infrastructure"),
        ("error", {"fault": "infrastructure", "timed_out": "agent"}, "infrastructure"),
        ("error", {}, "infrastructure"),
        ("error", {"timed_out": "agent"}, "timeout"),
    ],
)
def test_every_round_that_did_not_pass_is_of_one_kind(
    record: MakeRecord, outcome: Outcome, values: dict[str, str], kind: RoundFailure | None
) -> None:
    assert round_failure(record("t", 1, outcome, **values)) == kind


def silent_rounds(record: MakeRecord, **values: Any) -> list[RoundRecord]:
    """A failed and a passed round without cases."""
    return [record("t", 1, "failed", of=2, cases="", **values), record("t", 2, of=2, cases="", **values)]


def test_a_suite_that_never_reports_cases_does_not_tell_of_a_build(record: MakeRecord) -> None:
    found = failure_kinds([*silent_rounds(record), *silent_rounds(record, attempt=2)])
    assert (found.rounds["reward"], found.rounds["build"]) == (2, 0)


@pytest.mark.parametrize(
    "other",
    [{"index": 2, "cases": "p"}, {"attempt": 2, "cases": "pf"}, {"agent": "oracle", "cases": "p"}],
    ids=["another round", "another attempt", "another agent"],
)
def test_no_case_is_a_failed_build_where_any_round_of_the_task_has_some(
    record: MakeRecord, other: dict[str, Any]
) -> None:
    values = {"index": 1, "of": 2, **other}
    found = failure_kinds([record("t", 1, "failed", of=2, cases=""), record("t", values.pop("index"), **values)])
    assert (found.rounds["reward"], found.rounds["build"]) == (0, 1)


def test_no_case_is_a_failed_build_where_the_task_names_files_of_cases(record: MakeRecord) -> None:
    lacking = Verdict(reward=0, rewards={"reward": 0}, lacks_reports=True)
    found = failure_kinds([record("t", 1, "failed", of=2, verdict=lacking), record("t", 2, of=2, cases="")])
    assert (found.rounds["reward"], found.rounds["build"]) == (0, 1)


def test_other_tasks_say_nothing_of_a_suite_without_cases(record: MakeRecord) -> None:
    found = failure_kinds([*silent_rounds(record), record("u", 1, cases="p"), record("u", 1, "failed", agent="b")])
    assert (found.rounds["reward"], found.rounds["build"]) == (1, 1)


def test_a_grid_knows_of_cases_in_attempts_of_others(record: MakeRecord) -> None:
    own, others = silent_rounds(record), [record("t", 1, cases="p", agent="b", of=2)]
    assert failure_kinds(Grid.of(own)).rounds["reward"] == 1
    assert failure_kinds(Grid.of(own, suites=suite_facts(others))).rounds["build"] == 1


def test_failures_are_counted_by_case_and_by_round(record: MakeRecord) -> None:
    records = [
        record("t", 1, "failed", of=4, cases={"x": "p", "y": "f"}),
        record("t", 2, "failed", of=4, cases={"x": "f", "y": "f", "z": "f"}),
        record("t", 3, "error", of=4, fault="agent"),
        record("t", 4, "not reached", of=4),
        record("t", 1, "failed", of=4, cases="", agent="b"),
    ]
    found = failure_kinds(records)
    assert found.cases == {"new miss": 2, "regression": 1, "carried": 1, "stale": 0}
    assert found.rounds == {
        "cases": 2,
        "reward": 0,
        "build": 1,
        "timeout": 0,
        "agent error": 1,
        "infrastructure": 0,
        "other": 0,
    }
    assert found.not_reached == 1
