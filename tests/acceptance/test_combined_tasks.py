"""What Harbor's format has, combined: the oracle passes all rounds and nop none, in the sandbox and in Docker.

Services take Docker: the sandbox refuses them by the name of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance import combined_tasks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.combined_tasks import Combination
    from tests.acceptance.sessions import RunTasks

EVERY = combined_tasks.pairwise()
ALONE = [each for each in EVERY if not combined_tasks.has_services(each)]
WITH_SERVICES = [each for each in EVERY if combined_tasks.has_services(each)]
PLACES = ("sandbox", pytest.param("docker", marks=pytest.mark.docker))


def test_every_two_values_are_combined() -> None:
    pairs = {pair for each in EVERY for pair in combined_tasks._pairs(each)}
    sizes = [len(values) for values in combined_tasks.DIMENSIONS.values()]
    assert len(pairs) == sum(one * other for i, one in enumerate(sizes) for other in sizes[i + 1 :])


def rounds_of(combination: Combination) -> int:
    return 2 if combination["steps"] == "two" else 1


def play(root: Path, run_tasks: RunTasks, place: str, combinations: list[Combination]) -> None:
    """Play the tasks by oracle and nop, and look at what each scored."""
    for each in combinations:
        combined_tasks.write(root / "tasks", each)
    session = run_tasks("tasks", "--evocode-agent=nop", env=place)
    refused = [each for each in combinations if place == "sandbox" and combined_tasks.has_services(each)]
    played = [each for each in combinations if each not in refused]
    rounds = sum(map(rounds_of, played))
    expected = {"passed": rounds, "failed": rounds, "errors": 2 * len(refused)}
    expected["skipped"] = 2 * sum(map(rounds_of, refused)) - expected["errors"]
    assert session.outcomes == {word: number for word, number in expected.items() if number}
    for each in refused:
        session.has(f"*{combined_tasks.name_of(each)}/environment/docker-compose.yaml:1: this task needs Docker: the*")
    for each in played:
        for agent, passes in (("oracle", True), ("nop", False)):
            record = session.record(combined_tasks.name_of(each), agent)
            assert {found.passed for found in record.rounds} == {passes}, each
            for found in record.rounds:
                assert found.verdict is not None
                assert found.verdict.rests_on == "clean"
                assert ("style" in found.verdict.rewards) == (each["rewards"] == "several")
                assert len(found.verdict.cases) == (each["cases"] != "none")
            if each["extras"] == "collect" and combined_tasks.has_services(each):
                directory = session.attempt(combined_tasks.name_of(each), agent)
                dumps = sorted(directory.rglob("artifacts/**/dump"))
                lines = ["line 1\n", "line 1\nline 2\n"][: rounds_of(each)]
                assert [dump.read_text() for dump in dumps] == (lines if passes else [""] * len(lines))


def test_some_combinations(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    # Services take the longest, and their quick test in Docker is test_compose_tasks.py.
    play(pytester.path, run_tasks, "sandbox", ALONE[-1:] + WITH_SERVICES[-1:])


@pytest.mark.nightly
@pytest.mark.parametrize("place", PLACES)
def test_all_combinations(pytester: pytest.Pytester, run_tasks: RunTasks, place: str) -> None:
    play(pytester.path, run_tasks, place, EVERY)
