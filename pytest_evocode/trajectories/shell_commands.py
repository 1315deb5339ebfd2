"""Which calls of a trajectory run a command, whatever agent it was that called its tool so."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

from pytest_evocode.trajectories.atif import ToolCall

_MILLISECONDS = 0.001
# Editors with several commands have them in an argument of that name, and a file in another.
_FILE_ARGUMENTS = ("path", "file_path", "filePath", "file", "filename", "old_str", "old_string", "new_str", "file_text")
# The last is typed into a terminal.
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "CommandLine", "keystrokes")
_CWD_ARGUMENTS = ("workdir", "working_directory", "cwd", "directory", "dir_path")
_EDITOR = re.compile(r"edit|patch|write|replace|notebook", re.IGNORECASE)
#: Those that take their timeout in milliseconds.
_IN_MILLISECONDS = ("Bash",)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """What a call asks a shell to do."""

    script: str
    """For bash."""
    cwd: str | None = None
    """Where it is to be run; None for the working directory."""
    timeout: float | None = None
    """Seconds; None where the call does not say."""


def command_of(call: ToolCall) -> ShellCommand | None:
    """The command of a call; None for a call of any other tool, or one that types into a program that runs.

    >>> command_of(ToolCall(tool_call_id="1", function_name="bash", arguments={"command": "ls", "timeout": 5}))
    ShellCommand(script='ls', cwd=None, timeout=5.0)
    """
    arguments = call.arguments
    if isinstance(arguments.get("action"), dict):  # As OpenAI's local_shell has it.
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
