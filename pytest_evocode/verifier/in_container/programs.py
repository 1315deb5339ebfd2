"""What a test sees of a program in the workspace: how it ended, or how to talk with one that runs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.verifier.in_container.door_client import DoorClient

_SLICE = 5.0  # seconds that one request waits; longer waits are several requests, so that the host keeps few threads
# For any Python from 3.6 on. What the product prints goes to stderr, so that stdout has the answer alone.
RUNNER = """
import os, sys
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
import ast, importlib, json, traceback
request = json.loads(sys.stdin.buffer.read().decode())
sys.path.insert(0, os.getcwd())
try:
    if "function" in request:
        module, _, name = request["function"].partition(":")
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        value = value(*request["args"], **request["kwargs"])
    else:
        tree = ast.parse(request["source"], "<workspace.python>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        names = {"__name__": "__main__", "args": request["args"]}
        exec(compile(tree, "<workspace.python>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<workspace.python>", "eval"), names)
    answer = json.dumps({"value": value})
except BaseException as error:
    answer = json.dumps(
        {"type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()[-20000:]}
    )
answers.write(answer)
answers.close()
"""


class ProgramText(str):
    """What a program printed, for failure reports to tell it from what a test expects."""


@dataclass(frozen=True)
class Completed:
    """How a program ended, and what it printed."""

    command: str
    """As a shell would show it."""
    exit_code: int | None
    """128 + n for signal n; None when it was killed at its timeout."""
    stdout_bytes: bytes
    stderr_bytes: bytes
    timed_out: bool
    seconds: float
    """Wall-clock time."""
    truncated: bool
    """Whether bytes in the middle of a stream were left out; a line there says how many."""
    stdout: str = field(init=False)
    """Decoded as UTF-8, with replacement characters."""
    stderr: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stdout", ProgramText(self.stdout_bytes.decode("utf-8", "replace")))
        object.__setattr__(self, "stderr", ProgramText(self.stderr_bytes.decode("utf-8", "replace")))

    def __repr__(self) -> str:
        return f"<{self.command}: {self.ending}, stdout {str(self.stdout)!r}, stderr {str(self.stderr)!r}>"

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        return f"killed at its timeout after {self.seconds:.1f} s" if self.timed_out else f"status {self.exit_code}"


@dataclass(frozen=True)
class WorkspaceFile:
    """What stands at a path of the workspace; a link is described itself."""

    kind: str
    """``file``, ``directory``, ``link`` or ``other``."""
    size: int
    """Bytes of a file."""
    mode: int
    """Permission bits."""
    modified: float
    """Seconds since the epoch."""
    target: str
    """Where a link points to; empty for anything else."""


@dataclass
class Session:
    """What all workspaces of a session share."""

    door: DoorClient
    workdir: str
    user: str | int
    round: str
    index: int
    timeout_multiplier: float
    remaining: Callable[[], float]
    """Seconds that the running case has left."""
    record: Callable[[str, str, str, Mapping[str, str]], None]
    """Takes command, input, ending and streams of a call, for the report of the case."""


class Process:
    """A program that runs in the workspace."""

    def __init__(self, session: Session, number: int, command: str) -> None:
        self._session = session
        self._number = number
        self._command = command
        self._read_to = 0

    def write(self, text: str | bytes) -> None:
        """Write to its stdin; raises BrokenPipeError once nobody reads there, and TimeoutError."""
        self._ask("write", as_bytes(text), timeout=self._session.remaining())

    def close_input(self) -> None:
        """Close its stdin."""
        self._ask("close_input")

    def read_until(self, text: str, timeout: float | None = None) -> str:
        """Return what it prints to stdout from where the last call ended, up to and with ``text``.

        Raises:
            TimeoutError: It did not print that within ``timeout`` seconds, by default what is left of the case's.
            EOFError: It ended before.
        """
        deadline = time.monotonic() + self._limit(timeout)
        wanted, seen = text.encode(), self._read_to
        while True:
            reply = self._ask("read", stream=1, start=self._read_to, seen=seen, timeout=self._slice(deadline))
            found = reply.body
            seen = reply.head["start"] + len(found)
            position = found.find(wanted)
            if position >= 0:
                end = position + len(wanted)
                self._read_to = reply.head["start"] + end
                return ProgramText(found[:end].decode("utf-8", "replace"))
            said = found[-500:].decode("utf-8", "replace")
            if reply.head["ended"]:
                raise EOFError(f"{self._command} ended without printing {text!r}; it printed: {said!r}")
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{self._command} did not print {text!r} in time; it printed: {said!r}")

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code, 128 + n for signal n; raises TimeoutError."""
        deadline = time.monotonic() + self._limit(timeout)
        while True:
            code: int | None = self._ask("wait", timeout=self._slice(deadline)).head["exit_code"]
            if code is not None:
                return code
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{self._command} has not ended")

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._ask("wait", timeout=0).head["exit_code"] is None

    def signal(self, number: int | str) -> None:
        """Send a signal to it and to what it has started in its group.

        ``number`` may be a name such as ``SIGTERM`` or ``TERM``; raises ValueError where no signal is called so.
        """
        if isinstance(number, str):
            name = f"SIG{number.removeprefix('SIG')}"
            if name not in signal.Signals.__members__:
                raise ValueError(f"no signal is called {number!r}; name one such as 'SIGTERM', or give its number")
            number = signal.Signals[name]
        self._ask("signal", number=int(number))

    @property
    def output(self) -> str:
        """All that it has printed to stdout, without the beginning where that is more than 1 MiB."""
        return self._printed(1)

    @property
    def errors(self) -> str:
        """All that it has printed to stderr, without the beginning where that is more than 1 MiB."""
        return self._printed(2)

    def _printed(self, stream: int) -> str:
        return ProgramText(
            self._ask("read", stream=stream, start=0, seen=-1, timeout=0).body.decode("utf-8", "replace")
        )

    def _limit(self, timeout: float | None) -> float:
        remaining = self._session.remaining()
        return remaining if timeout is None else min(remaining, timeout * self._session.timeout_multiplier)

    def _slice(self, deadline: float) -> float:
        return max(0.0, min(_SLICE, deadline - time.monotonic()))

    def _ask(self, call: str, body: bytes = b"", **arguments: Any) -> Any:
        return self._session.door.ask(call, body, program=self._number, **arguments)


def as_bytes(text: str | bytes) -> bytes:
    """Return text as UTF-8."""
    return text.encode() if isinstance(text, str) else bytes(text)


def as_shown(command: str | Sequence[str]) -> str:
    """Return a command as a shell would show it."""
    return command if isinstance(command, str) else shlex.join(os.fspath(argument) for argument in command)


class RemoteError(Exception):
    """An exception that Python raised in the workspace, as text: none of its objects comes out."""

    def __init__(self, type: str, message: str, traceback: str) -> None:
        super().__init__(f"{type}: {message}" if message else type)
        self.type = type
        """The name of the exception's class."""
        self.message = message
        self.traceback = traceback
        """As Python prints it, or the end of what the program printed where it left no answer."""


def remote_value(done: Completed) -> Any:
    """Return the value that :data:`RUNNER` has printed; raises RemoteError for an exception or anything else."""
    try:
        answer = json.loads(done.stdout_bytes)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict):
        if "value" in answer:
            return answer["value"]
        if answer.keys() == {"type", "message", "traceback"}:
            raise RemoteError(*(str(answer[name]) for name in ("type", "message", "traceback")))
    what = "its value is too long" if done.truncated else f"python3 left no answer ({done.ending})"
    raise RemoteError("NoAnswer", what, done.stderr[-2000:])
