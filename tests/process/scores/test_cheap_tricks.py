"""Cheap tricks gain nothing: each is played in a trajectory, and compared with the trajectory without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_evocode.process.attempts import RoundDeclaration, score_round
from pytest_evocode.process.scores.rigor_score import PILLARS, AttemptProcess, RoundProcess
from tests.process.trajectories import BUDGET, FAILED, PLAN, REPORT, TESTS, Recording, read, score

BOILERPLATE = """# Plan

1. Understand the requirements and analyze the existing code
2. Design the solution and write the implementation
3. Write tests for all edge cases and run the test suite
4. Verify that everything works, review and clean up
"""
VACUOUS = "".join(f"def test_{number}():\n    assert True\n\n\n" for number in range(50))

Play = Callable[[Recording, "Trick"], Recording]


class Trick:
    """No trick. Subclasses do something at the start, after every edit, or at the end."""

    def begin(self, recording: Recording) -> None:
        """Act before anything else."""

    def after_edit(self, recording: Recording) -> None:
        """Act after an edit."""

    def end(self, recording: Recording) -> None:
        """Act before the final message."""


class LonePlan(Trick):
    def begin(self, recording: Recording) -> None:
        recording.write("plan.md", BOILERPLATE, tokens=50)


class LonePlanInATool(Trick):
    def begin(self, recording: Recording) -> None:
        steps = [{"step": line, "status": "pending"} for line in BOILERPLATE.splitlines()[2:]]
        recording.call("update_plan", {"plan": steps}, tokens=50)


class VacuousTests(Trick):
    def end(self, recording: Recording) -> None:
        recording.write("tests/test_all.py", VACUOUS, tokens=50)
        recording.bash("pytest tests/test_all.py", "50 passed in 0.10s", tokens=50)


class GitStatus(Trick):
    def after_edit(self, recording: Recording) -> None:
        recording.bash("git status", "On branch main", tokens=1000)


class EchoImpossible(Trick):
    def end(self, recording: Recording) -> None:
        recording.bash("echo 'This is impossible because the budget and the ledger contradict each other.'", tokens=50)


class EchoIntoAFile(Trick):
    def end(self, recording: Recording) -> None:
        recording.write("NOTES.md", "This is impossible: budget, ledger and limits contradict each other.\n", tokens=50)


def reckless(recording: Recording, trick: Trick) -> Recording:
    """Play an attempt with one edit, and neither a plan nor a test."""
    trick.begin(recording)
    recording.bash("cat ledger.py other.py", "text", tokens=100)
    recording.bash("edit", changes={"ledger.py": BUDGET}, tokens=100)
    trick.after_edit(recording)
    trick.end(recording)
    return recording.say("The budget is there.", tokens=100)


def stumbling(recording: Recording, trick: Trick) -> Recording:
    """Two failed attempts and a good one, with tests."""
    trick.begin(recording)
    for number, text in enumerate((BUDGET, REPORT, REPORT.replace("< 0", "<= 0"))):
        recording.bash("edit", changes={"ledger.py": text}, tokens=100)
        trick.after_edit(recording)
        if number == 0:
            recording.write("tests/test_budget.py", TESTS, tokens=100)
            trick.after_edit(recording)
        recording.bash("pytest tests/test_budget.py", FAILED if number < 2 else "1 passed in 0.10s", tokens=100)
    trick.end(recording)
    return recording.say("The budget is there.", tokens=100)


def disciplined(recording: Recording, trick: Trick) -> Recording:
    """Play an attempt with a plan, an edit, tests and a commit."""
    trick.begin(recording)
    recording.write("notes.md", PLAN, tokens=100)
    recording.bash("edit", changes={"ledger.py": BUDGET}, tokens=100)
    trick.after_edit(recording)
    recording.write("tests/test_budget.py", TESTS, tokens=100)
    trick.after_edit(recording)
    recording.bash("pytest tests/test_budget.py", "1 passed in 0.10s", tokens=100)
    recording.bash("git commit -am 'Read the monthly limits of a budget'", "[main 1234567] Read", tokens=100)
    trick.end(recording)
    return recording.say("The budget is there.", tokens=100)


def idle(recording: Recording, trick: Trick) -> Recording:
    """Nothing at all."""
    trick.begin(recording)
    trick.end(recording)
    return recording


TRICKS = [LonePlan, LonePlanInATool, VacuousTests, GitStatus, EchoImpossible, EchoIntoAFile]


@pytest.mark.parametrize("abstain", [None, "impossible", "ambiguous"])
@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("play", [reckless, stumbling, disciplined])
def test_a_cheap_trick_raises_nothing(play: Play, trick: type[Trick], abstain: str | None) -> None:
    declared = RoundDeclaration(abstain=abstain)  # type: ignore[arg-type]
    honest = score(play(Recording(), Trick()), declared)
    tricked = score(play(Recording(), trick()), declared)
    assert value_of(tricked) <= value_of(honest)
    for name in PILLARS:
        without, having = honest.pillars[name].value, tricked.pillars[name].value
        if without is not None and having is not None:
            assert having <= without + 1e-9, name


@pytest.mark.parametrize("trick", TRICKS)
def test_a_cheap_trick_alone_scores_nothing(trick: type[Trick]) -> None:
    tricked = score(idle(Recording(), trick()))
    assert (tricked.score(), set(tricked.values.values())) == (None, {None})


def test_an_empty_trajectory_has_no_value_at_all() -> None:
    empty = score(Recording())
    assert (empty.score(), set(empty.values.values())) == (None, {None})
    assert score(Recording(), RoundDeclaration(abstain="impossible")).pillars["aq"].value == 0


def test_empty_rounds_raise_nothing() -> None:
    played = [reckless(Recording(), Trick()), Recording("Go on.", files={}, name="round-2")]
    rounds = [score_round(activity) for activity in read(*played)]
    whole = AttemptProcess(task="t", agent="a", attempt=1, rounds=tuple(rounds))
    alone = AttemptProcess(task="t", agent="a", attempt=1, rounds=tuple(rounds[:1]))
    assert whole.values == alone.values
    assert whole.score() == alone.score()


def value_of(process: RoundProcess) -> float:
    found = process.score()
    assert found is not None
    return found.value
