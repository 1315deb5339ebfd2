"""The full example tasks are as their card and their manifest say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_evocode.tasks import load_task

DATASET = Path(__file__).parents[1] / "example_tasks"
TASKS = sorted(file.parent for file in DATASET.glob("*/task.toml"))
NAMES = [task.name for task in TASKS]


def requirements(task: Path) -> set[str]:
    """Those of native suites, and those that cases of a suite with a runner of its own are declared with."""
    native = {requirement.id for requirement in load_task(task).requirements}
    texts = [path.read_text() for path in (task / "tests").rglob("*.py")]
    declared = [re.findall(r'@case\(\s*\d+,\s*"\w+",\s*"([\w-]+)"', text) for text in texts]
    return native.union(*declared)


def test_the_manifest_has_the_tasks_as_they_are() -> None:
    done = subprocess.run([sys.executable, DATASET / "manifest.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_card_has_a_row_for_each_task_with_its_rounds() -> None:
    rows = re.findall(r"^\| \[(\w+)\].*?\| (\d+):", (DATASET / "DATASET.md").read_text(), re.MULTILINE)
    assert rows == [(task.name, str(len(load_task(task).rounds))) for task in TASKS]


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_a_full_task_has_what_the_card_promises(task: Path) -> None:
    assert {file.stem for file in (task / "controls").glob("*.toml")} == {"only-round-1", "never-retires", "regresses"}
    assert len([*(task / "cheat").glob("*.sh")]) >= 3
    rounds = load_task(task).rounds
    assert 8 <= len(rounds) <= 15
    changes = [change for round_ in rounds for change in round_.change_types]
    assert changes.count("conflict") >= 2
    assert changes.count("correction") >= 2
    [canary] = set(re.findall(rf"evocode:{task.name}:[0-9a-f-]{{36}}", (task / "README.md").read_text()))
    assert canary in (task / "task.toml").read_text()


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_every_requirement_of_a_full_task_is_traced_to_a_sentence(task: Path) -> None:
    traced = set(re.findall(r"[\w-]+", (task / "TRACE.md").read_text()))
    wanted = requirements(task)
    assert wanted
    assert wanted - traced == set()
