"""What Harbor's format has, combined: the oracle passes all rounds and nop none, in the sandbox and in Docker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance import combined_tasks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.combined_tasks import Combination
    from tests.acceptance.sessions import RunTasks

EVERY = combined_tasks.pairwise()
PLACES = ("sandbox", pytest.param("docker", marks=pytest.mark.docker))


def test_every_two_values_are_combined() -> None:
    pairs = {pair for each in EVERY for pair in combined_tasks._pairs(each)}
    sizes = [len(values) for values in combined_tasks.DIMENSIONS.values()]
    assert len(pairs) == sum(one * other for i, one in enumerate(sizes) for other in sizes[i + 1 :])


def play(root: Path, run_tasks: RunTasks, place: str, combinations: list[Combination]) -> None:
    """Play the tasks by oracle and nop, and look at what each scored."""
    for each in combinations:
        combined_tasks.write(root / "tasks", each)
    session = run_tasks("tasks", "--evocode-agent=nop", env=place)
    rounds = sum(2 if each["steps"] == "two" else 1 for each in combinations)
    assert session.outcomes == {"passed": rounds, "failed": rounds}
    for each in combinations:
        for agent, passes in (("oracle", True), ("nop", False)):
            record = session.record(combined_tasks.name_of(each), agent)
            assert {found.passed for found in record.rounds} == {passes}, each
            for found in record.rounds:
                assert found.verdict is not None
                assert found.verdict.rests_on == ("artifacts" if each["verifier"] == "separate" else "fork")
                assert ("style" in found.verdict.rewards) == (each["rewards"] == "several")
                assert len(found.verdict.cases) == (each["cases"] != "none")


@pytest.mark.parametrize("place", PLACES)
def test_some_combinations(pytester: pytest.Pytester, run_tasks: RunTasks, place: str) -> None:
    play(pytester.path, run_tasks, place, EVERY[-2:])


@pytest.mark.nightly
@pytest.mark.parametrize("place", PLACES)
def test_all_combinations(pytester: pytest.Pytester, run_tasks: RunTasks, place: str) -> None:
    play(pytester.path, run_tasks, place, EVERY)
