"""What lint says of whole tasks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.lint import lint
from pytest_evocode.tasks import load_task
from tests.checks.conftest import SCRIPT, LintTask

EXAMPLES = Path(__file__).parents[2] / "example_tasks"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/task.toml")))
def test_the_example_tasks_are_without_fault(name: str) -> None:
    assert lint(load_task(EXAMPLES / name)) == []


def test_a_single_step_task_is_without_fault(lint_task: LintTask) -> None:
    files = {"instruction.md": "Write `/app/ledger.py`.", "tests/test.sh": SCRIPT, "solution/solve.sh": SCRIPT}
    files["solution/ledger.py"] = "print()\n"
    assert lint_task(files, steps=()) == []


def test_problems_come_in_the_order_of_their_places(lint_task: LintTask) -> None:
    problems = lint_task(
        {"steps/round-1/tests/test.sh": "true\r\ntrue\n", "environment/.#run.sh": "", "environment/run.sh": SCRIPT},
        plain=["environment/run.sh"],
    )
    places = [problem.partition(": ")[0] for problem in problems]
    assert places == ["environment/.#run.sh", "environment/run.sh:1"] + 2 * ["steps/round-1/tests/test.sh:1"]


def test_what_nothing_reads_of_the_configuration_is_a_mistake(lint_task: LintTask) -> None:
    problems = lint_task(toml='version = "2.0"\n[agent]\ntimeout_secs = 5\n')
    assert [problem.partition("; ")[0] for problem in problems] == [
        'task.toml:1: version: must be "1.0", "1.1", "1.2", "1.3" or "1.4", not "2.0"',
        "task.toml:3: agent.timeout_secs: unknown key",
    ]


def test_keys_below_metadata_that_are_known_ones_misspelt_are_a_warning(lint_task: LintTask) -> None:
    found = lint_task(
        toml="""[metadata]
activty = "Repair"
Difficulty = "hard"
interaction = "Explorative"
[metadata.evocde]
state = ["/var/lib"]
[[metadata.requirement_chain.steps]]
step = "round-2"
change_type = ["conflict"]
"""
    )
    advice = [(2, "activty", "activity"), (3, "Difficulty", "difficulty"), (5, "evocde", "evocode")]
    assert found == [
        f'task.toml:{line}: nothing reads the key "{key}"; if "{known}" is meant, write it so'
        for line, key, known in [*advice, (9, "change_type", "change_types")]
    ]
    assert all(isinstance(line, CheckWarning) for line in found)


@pytest.mark.parametrize(
    "line", ['subcategory = "x"', 'categories = ["x"]', 'difficulty_level = "x"', 'owner = "x"', 'activity = "x"', ""]
)
def test_other_keys_below_metadata_are_free(lint_task: LintTask, line: str) -> None:
    assert lint_task(toml=f"[metadata]\n{line}\n") == []
    assert (
        lint_task(toml=f'[metadata]\nactivity = "x"\nactivty = "x"\n{line if "activity" not in line else ""}\n') == []
    )


def test_what_is_no_file_is_passed_over(tmp_path: Path, lint_task: LintTask) -> None:
    assert lint_task() == []
    environment = tmp_path / "ledger" / "environment"
    os.mkfifo(environment / "queue.sh")
    (environment / "gone.sh").symlink_to("nowhere")
    (environment / "loop").symlink_to(".")
    assert lint(load_task(tmp_path / "ledger")) == []
