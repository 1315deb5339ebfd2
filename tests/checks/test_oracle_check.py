"""The check ``oracle``: what it says of a suite that was run on what the reference solution left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.oracle_check import explain_failures, oracle
from pytest_evocode.checks.played_attempt import PlayedRound, SharedRun
from pytest_evocode.results.records import Case, CaseStatus, Verdict
from pytest_evocode.verifier import SuiteRun


class Round:
    """As much of a round as the check looks at."""

    name, verify_in, has_script = "round-2", "fork", True


def checked(reward: float, *statuses: CaseStatus, output: str = "", **verdict: Any) -> list[str]:
    cases = tuple(Case(id=f"c{number}", status=status) for number, status in enumerate(statuses))
    found = Verdict(reward=reward, rewards={"reward": reward}, cases=cases, **verdict)
    suite = SharedRun(lambda: SuiteRun(output, found, hang="test.sh waits"))
    nothing = cast(Any, None)
    attempt = SimpleNamespace(context=SimpleNamespace(task=SimpleNamespace(requirements=())))
    return oracle(cast(Any, attempt), [PlayedRound(cast(Any, Round), nothing, nothing, {}, {}, suite)])


def test_a_full_reward_with_failing_cases_is_refused() -> None:
    assert checked(1.0, "passed", "failed", "error") == [
        "round-2 passes against its own cases: the reward is 1, but 2 of 3 cases failed; "
        "have test.sh make its reward of its cases"
    ]


def test_no_reward_although_all_cases_passed_is_refused() -> None:
    flag = "the reward is 0, but none of 2 cases failed"
    assert checked(0.0, "passed", "passed", flags=(flag,)) == [f"round-2 does not pass: the reward is 0\n{flag}"]


def test_a_script_without_cases_that_fails_tells_why_in_its_own_words() -> None:
    (said,) = checked(0.0, output="compiling\ndiff: line 3: expected 4\n")
    assert said == (
        "round-2 does not pass: the reward is 0\nthe last lines of its output:\ncompiling\ndiff: line 3: expected 4"
    )


@pytest.mark.parametrize("statuses", [(), ("passed",), ("passed", "skipped")])
def test_a_reward_that_nothing_contradicts_is_fine(statuses: tuple[CaseStatus, ...]) -> None:
    assert checked(1.0, *statuses) == []


def test_other_flags_are_warnings() -> None:
    (found,) = checked(1.0, "passed", flags=("CASE_SUMMARY says total_cases=2, its CASE_RESULT lines give 1",))
    assert isinstance(found, CheckWarning)
    assert found == "round-2 passes, but CASE_SUMMARY says total_cases=2, its CASE_RESULT lines give 1"


def test_rounds_with_the_same_fault_of_more_cases_are_told_as_one() -> None:
    runs = [
        (SimpleNamespace(name=f"round-{number}"), SuiteRun("", None, f"conftest.py:3: no clock ({number} cases)"))
        for number in (2, 4)
    ]
    assert list(explain_failures(cast(Any, SimpleNamespace(requirements=())), cast(Any, runs)))[1] == [
        "round-4 does not pass for the same reason as round-2"
    ]


def test_a_suite_that_hangs_says_where() -> None:
    assert checked(0.0, timed_out=True) == [
        "round-2 does not pass: the suite did not end within its limit: test.sh waits"
    ]
