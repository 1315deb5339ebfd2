"""The shell agent's tool ``bash``, which runs a script in the container with a deadline of its own."""

from __future__ import annotations

import contextlib
import logging
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.agents.shell.conversation import head_and_tail
from pytest_evocode.environments.command_environment import fits_argument
from pytest_evocode.llm.protocol import RequestedCall, Tool
from pytest_evocode.llm.waiting import Waiting
from pytest_evocode.trajectories.recorder import Action

logger = logging.getLogger(__name__)

BASH = Tool(
    name="bash",
    description="Run a bash script in the workspace. Returns what it printed, and its exit code.",
    parameters={
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The script."},
            "timeout": {"type": "number", "description": "Seconds until it is killed."},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)
# At the deadline only the script's own process group dies; background processes of earlier scripts live on. The last
# line has no `exec`, because bash may be a function: see environments/own_shell.py.
_WITH_DEADLINE = """
if command -v timeout >/dev/null && timeout -k 1 5 true 2>/dev/null; then
    exec timeout -k 2 "$1" bash -c "$2"
fi
bash -c "$2"
"""
_TIMED_OUT = (124, 137)
#: Models may ask for more seconds than clocks can count.
_LONGEST = 7 * 86_400.0  # seconds


class Deadline:
    """The end of a turn's time, if it has one; what the turn waits for does not count."""

    def __init__(self, timeout: float | None, waiting: Waiting | None = None) -> None:
        self._waiting = waiting = waiting or Waiting()
        self._at = None if timeout is None else time.monotonic() + timeout - waiting.seconds

    def set_back(self, seconds: float) -> None:
        """Make it so many seconds earlier."""
        if self._at is not None:
            self._at -= seconds

    @property
    def left(self) -> float | None:
        """Seconds left, at least 0; None for no limit."""
        return None if self._at is None else max(0.0, self._at + self._waiting.seconds - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self.left == 0.0


def coerced(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments with those of a type that can only mean one thing in the type that they have.

    Models write a number as text, the words of a command as a list, or null for an argument that they leave out.

    >>> coerced({"command": ["ls", "a b"], "timeout": "60"}), coerced({"command": "ls", "timeout": None})
    ({'command': "ls 'a b'", 'timeout': 60.0}, {'command': 'ls'})
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    command, timeout = given.get("command"), given.get("timeout")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        given["command"] = command[0] if len(command) == 1 else shlex.join(command)
    if isinstance(timeout, str):
        with contextlib.suppress(ValueError):
            given["timeout"] = float(timeout)
    return given


def complaint_about(call: RequestedCall, others: Sequence[Tool] = ()) -> str:
    """Return what is wrong with a call, for the model; empty where nothing is. ``others`` are its other tools."""
    if call.name != BASH.name:
        known = ", ".join(repr(tool.name) for tool in (BASH, *others))
        return f"There is no tool {call.name!r}; {'there are' if others else 'the only one is'} {known}."
    if call.arguments is None:
        return f"The arguments are no JSON object: {call.written[:200]}"
    arguments = coerced(call.arguments)
    command, timeout = arguments.get("command"), arguments.get("timeout", 1)
    if not isinstance(command, str) or not command.strip():
        return "The argument 'command' has to be a text, and not an empty one."
    if "\0" in command:
        return "The argument 'command' holds a null character, which no script can have."
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        return "The argument 'timeout' has to be a number of seconds above 0."
    return ""


def run_script(
    script: str, context: RoundContext, deadline: Deadline, *, seconds: float, limit: int, cwd: str | None = None
) -> tuple[str, Action]:
    """Run a script; return what the model sees of it, and how it ended.

    At the turn's own deadline all processes of the container are killed.

    Args:
        script: Bash script.
        context: The agent's turn.
        deadline: The turn's.
        seconds: Time for the script; more than a week counts as a week.
        limit: Characters of the output that the model sees.
        cwd: Directory that it runs in; None for the working directory.
    """
    seconds, left = min(seconds, _LONGEST), deadline.left
    limited = ["bash", "-c", _WITH_DEADLINE, "bash", f"{seconds:g}", script]
    result = context.environment.exec(
        # What is too long for an argument ends with everything else that runs.
        limited if fits_argument(script) else script,
        user=context.round.agent_user,
        cwd=cwd,
        # Beyond the margin the environment kills everything, in images without a `timeout` program.
        timeout=seconds + 10 if left is None else min(seconds + 10, left),
    )
    late = result.timed_out or (result.exit_code in _TIMED_OUT and result.seconds >= seconds)
    if late:
        logger.info("%s %s: a command was killed after %.1f s", context.task.name, context.round.name, result.seconds)
    else:
        logger.debug("a command ended with exit code %s after %.1f s", result.exit_code, result.seconds)
    shown = head_and_tail(result.output, limit).rstrip("\n")
    ending = f"[killed after {min(result.seconds, seconds):g} seconds]" if late else f"[exit code {result.exit_code}]"
    action = Action(exit_code=None if late else result.exit_code, seconds=result.seconds, timed_out=late)
    return (f"{shown}\n{ending}" if shown else ending), action
