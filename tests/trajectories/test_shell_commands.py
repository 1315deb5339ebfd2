"""Which calls of the agents there are run a command."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.agents.replay import ShellCommand, command_of
from pytest_evocode.trajectories.atif import ToolCall


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool_call_id="1", function_name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("made", "command"),
    [
        (call("bash", command="ls"), ShellCommand("ls")),
        (call("bash", command="ls", timeout=7), ShellCommand("ls", timeout=7.0)),
        (call("Bash", command="ls", timeout=7000, description="look"), ShellCommand("ls", timeout=7.0)),
        (
            call("shell", command=["bash", "-lc", "ls -l"], timeout_ms=500),
            ShellCommand("bash -lc 'ls -l'", timeout=0.5),
        ),
        (call("exec_command", cmd="ls", workdir="/app/src"), ShellCommand("ls", cwd="/app/src")),
        (call("execute_bash", command="ls", is_input="false"), ShellCommand("ls")),
        (call("run_shell_command", command="ls"), ShellCommand("ls")),
        (call("run_shell_command", command="ls", directory="src"), ShellCommand("ls", cwd="src")),
        (call("bash_command", keystrokes="ls\n", duration=0.1), ShellCommand("ls\n")),
        (call("local_shell", action={"type": "exec", "command": ["ls", "-l"]}), ShellCommand("ls -l")),
    ],
)
def test_tools_that_run_commands(made: ToolCall, command: ShellCommand) -> None:
    assert command_of(made) == command


@pytest.mark.parametrize(
    "made",
    [
        call("str_replace_based_edit_tool", command="view", path="/app/a.py"),
        call("str_replace_editor", command="create", path="/app/a.py", file_text="x"),
        call("computer_tool", command="view", path="/app"),
        call("Edit", file_path="a.py", old_string="a", new_string="b"),
        call("apply_patch", command="*** Begin Patch"),
        call("apply_patch", input="*** Begin Patch"),
        call("execute_bash", command="C-c", is_input="true"),
        call("think", thought="hm"),
        call("bash"),
        call("bash", command=[]),
        call("bash", command=" "),
        call("bash", command="a\0b"),
        call("bash", command={"a": 1}),
    ],
)
def test_tools_that_do_something_else(made: ToolCall) -> None:
    assert command_of(made) is None
