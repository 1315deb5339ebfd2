"""Recognises the tool calls of a trajectory that run a shell command, for the tools of all known agents."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

from pytest_evocode.trajectories.atif import ToolCall

_MILLISECONDS = 0.001
# Editing tools have an argument `command`, too, and beside it one of these.
_FILE_ARGUMENTS = ("path", "file_path", "filePath", "file", "filename", "old_str", "old_string", "new_str", "file_text")
# The last one is typed into a terminal.
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "CommandLine", "keystrokes")
_CWD_ARGUMENTS = ("workdir", "working_directory", "cwd", "directory", "dir_path")
_EDITOR = re.compile(r"edit|patch|write|replace|notebook", re.IGNORECASE)
#: Tools whose timeout is in milliseconds.
_IN_MILLISECONDS = ("Bash",)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """The command that a tool call runs."""

    script: str
    """Bash script."""
    cwd: str | None = None
    """Directory that it runs in; None for the working directory."""
    timeout: float | None = None
    """Seconds; None where the call gives none."""


def command_of(call: ToolCall) -> ShellCommand | None:
    """Return the command of a tool call; None where it runs none, or types into a running program.

    >>> command_of(ToolCall(tool_call_id="1", function_name="bash", arguments={"command": "ls", "timeout": 5}))
    ShellCommand(script='ls', cwd=None, timeout=5.0)
    """
    arguments = call.arguments
    if isinstance(arguments.get("action"), dict):  # OpenAI's local_shell.
        arguments = {**arguments, **arguments["action"]}
    script = _script(next((arguments[name] for name in _COMMAND_ARGUMENTS if name in arguments), None))
    if script is None or _EDITOR.search(call.function_name):
        return None
    if any(name in arguments for name in _FILE_ARGUMENTS) or str(arguments.get("is_input")).lower() == "true":
        return None
    cwd = next((arguments[name] for name in _CWD_ARGUMENTS if arguments.get(name)), None)
    return ShellCommand(script, cwd if isinstance(cwd, str) else None, _timeout(call.function_name, arguments))


def _script(written: Any) -> str | None:
    if isinstance(written, list) and all(isinstance(word, str) for word in written):
        written = shlex.join(written)
    return written if isinstance(written, str) and written.strip() and "\0" not in written else None


def _timeout(tool: str, arguments: dict[str, Any]) -> float | None:
    for name, unit in (("timeout_ms", _MILLISECONDS), ("timeout", 1.0), ("timeout_sec", 1.0)):
        value = arguments.get(name)
        if isinstance(value, int | float) and value > 0:
            in_milliseconds = name == "timeout" and tool in _IN_MILLISECONDS
            return float(value) * (_MILLISECONDS if in_milliseconds else unit)
    return None
