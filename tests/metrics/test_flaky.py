"""Flaky rounds: verdicts that differ where nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_evocode.metrics.flaky import FlakyRound, flaky_rounds
from pytest_evocode.results.records import Repeats, RoundRecord

if TYPE_CHECKING:
    from tests.metrics.conftest import MakeRecord

ORACLE = {"oracle"}


def flaky(*records: RoundRecord, deterministic: set[str] = ORACLE) -> list[FlakyRound]:
    return flaky_rounds(records, deterministic)


def test_attempts_of_a_deterministic_agent_that_differ_name_the_round_and_its_cases(record: MakeRecord) -> None:
    passed = record(agent="oracle", attempt=1, cases={"x": "p", "y": "p"})
    failed = record(agent="oracle", attempt=2, outcome="failed", cases={"x": "f", "y": "p", "z": "f"})
    expected = FlakyRound("t", "oracle", "round-1", 1, None, passed=1, of=2, differing=("x", "z"))
    assert flaky(passed, failed) == flaky(failed, passed) == [expected]


def test_attempts_of_other_agents_may_differ(record: MakeRecord) -> None:
    assert flaky(record(attempt=1), record(attempt=2, outcome="failed"), deterministic={"oracle"}) == []


def test_attempts_that_agree_are_not_flaky(record: MakeRecord) -> None:
    same: dict[str, Any] = {"agent": "oracle", "cases": {"x": "p"}}
    assert flaky(record(attempt=1, **same), record(attempt=2, **same), record(index=2, **same)) == []


def test_a_round_without_a_verdict_says_nothing(record: MakeRecord) -> None:
    rounds = [record(agent="oracle", attempt=1), record(agent="oracle", attempt=2, outcome="error", fault="agent")]
    assert flaky(*rounds, record(agent="oracle", attempt=3, outcome="not reached")) == []


def test_numbers_of_cases_are_compared_where_the_cases_are_not_known(record: MakeRecord) -> None:
    rounds = [
        record(agent="oracle", attempt=number, cases=cases).without_cases()
        for number, cases in enumerate(("pp", "pp", "pps"), 1)
    ]
    assert flaky(*rounds[:2]) == []
    (found,) = flaky(*rounds)
    assert (found.passed, found.of, found.differing) == (3, 3, ())


def test_a_suite_whose_runs_differ_is_flaky_whatever_the_agent(record: MakeRecord) -> None:
    once = record(agent="model", attempt=2, index=3, of=3, outcome="failed")
    assert once.verdict is not None
    repeats = Repeats(times=3, passed=2, flaky=True, differing=("x",))
    repeated = once.model_copy(update={"verdict": once.verdict.model_copy(update={"repeats": repeats})})
    assert flaky(repeated) == [FlakyRound("t", "model", "round-3", 3, 2, passed=2, of=3, differing=("x",))]
    steady = once.verdict.model_copy(update={"repeats": Repeats(times=3, passed=0, flaky=False)})
    assert flaky(once.model_copy(update={"verdict": steady})) == []


def test_rounds_come_in_the_order_of_tasks_agents_and_indices(record: MakeRecord) -> None:
    rounds = [
        record(task, index, outcome, agent="oracle", attempt=attempt, of=12)
        for task in ("b", "a")
        for index in (10, 2)
        for attempt, outcome in ((1, "passed"), (2, "failed"))
    ]
    assert [(each.task, each.index) for each in flaky(*rounds)] == [("a", 2), ("a", 10), ("b", 2), ("b", 10)]
