"""Models without tool calls, by the option calls=text: whole sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.models import at, steps_of
from tests.model_scripts import Asked, Say, Step
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

SPEC, TEXT = "openai/small", "--evocode-agent-option=calls=text"


def block(script: str) -> Say:
    return Say(f"I do it.\n\n```bash\n{script}\n```")


def test_a_model_without_tool_calls_solves_a_task_and_its_failures_are_recorded(
    run_tasks: RunTasks, write_task: WriteTask
) -> None:
    write_task("a", 2)
    script: list[Step] = [
        Say("Let me think."),
        block("echo line-1 >> log.txt"),
        Say("It is there.\nDONE"),
        Say("```bash\nls\n```\n```bash\npwd\n```"),
        block("echo line-2 >> log.txt"),
        # A last reply that shows a script to the user ends the turn.
        Say("Look:\n\n```console\n$ cat log.txt\n```\n\nDONE"),
    ]
    with ModelServer(script) as server:
        session = run_tasks(*at(server, SPEC), TEXT, "tasks", agent=None)
    assert session.outcomes == {"passed": 2}
    assert len(server.asked) == len(script)
    assert all("tools" not in asked.body for asked in server.asked)
    assert "exactly one such block" in server.asked[0].system
    assert server.asked[1].said[1].startswith("[format: no block] Nothing was run.")
    assert "[exit code 0]" in server.asked[2].said[2]
    first, second = (str(steps_of(session, round_, "small")) for round_ in ("round-1", "round-2"))
    assert "'format_error': 'no block'" in first
    assert "'format_error': '2 blocks'" in second


def test_a_model_that_never_keeps_to_it_is_stopped(run_tasks: RunTasks, write_task: WriteTask) -> None:
    write_task("a", 1)

    def never(asked: Asked) -> Step:
        return Say("I would look at the files.")

    with ModelServer(never) as server:
        session = run_tasks(*at(server, SPEC), TEXT, "tasks", agent=None)
    assert session.outcomes == {"failed": 1}
    assert len(server.asked) == 3
    session.has("*format: 3 replies in a row had not one fenced block*")


def test_a_task_with_servers_of_tools_is_refused_by_their_names(run_tasks: RunTasks, write_task: WriteTask) -> None:
    more = (
        '[[environment.mcp_servers]]\nname = "notes"\ntransport = "streamable-http"\nurl = "http://localhost:1/mcp"\n'
    )
    write_task("a", 1, toml=more)
    with ModelServer([]) as server:
        session = run_tasks(*at(server, SPEC), TEXT, "tasks", agent=None)
    session.has("*calls=text has no way to call tools of MCP servers, and there are notes; set calls=tools*")
