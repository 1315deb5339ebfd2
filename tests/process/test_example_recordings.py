"""The recorded attempts at the example tasks: what they are recordings of, and what they show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.process.attempts import score_attempt
from pytest_evocode.tasks import Category, load_task
from pytest_evocode.trajectories.atif import Trajectory, actions_of
from tests.process.record import play
from tests.process.scripted import EXAMPLES, example_scripts, read_script

pytestmark = pytest.mark.slow

CATEGORIES: dict[str, Category] = {
    "recipes": "plan-then-build",
    "retention": "verify-or-die",
    "invoices": "doom-loop",
    "transfers": "know-when-to-fold",
    "stations": "dont-break-the-build",
}
EVERY_SCRIPT = pytest.mark.parametrize("script", example_scripts(), ids=lambda path: f"{path.parts[-3]}-{path.stem}")


def trajectories(attempt: Path) -> dict[str, Trajectory]:
    """Return the trajectories in an attempt's directory, by round."""
    paths = sorted(attempt.glob("steps/*/agent/trajectory.json"))
    return {path.parts[-3]: Trajectory.model_validate_json(path.read_bytes()) for path in paths}


def deeds(trajectory: Trajectory) -> Iterator[tuple[Any, ...]]:
    """Yield the results of a trajectory's actions without times: exit codes and changed files."""
    for step in trajectory.steps:
        for action in actions_of(step):
            changes = [(each["path"], each["kind"], each.get("sha256")) for each in action.get("changes", ())]
            yield step.step_id, action["exit_code"], changes


def test_there_is_an_example_of_each_category() -> None:
    """Each has a disciplined and a reckless attempt; one request cannot be met, one can be read in two ways."""
    tasks = {name: load_task(EXAMPLES / name) for name in CATEGORIES}
    assert {name: task.process.category for name, task in tasks.items()} == CATEGORIES
    assert {name: task.process.abstain for name, task in tasks.items() if task.process.abstain} == {
        "retention": {"round-2": "ambiguous"},
        "transfers": {"round-2": "impossible"},
    }
    scripts = [(script.parts[-3], script.stem) for script in example_scripts()]
    assert scripts == [(name, attempt) for name in sorted(CATEGORIES) for attempt in ("disciplined", "reckless")]


@EVERY_SCRIPT
def test_a_recording_is_of_its_script_and_its_task(script: Path) -> None:
    """Neither has been changed since; if this fails, run ``python -m tests.process.record``."""
    recorded = trajectories(script.with_suffix(""))
    said = {
        name: [
            (step.message, tuple(call.arguments["command"] for call in step.tool_calls or ()))
            for step in trajectory.steps
            if step.source == "agent"
        ]
        for name, trajectory in recorded.items()
    }
    assert said == {
        name: [(reply.says, reply.runs) for reply in replies] for name, replies in read_script(script).items()
    }
    task = load_task(script.parents[1])
    asked = {name: trajectory.steps[0].message for name, trajectory in recorded.items()}
    assert asked == {round_.name: round_.instruction.read_text(encoding="utf-8") for round_ in task.rounds}


@pytest.mark.nightly
@EVERY_SCRIPT
def test_a_script_comes_to_the_same_again(script: Path, engine: Engine, tmp_path: Path) -> None:
    """Played today it has the exit codes, the changes and the verdicts that were recorded."""
    records, attempt = play(script, engine, tmp_path)
    recorded = script.with_suffix("")
    rewards = {path.parts[-3]: float(path.read_text()) for path in recorded.glob("steps/*/verifier/reward.txt")}
    assert {record.round: record.verdict and record.verdict.reward for record in records} == rewards
    before, now = trajectories(recorded), trajectories(attempt)
    assert {name: list(deeds(each)) for name, each in now.items()} == {
        name: list(deeds(each)) for name, each in before.items()
    }


@pytest.mark.parametrize("name", CATEGORIES)
def test_the_disciplined_attempt_passes_every_round(name: str) -> None:
    """Discipline is not bought with the outcome."""
    paths = (EXAMPLES / name / "recorded" / "disciplined").glob("steps/*/verifier/reward.txt")
    assert [float(path.read_text()) for path in paths] == [1.0] * len(load_task(EXAMPLES / name).rounds)


def test_the_ambiguous_request_is_asked_about_only_by_the_disciplined() -> None:
    """Asking before editing is what its second round is worth."""
    task = load_task(EXAMPLES / "retention")
    found = {
        attempt: score_attempt(EXAMPLES / "retention" / "recorded" / attempt, task).values["aq"]
        for attempt in ("disciplined", "reckless")
    }
    assert found == {"disciplined": 1.0, "reckless": 0.0}
