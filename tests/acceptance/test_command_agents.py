"""Commands of a project as agents: whole sessions, in which budgets and deadlines hold."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask

STEP = {
    "step_id": 1,
    "source": "agent",
    "message": "Done.",
    "metrics": {"prompt_tokens": 900, "completion_tokens": 100},
}
WRITTEN = json.dumps({"schema_version": "ATIF-v1.7", "agent": {"name": "mine", "version": "1"}, "steps": [STEP]})


def declare(pytester: pytest.Pytester, start: str) -> None:
    table = f'[tool.pytest-evocode.commands.mine]\nstart = """{start}"""\ntrajectory = "/tmp/turn.json"\n'
    (pytester.path / "pyproject.toml").write_text(table)


def test_once_a_budget_is_used_up_the_command_that_the_record_names_is_not_run_again(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2)
    start = f"echo line-${{EVOCODE_ROUND#round-}} >> log.txt; echo '{WRITTEN}' > /tmp/turn.json"
    declare(pytester, start)
    session = run_tasks("--evocode-budget=tokens=1000", "tasks", agent="cmd:mine")
    records = session.record(agent="mine").rounds
    assert [record.passed for record in records] == [True, False]
    assert [record.stopped for record in records] == ["", "budget: tokens 1,000 of 1,000 used"]
    usages = [record.usage for record in records]
    assert [usage and (usage.tokens, usage.cost_usd) for usage in usages] == [(1000, None), (0, 0)]
    command = {"start": start, "trajectory": "/tmp/turn.json"}
    assert session.record(agent="mine").made_by == {"spec": "cmd:mine", "command": command}


def test_a_command_that_is_killed_while_it_writes_its_trajectory_has_its_work_graded(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, step={1: "agent.timeout_sec = 1"})
    declare(pytester, "echo line-1 >> log.txt; echo '{' > /tmp/turn.json; sleep 60")
    session = run_tasks("tasks", agent="cmd:mine")
    (record,) = session.record(agent="mine").rounds
    assert record.passed
    assert record.timed_out == "agent"


def test_a_command_that_removes_its_working_directory_has_failed_the_round_and_those_after_it(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3)
    declare(pytester, 'echo line-1 >> log.txt"""\ncontinue = """cd / && rm -rf /app')
    session = run_tasks("tasks", agent="cmd:mine")
    assert session.outcomes == {"passed": 1, "failed": 2}
    assert "w/o faults" not in session.text
