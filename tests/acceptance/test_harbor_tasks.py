"""Tasks as Harbor's authors write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask


def single(root: Path, name: str, toml: str = "", **files: str) -> Path:
    """Write a task without steps, whose suite passes."""
    task = root / "tasks" / name
    for path, text in {
        "task.toml": toml,
        "instruction.md": "Write the program.",
        "environment/Dockerfile": "FROM python:3.11-slim-bookworm\nWORKDIR /app\n",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt",
        "solution/solve.sh": "true",
        **files,
    }.items():
        (task / path).parent.mkdir(parents=True, exist_ok=True)
        (task / path).write_text(text + "\n")
    return task


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_limits_that_are_not_set_are_told_once(
    pytester: pytest.Pytester, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    for name in "ab":
        single(pytester.path, name, "[environment]\nstorage_mb = 100\n")
    session = run_tasks(*workers, "tasks", "--evocode-attempts=2")
    assert session.outcomes == {"passed": 4}
    session.has("evocode: the sandbox environment sets no limit of storage, which 2 tasks ask for*")
    assert session.text.count("limit of storage") == 1
    session.lacks("*warning*")


def test_a_name_with_spaces_is_played_recorded_and_reported(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 1)
    (task / "steps/round-1").rename(task / "steps/First step (é)")
    toml = task / "task.toml"
    toml.write_text(toml.read_text().replace("round-1", "First step (é)"))
    session = run_tasks("-v", "tasks/a/task.toml::oracle::First step (é)", "--evocode-report", "--junitxml=junit.xml")
    assert session.outcomes == {"passed": 1}
    session.has("tasks/a/task.toml::oracle::First step (é) PASSED*")
    assert (session.attempt() / "steps/First step (é)/round.json").is_file()
    assert [round_.round for round_ in session.record().rounds] == ["First step (é)"]


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        ((), {"errors": 2}),
        (("--evocode-reward-key=tests",), {"passed": 2}),
        (("-o", "evocode_reward_key=style"), {"failed": 2}),
        (("-o", "evocode_reward_key=style", "--evocode-reward-key=tests"), {"passed": 2}),
    ],
)
def test_the_session_names_the_reward_that_decides(
    write_task: WriteTask, run_tasks: RunTasks, arguments: tuple[str, ...], outcomes: dict[str, int]
) -> None:
    rewards = """echo '{"tests": 1, "style": 0.5}' > /logs/verifier/reward.json"""
    write_task("a", 2, test={1: rewards, 2: rewards})
    session = run_tasks("tasks", *arguments)
    assert session.outcomes == outcomes
    facts = session.record().facts
    assert facts is not None
    assert facts.reward_key == (arguments[-1].rpartition("=")[2] if arguments else "")
