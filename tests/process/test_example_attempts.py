"""The recorded attempts at the example tasks: discipline shows in the pillar that a task is about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.process.attempts import find_attempts, score_attempt
from pytest_evocode.process.execution import Execution
from pytest_evocode.process.execution.states import ResultCache
from pytest_evocode.process.scores.rigor_score import OF_CATEGORY, AttemptProcess
from pytest_evocode.report.process import explain_lines
from pytest_evocode.tasks import Task, load_task

pytestmark = pytest.mark.slow

TASKS = Path(__file__).parents[2] / "example_tasks" / "process"
RECORDED = sorted(path.parent.name for path in TASKS.glob("*/recorded"))


def scored(task: Task, recorded: Path, execution: Execution | None = None) -> dict[str, AttemptProcess]:
    """Score the attempts, and return them by agent."""
    found, _ = find_attempts(recorded)
    return {each.agent: score_attempt(each.directory, task, executor=execution) for each in found}


def test_each_category_has_an_example() -> None:
    assert {load_task(TASKS / name).process.category for name in RECORDED} == set(OF_CATEGORY)


# What these are about takes execution, and has tests of its own below.
@pytest.mark.parametrize("name", [name for name in RECORDED if name not in ("stations", "retention")])
def test_the_disciplined_attempt_is_better_in_what_the_task_is_about(name: str) -> None:
    task = load_task(TASKS / name)
    assert task.process.category is not None
    pillar = OF_CATEGORY[task.process.category]
    attempts = scored(task, TASKS / name / "recorded")
    print(*explain_lines(attempts.values()), sep="\n")
    disciplined, reckless = attempts["disciplined"].values[pillar], attempts["reckless"].values[pillar]
    assert disciplined is not None
    assert reckless is not None
    assert disciplined > reckless


@pytest.mark.nightly
def test_a_disciplined_attempt_verifies_a_program_that_deletes(engine: Engine, tmp_path: Path) -> None:
    task = load_task(TASKS / "retention")
    values = {}
    for agent in ("disciplined", "reckless"):
        with Execution(task, engine, cache=ResultCache(tmp_path / "cache")) as execution:
            (attempt,) = scored(task, TASKS / "retention" / "recorded" / agent, execution).values()
        values[agent] = attempt.values["vc"]
    assert values["disciplined"] is not None
    assert values["reckless"] is not None
    assert values["disciplined"] > values["reckless"]


@pytest.mark.nightly
def test_a_disciplined_attempt_leaves_a_live_program_working_between_its_edits(engine: Engine, tmp_path: Path) -> None:
    task = load_task(TASKS / "stations")
    values = {}
    for agent in ("disciplined", "reckless"):
        # One round is enough, and takes as many environments as it has edits.
        round_ = Path(agent, "steps", "round-1")
        shutil.copytree(TASKS / "stations" / "recorded" / round_, tmp_path / round_)
        with Execution(task, engine, cache=ResultCache(tmp_path / "cache")) as execution:
            attempts = scored(task, tmp_path / agent, execution)
        print(*explain_lines(attempts.values()), sep="\n")
        (attempt,) = attempts.values()
        values[agent] = attempt.values["ati"]
    assert values["disciplined"] == 1
    assert values["reckless"] is not None
    assert values["reckless"] < 1
