"""``terminal=true``: a model types into a program that goes on between its calls, and sees the screen."""

from __future__ import annotations

import shutil

import pytest

from tests.acceptance.models import at, steps_of
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Run, Say, Step, Use
from tests.model_server import ModelServer

GPT = "openai/gpt-5"


@pytest.mark.skipif(shutil.which("tmux") is None, reason="a sandbox has the programs of this machine")
def test_an_interactive_program_goes_on_between_calls(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    script: list[Step] = [
        Use("terminal", {"text": "read -p 'Which line? ' answer; echo $answer >> log.txt", "keys": "Enter"}),
        Use("terminal", {"text": "line-1", "wait": 0.5}),
        Use("terminal", {"keys": "C-m", "wait": "soon"}),
        Use("terminal", {"keys": "C-m", "wait": 0.5}),
        Run("cat log.txt"),
        Say("Done."),
    ]
    with ModelServer(script) as server:
        session = run_tasks(*at(server, GPT), "--evocode-agent-option=terminal=true", "tasks", agent=None)
    assert session.outcomes == {"passed": 1}
    assert "terminal" in server.asked[0].tools
    shown = list(server.asked[-1].results.values())
    assert "Which line?" in shown[0]
    assert "Which line? line-1" in shown[1]
    assert "'wait' has to be a number" in shown[2]
    assert shown[4].startswith("line-1\n")
    calls = [call for step in steps_of(session, "round-1", "gpt-5") for call in step.get("tool_calls") or ()]
    assert [call["function_name"] for call in calls] == ["terminal"] * 4 + ["bash"]


def test_it_is_no_tool_of_text_calls_and_of_nobody_who_did_not_ask(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    options = ["--evocode-agent-option=terminal=true", "--evocode-agent-option=calls=text"]
    with ModelServer([Use("terminal", {"text": "ls"}), Run("echo line-1 > log.txt"), Say("Done.")]) as server:
        refused = run_tasks(*at(server, GPT), *options, "tasks", agent=None)
        assert refused.exit_status == pytest.ExitCode.USAGE_ERROR
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
    assert session.outcomes == {"passed": 1}
    assert "There is no tool 'terminal'" in next(iter(server.asked[-1].results.values()))
