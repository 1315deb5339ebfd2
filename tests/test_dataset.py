"""The full example tasks are as their card and their manifest say."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pytest_evocode.tasks import load_task

DATASET = Path(__file__).parents[1] / "example_tasks"
TASKS = sorted(file.parent for file in DATASET.glob("*/task.toml"))
NAMES = [task.name for task in TASKS]
ACTIVITIES = ["Construction", "Spec evolution", "Review", "Migration"]
INTERACTIONS = ["Explorative", "Contractual", "Document-driven"]


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


def test_there_is_a_full_task_for_each_cell() -> None:
    metadata = [load_task(task).config.metadata.model_extra or {} for task in TASKS]
    cells = [(each["activity"], each["interaction"]) for each in metadata]
    assert sorted(cells) == sorted(itertools.product(ACTIVITIES, INTERACTIONS))
    assert sum(len(load_task(task).rounds) for task in TASKS) >= 110


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_most_mutants_of_a_full_task_are_noticed(task: Path) -> None:
    """The check ``control[mutants]`` plays them; those that survive say why."""
    control = tomllib.loads((task / "controls/mutants.toml").read_text())
    mutants = control["mutant"]
    assert len(mutants) >= 50
    assert {each["round"] for each in mutants} == {load_task(task).rounds[-1].name}
    assert sum("survives" in each for each in mutants) <= len(mutants) / 10


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_the_card_has_what_controls_score(task: Path) -> None:
    """As their checks demand: of the rounds that a control changes each fails, and all others pass."""
    rounds = len(load_task(task).rounds)
    found = {file.stem: tomllib.loads(file.read_text()) for file in (task / "controls").glob("*.toml")}
    left = {name: rounds - len({each["round"] for each in of.get("change", [])}) for name, of in found.items()}
    mutants = found["mutants"]["mutant"]
    noticed = sum("survives" not in each for each in mutants)
    scores = [f"{100 * passed / rounds:.1f}" for passed in (1, left["never-retires"], left["regresses"])]
    row = " | ".join([task.name, *scores, f"{noticed} of {len(mutants)}"])
    assert f"| {row} |\n" in (DATASET / "DATASET.md").read_text()


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_a_full_task_has_what_the_card_promises(task: Path) -> None:
    controls = {file.name for file in (task / "controls").iterdir()}
    assert controls == {"only-round-1.toml", "never-retires.toml", "regresses.toml", "mutants.toml"}
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
