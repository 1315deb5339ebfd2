"""The host's end of the door: does in the workspace's fork what a suite asks for, and nothing else.

A suite that runs apart has no way to the program under test but by requests through a pair of pipes. Each is checked
here, done by the environment's own means, and answered with data of bounded size. Neither end ever interprets what a
program printed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, TypeGuard

from pytest_evocode.environments import (
    Command,
    Environment,
    Program,
    User,
    require_readable,
)
from pytest_evocode.environments.programs import Stream
from pytest_evocode.errors import EnvironmentFault, RefusedRequest, UnreadableFile
from pytest_evocode.verifier.in_container.protocol import (
    BODY_LIMIT,
    VERSION,
    Frame,
    FrameError,
    FrameReader,
    Plan,
    encode,
)

logger = logging.getLogger(__name__)

_REQUESTS = 64  # handled at once; what waits longer than a few seconds asks again
_PROGRAMS = 256  # programs and connections that a suite may have open at once
_LONGEST_WAIT = 30.0  # seconds that one request may wait for a program; a run has its own timeout
_PIECE = 2**16  # bytes of a connection that are passed on at once
_NAME_LIMIT = 4096  # characters of a path
_SHELL = ("sh", "-c", 'if command -v bash >/dev/null; then exec bash -c "$0"; else exec sh -c "$0"; fi')
KEPT = 2**20
"""Bytes of each stream that are kept: the last ones."""


class OpenProgram:
    """A program that a suite has started, and both of its streams, for which the suite asks bit by bit.

    Places in a stream are counted from its beginning, whatever has been dropped.
    """

    def __init__(self, fork: Environment, command: Command) -> None:
        """Start it."""
        self._changed = threading.Condition()
        self._kept: dict[Stream, bytearray] = {1: bytearray(), 2: bytearray()}
        self._dropped: dict[Stream, int] = {1: 0, 2: 0}
        self.program = fork.open_program(command, self.take)

    def take(self, stream: Stream, data: bytes) -> None:
        """Add what was printed."""
        with self._changed:
            kept = self._kept[stream]
            kept += data
            # Trimmed at twice the limit, so that a long stream costs one copy per limit and not one per piece.
            if len(kept) > 2 * KEPT:
                self._drop(stream)
            self._changed.notify_all()

    def _drop(self, stream: Stream) -> None:
        excess = max(0, len(self._kept[stream]) - KEPT)
        del self._kept[stream][:excess]
        self._dropped[stream] += excess

    def read(self, stream: Stream, start: int, seen: int, timeout: float) -> tuple[int, bytes, bool]:
        """Return what a stream has from ``start`` on, once that goes beyond ``seen`` or will not any more.

        Args:
            stream: Which of both.
            start: A place in the stream.
            seen: A place in the stream; -1 not to wait at all.
            timeout: Seconds.

        Returns:
            Where the bytes begin, later than ``start`` where those were dropped; the bytes; whether no more will come.
        """
        deadline = time.monotonic() + timeout
        while True:
            over = self.program.wait(0) is not None  # Before the output is looked at, or the last could be missed.
            with self._changed:
                self._drop(stream)
                end = self._dropped[stream] + len(self._kept[stream])
                left = deadline - time.monotonic()
                if end > seen or over or left <= 0:
                    begin = min(max(start, self._dropped[stream]), end)
                    return begin, bytes(self._kept[stream][begin - self._dropped[stream] :]), over
                # Its end alone is told by nobody.
                self._changed.wait(min(left, 0.05))


@dataclass(slots=True)
class DoorRequest:
    """A request whose arguments are checked as they are taken."""

    head: Mapping[str, Any]
    body: bytes

    def text(self, name: str) -> str:
        """Return an argument that is a text without NUL."""
        value = self.head.get(name)
        if not _is_text(value):
            raise RefusedRequest("request", f"{name} has to be text without NUL")
        return value

    def number(self, name: str, most: float) -> float:
        """Return an argument that is a number from 0 to ``most``; more counts as ``most``."""
        value = self.head.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise RefusedRequest("request", f"{name} has to be a number, and not negative")
        return min(value, most)

    def path(self, name: str) -> str:
        """Return an argument that is an absolute path, in its shortest form."""
        value = self.text(name)
        if not value.startswith("/") or ".." in value.split("/") or len(value) > _NAME_LIMIT:
            raise RefusedRequest("request", f"{value[:200]!r} has to be a path without '..', of at most {_NAME_LIMIT}")
        return posixpath.normpath(value).replace("//", "/")

    def user(self, default: User | None) -> User | None:
        """Return the user that the request names, else the default."""
        value = self.head.get("user")
        if value is None:
            return default
        if _is_text(value) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise RefusedRequest("request", "user has to be a name or a number")

    def texts(self, name: str) -> dict[str, str]:
        """Return an argument that is a table of texts, by names that a variable may have."""
        value = self.head.get(name)
        if not isinstance(value, dict) or not all(map(_is_text, (*value, *value.values()))):
            raise RefusedRequest("request", f"{name} has to be a table of texts without NUL")
        if any(not key or "=" in key for key in value):
            raise RefusedRequest("request", f"{name} has a name that is empty or has a '='")
        return value

    def argv(self) -> tuple[str, ...]:
        """Return the command, a script as what runs it."""
        command = self.head.get("command")
        if _is_text(command):
            return (*_SHELL, command)
        if isinstance(command, list) and command and all(map(_is_text, command)):
            return tuple(command)
        raise RefusedRequest("request", "command has to be a script, or a list of texts without NUL")

    def files(self) -> dict[str, bytes]:
        """Return the files in the body by relative path, as ``sizes`` says."""
        sizes = self.head.get("sizes")
        if not isinstance(sizes, dict) or not all(_is_size(size) for size in sizes.values()):
            raise RefusedRequest("request", "sizes has to be a table of numbers")
        if sum(sizes.values()) != len(self.body):
            raise RefusedRequest("request", "the files are not as long as they are said to be")
        files, start = {}, 0
        for name, size in sizes.items():
            if not _is_text(name) or name.startswith("/") or {"", ".", ".."} & {*name.split("/")}:
                raise RefusedRequest("request", f"{name[:200]!r} has to be a path below the directory, without '..'")
            files[name] = self.body[start : start + size]
            start += size
        return files


def _is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is text that the kernel can be given: half of a surrogate pair, for one, has no bytes."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= BODY_LIMIT


@dataclass(slots=True)
class Door:
    """Serves one session of a suite."""

    fork: Environment
    user: User | None
    """Whom programs run as where a request names nobody."""
    env: Mapping[str, str]
    """Variables beside those of image and task."""
    plan: Plan
    report: bytes | None = None
    """What the session reports at its end."""
    running: tuple[str, str] = ("", "")
    """The case that has begun, and where it is."""
    calls: int = 0
    """How many requests were about the workspace."""
    timeouts: int = 0
    """How many calls of programs were ended at their own timeouts."""
    asked_before_cases: bool = False
    """Whether one of them came before the first case began, as from a module while it is imported."""
    fault: Exception | None = None
    """Why the workspace or the door broke, which ends the suite."""
    broken: threading.Event = field(default_factory=threading.Event)
    _send: Callable[[bytes], None] | None = None
    _opened: threading.Event = field(default_factory=threading.Event)
    _reader: FrameReader = field(default_factory=FrameReader)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_REQUESTS, "door"))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sending: threading.Lock = field(default_factory=threading.Lock)
    _programs: dict[int, OpenProgram] = field(default_factory=dict)
    _connections: dict[int, socket.socket] = field(default_factory=dict)
    _numbered: int = 0
    _under_way: int = 0
    _unanswered: int = 0

    def open_to(self, send: Callable[[bytes], None]) -> None:
        """Begin to answer; ``send`` writes to the session's stdin."""
        self._send = send
        self._opened.set()

    def take(self, data: bytes) -> None:
        """Take what the session has written to its stdout; requests are done in threads, side by side."""
        if self.broken.is_set():
            return
        try:
            for request in self._reader.feed(data):
                with self._lock:
                    self._unanswered += 1
                if self._unanswered > _OF_ITSELF and not self.plan["apart"]:
                    raise FrameError("it does not wait for answers")
                self._pool.submit(self._serve, request)
        except FrameError as error:
            self._break(FrameError(f"the suite's requests cannot be read: {error}"))
        except RuntimeError:  # The pool takes nothing more: the session has ended.
            return

    def close(self) -> None:
        """End requests that are under way, and all connections; the session must have ended."""
        with self._lock:
            under_way = self._under_way
        if under_way:  # A program may have hours left to its timeout, and nobody who waits for it.
            with contextlib.suppress(EnvironmentFault):
                self.fork.end_programs()
        with self._lock:
            connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _break(self, error: Exception) -> None:
        self.fault = self.fault or error
        self.broken.set()

    def _serve(self, frame: Frame) -> None:
        with self._lock:
            self._under_way += 1
        head, body = self._answer(DoorRequest(frame.head, frame.body))
        with self._lock:
            self._under_way -= 1
        try:
            data = encode(Frame(frame.number, head, body))
        except FrameError as error:
            data = encode(Frame(frame.number, {"error": "large", "message": str(error)}))
        self._opened.wait(_LONGEST_WAIT)
        # Not the lock of the tables: a session that is slow to read must not hold up the others' requests.
        with contextlib.suppress(OSError), self._sending:  # Nobody reads any more: the session has ended.
            assert self._send is not None
            self._send(data)
        with self._lock:
            self._unanswered -= 1

    def _answer(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        call = str(request.head.get("call"))
        try:
            answer: _Answer | None = getattr(self, f"_call_{call}", None)
            # Beside the program a test may import what the agent wrote, which is not to have what the engine can do.
            if answer is None or not (self.plan["apart"] or call in _ABOUT_SESSION):
                raise RefusedRequest("request", f"there is no call {call[:100]!r}")
            if call not in _NOT_COUNTED:
                self.calls += 1
                self.asked_before_cases |= not any(self.running)
            return answer(request)
        except RefusedRequest as error:
            return {"error": error.kind, "message": str(error)}, b""
        except (UnreadableFile, NotADirectoryError, TimeoutError, ConnectionRefusedError, BrokenPipeError) as error:
            return {"error": _KINDS[type(error)], "message": str(error) or type(error).__name__}, b""
        except OverflowError as error:
            return {"error": "large", "message": str(error)}, b""
        except OSError as error:  # What the agent made is in the way, or has left no space: no fault of the engine's.
            return {"error": "system", "message": str(error)}, b""
        except EnvironmentFault as error:
            self._break(error)
            return {"error": "door", "message": "the workspace's environment failed"}, b""
        except Exception as error:
            logger.exception("a request of a suite failed: %s", call)
            self._break(error)
            return {"error": "door", "message": "the door failed"}, b""

    # The session itself.

    def _call_hello(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        if request.head.get("version") != VERSION:
            raise RefusedRequest("door", f"the session has another version of the door than {VERSION}")
        return {"plan": self.plan}, b""

    def _call_case(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        self.running = (request.text("id"), request.text("where"))
        return {}, b""

    def _call_report(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        self.report = request.body
        return {}, b""

    # Programs.

    def _command(self, request: DoorRequest) -> Command:
        env = {**self.env, **request.texts("env")}
        return Command(request.argv(), user=request.user(self.user), env=env, cwd=request.path("cwd"))

    def _call_run(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        command = self._command(request)
        timeout = request.number("timeout", _DAY)
        limit = int(request.number("limit", BODY_LIMIT // 4))
        done = self.fork.run_program(
            command, input=request.body, timeout=timeout, limit=limit, alongside=self._open_programs()
        )
        if done.exit_code is None:
            with self._lock:
                self.timeouts += 1
        head = {
            "exit_code": done.exit_code,
            "seconds": done.seconds,
            "stdout": len(done.stdout),
            "truncated": any(done.left_out),
        }
        return head, done.stdout + done.stderr

    def _call_open(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        command = self._command(request)
        self._refuse_too_many()
        program = OpenProgram(self.fork, command)
        with self._lock:
            self._numbered += 1
            self._programs[self._numbered] = program
            return {"program": self._numbered}, b""

    def _program(self, request: DoorRequest) -> OpenProgram:
        with self._lock:
            found = self._programs.get(int(request.number("program", 2**32)))
        if found is None:
            raise RefusedRequest("request", "the program was ended with the test that it belongs to")
        return found

    def _open_programs(self) -> list[Program]:
        with self._lock:
            return [each.program for each in self._programs.values()]

    def _call_write(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        self._program(request).program.write(request.body, request.number("timeout", _DAY))
        return {}, b""

    def _call_close_input(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        self._program(request).program.close_input()
        return {}, b""

    def _call_signal(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        self._program(request).program.signal(int(request.number("number", 64)))
        return {}, b""

    def _call_wait(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        return {"exit_code": self._program(request).program.wait(request.number("timeout", _LONGEST_WAIT))}, b""

    def _call_read(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        stream: Stream = 2 if request.number("stream", 2) == 2 else 1
        seen = request.head.get("seen")
        start, contents, ended = self._program(request).read(
            stream,
            int(request.number("start", 2**62)),
            seen if isinstance(seen, int) else -1,
            request.number("timeout", _LONGEST_WAIT),
        )
        return {"start": start, "ended": ended}, contents

    def _call_end(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        numbers = request.head.get("programs")
        if not isinstance(numbers, list):
            raise RefusedRequest("request", "programs has to be a list")
        with self._lock:
            for number in numbers:
                if isinstance(number, int):
                    self._programs.pop(number, None)
        self.fork.end_programs(self._open_programs())
        return {}, b""

    # Ports.

    def _call_connect(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        port = int(request.number("port", 2**16))
        if not 0 < port < 2**16:
            raise RefusedRequest("request", f"there is no port {port}")
        self._refuse_too_many()
        connection = self.fork.connect(port, request.number("timeout", _DAY))
        with self._lock:
            self._numbered += 1
            self._connections[self._numbered] = connection
            return {"connection": self._numbered}, b""

    def _connection(self, request: DoorRequest) -> socket.socket:
        with self._lock:
            found = self._connections.get(int(request.number("connection", 2**32)))
        if found is None:
            raise RefusedRequest("closed", "the connection is closed")
        return found

    def _call_send(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        connection = self._connection(request)
        try:
            connection.settimeout(_LONGEST_WAIT)
            connection.sendall(request.body)
        except OSError as error:
            raise RefusedRequest("closed", f"the workspace takes nothing more: {error}") from None
        return {}, b""

    def _call_receive(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        connection = self._connection(request)
        try:
            connection.settimeout(request.number("timeout", _LONGEST_WAIT))
            data = connection.recv(_PIECE)
        except (TimeoutError, BlockingIOError):
            return {"ended": False}, b""
        except OSError:
            data = b""
        return {"ended": not data}, data

    def _call_shut(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        with contextlib.suppress(OSError):
            self._connection(request).shutdown(socket.SHUT_WR)
        return {}, b""

    def _call_close(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        connection = self._connection(request)
        with self._lock:
            self._connections.pop(int(request.number("connection", 2**32)), None)
        connection.close()
        return {}, b""

    def _refuse_too_many(self) -> None:
        if len(self._programs) + len(self._connections) >= _PROGRAMS:
            raise RefusedRequest("request", f"the suite has {_PROGRAMS} programs and connections open; close some")

    # Files.

    def _call_write_files(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        self.fork.write_files(request.path("directory"), request.files(), user=request.user(self.user))
        return {}, b""

    def _call_mkdir(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        self.fork.write_files(request.path("path"), {}, user=request.user(self.user))
        return {}, b""

    def _call_read_file(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        path = request.path("path")
        limit = int(request.number("limit", BODY_LIMIT))
        contents = require_readable(self.fork.read_files({path: limit})[path])
        if contents is None:
            raise RefusedRequest("missing", f"there is no file {path} in the workspace")
        return {}, contents

    def _call_status(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        status = self.fork.file_status(request.path("path"))
        return {"status": None if status is None else asdict(status)}, b""

    def _call_list(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        return {"names": self.fork.list_directory(request.path("path"))}, b""

    def _call_remove(self, request: DoorRequest) -> tuple[dict[str, Any], bytes]:
        path = request.path("path")
        if path == "/":
            raise RefusedRequest("request", "the root directory cannot be removed")
        try:
            self.fork.remove([path])
        except EnvironmentFault as error:
            # A program of the agent's may put it back, or take it away at the same time. Where the environment is at
            # fault, to look fails as well.
            if self.fork.file_status(path) is not None:
                raise RefusedRequest("system", str(error)) from None
        return {}, b""


_DAY = 86400.0  # seconds
_OF_ITSELF = 4  # requests of a session beside the program that wait for answers; it sends one at a time
_ABOUT_SESSION = ("hello", "case", "report")
"""All that a session beside the program asks for."""
_NOT_COUNTED = (*_ABOUT_SESSION, "end")
"""What is asked for of every suite, and at the end of every test that has the fixture."""
_Answer = Callable[[DoorRequest], tuple[dict[str, Any], bytes]]
_KINDS: dict[type[Exception], str] = {
    UnreadableFile: "request",
    NotADirectoryError: "directory",
    TimeoutError: "timeout",
    ConnectionRefusedError: "refused",
    BrokenPipeError: "closed",
}
