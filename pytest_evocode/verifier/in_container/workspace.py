"""The fixture ``workspace``: how a test of a native suite uses what the agent made, which is in another environment.

Every call goes through the door to the host, which does it in a fork of the round's snapshot. What comes back is data:
how a program ended, or what one that runs has printed so far.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import secrets
import shlex
import signal
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pytest_evocode.verifier.in_container.comparisons import line_diff
from pytest_evocode.verifier.in_container.door_client import DoorClient, connect, forward
from pytest_evocode.verifier.in_container.protocol import Plan
from pytest_evocode.verifier.in_container.selection import LONGEST, shortened

READ_LIMIT = 16 * 2**20
"""Bytes that :meth:`Workspace.read` reads unless a test says otherwise."""
OUTPUT_LIMIT = 2**20
"""Bytes that are kept of each stream of a program."""
_SHOWN_CALLS = 5
_STREAMS = ("stdout", "stderr")
_LONGEST_STREAM = LONGEST // 2 - 64
"""Characters that are shown of each stream where both are, so that no label is in the part that is left out."""
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
    plan: Plan
    remaining: Callable[[], float]
    """Seconds that the running case has left."""
    record: Callable[[str, str, str, Mapping[str, str]], None]
    """Takes command, input, ending and streams of a call, for the report of the case."""

    def limit(self, timeout: float | None) -> float:
        """Return the seconds that a call may take for which a test gives a timeout, or none."""
        remaining = self.remaining()
        return remaining if timeout is None else min(remaining, timeout * self.plan["timeout_multiplier"])


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
        deadline = time.monotonic() + self._session.limit(timeout)
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
        deadline = time.monotonic() + self._session.limit(timeout)
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


_RemoteError = RemoteError


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


@dataclass(frozen=True)
class Defaults:
    """What calls take where a test names nothing."""

    user: str | int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout: float | None = None


class Workspace:
    """What the agent made, as a test sees it: programs, files and ports of a fork of the round's snapshot.

    Programs run as the agent's user with the variables of image and task. Relative paths start at the workdir. Timeouts
    are in seconds, and are multiplied by the session's timeout multiplier; without one, a program has what is left of
    the case's time.
    """

    RemoteError = _RemoteError
    """What :meth:`python` and :meth:`call` raise, for ``pytest.raises(workspace.RemoteError)``."""

    def __init__(self, session: Session, defaults: Defaults) -> None:
        self._session = session
        self._defaults = defaults
        self._path: list[str] = []
        self._open: list[int] = []
        self._listeners: list[socket.socket] = []

    def __repr__(self) -> str:
        return f"<workspace of {self.round}>"

    # What is known.

    @property
    def path(self) -> str:
        """A fresh directory of this test in the workspace, made when it is first asked for."""
        if not self._path:
            self._ask("mkdir", path=self._name_path(), user=self._defaults.user)
        return self._path[0]

    @property
    def workdir(self) -> str:
        """The task's working directory."""
        return self._session.plan["workdir"]

    @property
    def user(self) -> str | int:
        """The user that programs run as: as task or test name it, else by the name that the workspace has for it."""
        if self._defaults.user is None and self._session.plan["user"] == "":
            said = self._ask("run", **self._program(["id", "-un"], None, None, None), timeout=10, limit=256)
            self._session.plan["user"] = said.body[: said.head["stdout"]].decode("utf-8", "replace").strip()
        return self._session.plan["user"] if self._defaults.user is None else self._defaults.user

    @property
    def round(self) -> str:
        """The name of the round that is verified."""
        return self._session.plan["rounds"][-1]

    @property
    def index(self) -> int:
        """The number of the round that is verified, from 1."""
        return len(self._session.plan["rounds"])

    def with_defaults(
        self,
        *,
        user: str | int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
    ) -> Workspace:
        """Return this workspace with other defaults; what is not named stays, and variables are added."""
        named = {"user": user, "cwd": cwd, "timeout": timeout, "env": {**self._defaults.env, **(env or {})}}
        changed: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        other = Workspace(self._session, replace(self._defaults, **changed))
        other._path, other._open, other._listeners = self._path, self._open, self._listeners
        return other

    # Programs.

    def run(
        self,
        command: str | Sequence[str],
        *,
        input: str | bytes = b"",
        files: Mapping[str, str | bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | int | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Run a program to its end, and end all that it has started. Never raises for what the program does.

        Args:
            command: An argv, or a script for ``bash -c`` (``sh`` where there is no bash).
            input: Its stdin.
            files: Written before, by path relative to ``cwd``, which then is the test's own directory by default.
            env: Variables beside those of image and task.
            cwd: The directory to start in; relative to the workdir.
            user: A name or number; the agent's user by default.
            timeout: Seconds until it is killed.
        """
        if files and cwd is None and self._defaults.cwd is None:
            cwd = self._name_path()  # Made with the files, in one request.
        if files:
            self._write({name: as_bytes(text) for name, text in files.items()}, self._absolute(cwd), user)
        reply = self._ask(
            "run",
            as_bytes(input),
            **self._program(command, env, cwd, user),
            timeout=self._timeout(timeout),
            limit=OUTPUT_LIMIT,
        )
        head, size = reply.head, reply.head["stdout"]
        done = Completed(
            command=as_shown(command),
            exit_code=head["exit_code"],
            stdout_bytes=reply.body[:size],
            stderr_bytes=reply.body[size:],
            timed_out=head["exit_code"] is None,
            seconds=head["seconds"],
            truncated=head["truncated"],
        )
        given = [*(files or {}).values(), input]
        shown = "".join(as_bytes(text).decode("utf-8", "replace") for text in given)
        self._session.record(done.command, shown, done.ending, {"stdout": done.stdout, "stderr": done.stderr})
        return done

    def popen(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | int | None = None,
    ) -> Process:
        """Start a program that runs on: a server, or one to talk with. It dies with the test or the fixture's scope."""
        program = self._ask("open", **self._program(command, env, cwd, user)).head["program"]
        self._open.append(program)
        self._session.record(as_shown(command), "", "started", {})
        return Process(self._session, program, as_shown(command))

    def python(self, source: str, *args: Any) -> Any:
        """Run Python source with the workspace's ``python3``, and return the value of its last expression.

        Args:
            source: Sees ``args`` as a list; imports find the workdir's modules.
            args: JSON values.

        Returns:
            A JSON value.

        Raises:
            RemoteError: The source raised, its value is no JSON, or Python could not run it.
        """
        return self._remote({"source": source, "args": list(args)})

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """Call ``module:function`` with the workspace's ``python3``; values are passed and returned as JSON.

        Raises RemoteError as :meth:`python` does.
        """
        return self._remote({"function": function, "args": list(args), "kwargs": kwargs})

    def _remote(self, request: dict[str, Any]) -> Any:
        return remote_value(self.run(["python3", "-c", RUNNER], input=json.dumps(request), cwd=self._defaults.cwd))

    # Ports.

    def connect(self, port: int, timeout: float | None = None) -> socket.socket:
        """Return a socket that is connected to a TCP port of the workspace's loopback.

        Raises ConnectionRefusedError and TimeoutError.
        """
        return connect(self._session.door, port, self._timeout(timeout))

    def wait_for_port(self, port: int, timeout: float = 10.0) -> None:
        """Wait until somebody listens at a TCP port of the workspace; raises TimeoutError."""
        deadline = time.monotonic() + timeout * self._session.plan["timeout_multiplier"]
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                self.connect(port, timeout).close()
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody listens at port {port} of the workspace after {timeout:g} s")
            time.sleep(0.05)

    def url(self, port: int, path: str = "/") -> str:
        """Return a URL for HTTP clients: a port here, from which connections go to ``port`` of the workspace."""
        listener = forward(self._session.door, port, self._timeout(None))
        self._listeners.append(listener)
        return f"http://127.0.0.1:{listener.getsockname()[1]}/{path.lstrip('/')}"

    # Files.

    def write(self, path: str, contents: str | bytes) -> None:
        """Write a file that belongs to the programs' user; missing directories are made."""
        whole = self._absolute(path)
        self._write({posixpath.basename(whole): as_bytes(contents)}, posixpath.dirname(whole), None)

    def copy_in(self, directory: str | os.PathLike[str], target: str | None = None) -> str:
        """Copy the files of a directory of the suite into ``target``, by default the test's own, and return that."""
        target = self.path if target is None else self._absolute(target)
        files = {}
        for place, _, names in os.walk(directory):
            for name in names:
                file = os.path.join(place, name)
                with open(file, "rb") as stream:
                    files[os.path.relpath(file, directory)] = stream.read()
        self._write(files, target, None)
        return target

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """Return the contents of a file.

        Raises:
            FileNotFoundError: There is none.
            ValueError: It is a link, which is not followed, no regular file, or larger than ``limit`` bytes.
        """
        contents: bytes = self._ask("read_file", path=self._absolute(path), limit=limit).body
        return contents

    def read_text(self, path: str, limit: int = READ_LIMIT) -> str:
        """Return the contents of a file, decoded as UTF-8 with replacement characters; raises as :meth:`read` does."""
        return ProgramText(self.read(path, limit).decode("utf-8", "replace"))

    def exists(self, path: str) -> bool:
        """Return whether anything stands at a path, a link that leads nowhere included."""
        return self._ask("status", path=self._absolute(path)).head["status"] is not None

    def stat(self, path: str) -> WorkspaceFile:
        """Return what stands at a path; raises FileNotFoundError."""
        status = self._ask("status", path=self._absolute(path)).head["status"]
        if status is None:
            raise FileNotFoundError(f"there is nothing at {path} of the workspace")
        return WorkspaceFile(**status)

    def list(self, path: str = ".") -> list[str]:
        """Return the names in a directory, sorted; raises NotADirectoryError, also for a link to one."""
        names: list[str] = self._ask("list", path=self._absolute(path)).head["names"]
        return names

    def mkdir(self, path: str) -> None:
        """Make a directory that belongs to the programs' user, and those above it."""
        self._ask("mkdir", path=self._absolute(path), user=self._defaults.user)

    def remove(self, path: str) -> None:
        """Remove a file or a directory with all that is in it; links are removed and not followed."""
        self._ask("remove", path=self._absolute(path))

    # The end.

    def close(self) -> None:
        """End the programs that were started by this workspace, and whatever runs without belonging to another.

        A workspace that has started none needs no end: nothing outlives a :meth:`run`.
        """
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.close()
        if self._open:
            self._ask("end", programs=list(self._open))
            self._open.clear()

    def _name_path(self) -> str:
        if not self._path:
            self._path.append(f"/tmp/tmp{secrets.token_hex(6)}")
        return self._path[0]

    def _write(self, files: Mapping[str, bytes], directory: str, user: str | int | None) -> None:
        sizes = {name: len(contents) for name, contents in files.items()}
        user = self._defaults.user if user is None else user
        self._ask("write_files", b"".join(files.values()), directory=directory, sizes=sizes, user=user)

    def _program(
        self,
        command: str | Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | None,
        user: str | int | None,
    ) -> dict[str, Any]:
        defaults = self._defaults
        cwd = defaults.cwd if cwd is None else cwd
        if not isinstance(command, str):
            command = [os.fspath(argument) for argument in command]
        return {
            "command": command,
            "env": {**defaults.env, **(env or {})},
            "cwd": self._absolute(cwd),
            "user": defaults.user if user is None else user,
        }

    def _absolute(self, path: str | os.PathLike[str] | None) -> str:
        return posixpath.join(self.workdir, os.fspath(path)) if path is not None else self.workdir

    def _timeout(self, timeout: float | None) -> float:
        timeout = self._defaults.timeout if timeout is None else timeout
        return self._session.limit(timeout)

    def _ask(self, call: str, body: bytes = b"", **arguments: Any) -> Any:
        return self._session.door.ask(call, body, **arguments)


_SESSION = pytest.StashKey["Session"]()


# Functions, and no methods of the plugin: pytest will refuse these as fixtures of a module or a session.


@pytest.fixture(name="workspace")
def workspace_of_test(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield what the agent made: programs, files and ports of a fork of the round's snapshot."""
    yield from _opened(request)


@pytest.fixture(scope="module")
def workspace_module(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a workspace whose programs live as long as the tests of a module run."""
    yield from _opened(request)


@pytest.fixture(scope="session")
def workspace_session(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a workspace whose programs live as long as the suite runs."""
    yield from _opened(request)


def _opened(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    markers = [marker.kwargs for marker in request.node.iter_markers("workspace")]
    workspace = Workspace(request.config.stash[_SESSION], Defaults())
    for given in reversed(markers):  # The closest marker comes first and wins.
        workspace = workspace.with_defaults(**given)
    try:
        yield workspace
    finally:
        workspace.close()


class WorkspaceReports:
    """A plugin of a suite that runs apart from the program under test, beside the fixtures of this module."""

    def __init__(self, door: DoorClient, plan: Plan, remaining: Callable[[], float]) -> None:
        self._session = Session(door, plan, remaining, self._record)
        self._calls: list[_Call] = []
        self._sides: tuple[str, str] | None = None
        """What was expected in the last comparison that failed, and what was there, in one form."""

    def _record(self, command: str, given: str, ending: str, streams: Mapping[str, str]) -> None:
        kept = {name: shortened(text) for name, text in streams.items()}
        self._calls.append(_Call(command, shortened(given), ending, kept))

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep the session for the fixtures."""
        config.stash[_SESSION] = self._session

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Forget the calls of the case before."""
        self._calls.clear()
        self._sides = None

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> list[str] | None:
        """Note what a test expected of a program, and explain two answers that are not equal by their lines.

        pytest's own explanation of any other comparison stays.
        """
        if not self._calls or op not in ("==", "in", "not in"):
            return None
        swapped = op != "==" or (_comes_from_workspace(right) and not _comes_from_workspace(left))
        actual, expected = (right, left) if swapped else (left, right)
        if op != "==" and isinstance(actual, list) and all(isinstance(each, str) for each in actual):
            actual = "\n".join(actual)  # Lines or words, in which one is looked for.
        one, other = _in_one_form(expected, actual, self._calls[-1])
        self._sides = shortened(one), shortened(other)
        if op == "==" and isinstance(actual, tuple) and isinstance(expected, tuple) and _comes_from_workspace(actual):
            return _explained(actual, expected, self._calls[-1])
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show the last calls of a failed case."""
        report = yield
        if report.failed and self._calls:
            shown = [f"$ {call.command}\n{call.outcome()}" for call in self._calls[-_SHOWN_CALLS:]]
            if len(self._calls) > _SHOWN_CALLS:
                shown.insert(0, f"[{len(self._calls) - _SHOWN_CALLS} calls before]")
            report.sections.append(("calls of workspace", "\n".join(shown)))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Describe the case by its last call, where the test has not done so itself."""
        if self._calls:
            last = self._calls[-1]
            expected, actual = self._sides or ("", last.outcome())
            described = {"scenario": last.command, "input": last.given, "actual": actual, "expected": expected}
            # In front, because of several properties of one name the last counts.
            item.user_properties[:0] = [(name, value) for name, value in described.items() if value]


@dataclass(frozen=True)
class _Call:
    """A call of a test, as it is reported."""

    command: str
    given: str
    ending: str
    streams: Mapping[str, str]
    """What the program printed, by the streams' names; empty for one that was only started."""

    def outcome(self, *, labelled: bool = False) -> str:
        """Return how the program ended and what it printed, with the names of the streams where it has errors."""
        if not self.streams:
            return self.ending
        if not labelled and not self.streams["stderr"]:
            return shortened(_answer(self.ending, self.streams, labelled=False))
        streams = {name: shortened(text, _LONGEST_STREAM) for name, text in self.streams.items()}
        return _answer(self.ending, streams, labelled=True)


def _answer(ending: str, streams: Mapping[str, str], *, labelled: bool) -> str:
    """Return an ending and what was printed, by streams; those that are empty are left out."""
    text = f"{ending}\n"
    for name in _STREAMS:
        if labelled and streams.get(name):
            text += f"{name}:\n" if text.endswith("\n") else f"\n{name}:\n"
        text += streams.get(name, "")
    return text


def _comes_from_workspace(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_comes_from_workspace, value))
    return isinstance(value, ProgramText | Completed)


def _explained(actual: tuple[object, ...], expected: tuple[object, ...], call: _Call) -> list[str]:
    """Return how two answers differ, by lines; pytest would show them as one line each."""
    order = _order_of_streams(actual, call)
    labelled = any(_streams(side, order).get("stderr") for side in (actual, expected))
    diff = line_diff(_readable(expected, order, labelled=labelled), _readable(actual, order, labelled=labelled))
    lines = [line for line in diff if line.startswith(("-", "+", "["))]
    return ["actual == expected", *(lines or [f"{actual!r} != {expected!r}"])]


def _in_one_form(expected: object, actual: object, call: _Call) -> tuple[str, str]:
    """Return what was expected and what was there, both with how the program ended or both without it.

    With it, all that the program printed is shown, its errors too. Where there are any, streams have their names.
    """
    if isinstance(expected, tuple) and _has_ending(expected):
        order = _order_of_streams(actual, call)
        labelled = bool(_streams(expected, order).get("stderr") or call.streams.get("stderr"))
        if labelled:
            expected = (expected[0], *(shortened(text, _LONGEST_STREAM) for text in expected[1:]))
        return _readable(expected, order, labelled=labelled), call.outcome(labelled=labelled)
    ended = call.ending == _ending(actual) or (actual is None and call.ending.startswith(_ending(None)))
    if ended and (expected is None or isinstance(expected, int)):
        return _ending(expected), call.outcome()
    return _readable(expected), _readable(actual)


def _order_of_streams(actual: object, call: _Call) -> Sequence[str]:
    """Return the streams in the order in which an answer has them: stdout first, unless it begins with the errors."""
    if isinstance(actual, tuple) and _has_ending(actual) and call.streams:
        first = shortened(actual[1]).strip()
        if first == call.streams["stderr"].strip() != call.streams["stdout"].strip():
            return _STREAMS[::-1]
    return _STREAMS


def _streams(answer: tuple[object, ...], order: Sequence[str]) -> Mapping[str, str]:
    """Return what an answer has of each stream; nothing where it is not made of an exit code and texts."""
    texts = [text for text in answer[1:] if isinstance(text, str)]
    named = _has_ending(answer) and len(texts) == len(answer) - 1 <= len(order)
    return dict(zip(order, texts, strict=False)) if named else {}


def _readable(value: object, order: Sequence[str] = _STREAMS, *, labelled: bool = False) -> str:
    """Return a value as it would be printed, an exit code with an output as a call is shown."""
    if isinstance(value, tuple) and (streams := _streams(value, order)):
        return _answer(_ending(value[0]), streams, labelled=labelled)
    if isinstance(value, tuple) and _has_ending(value):
        return "\n".join([_ending(value[0]), *map(str, value[1:])])
    return str(value) if isinstance(value, str) else repr(value)


def _has_ending(value: tuple[object, ...]) -> bool:
    """Return whether a tuple begins as an answer does: with an exit code, None for a program that was killed."""
    return len(value) > 1 and (value[0] is None or isinstance(value[0], int))


def _ending(exit_code: object) -> str:
    return "killed at its timeout" if exit_code is None else f"status {exit_code}"
