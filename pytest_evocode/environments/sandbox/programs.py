"""A program in a sandbox, as the session sees it: its streams, and the worker that waits for its end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import socket
import termios
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from pytest_evocode.environments.programs import Stream, TakeOutput
from pytest_evocode.environments.sandbox.launcher_client import parse
from pytest_evocode.errors import EnvironmentFault

_STARTING = 60.0  # seconds until a program's namespace is made, on a machine that is busy with a fork bomb
_CLOSING = 0.2  # seconds after which a blocked write sees that the input was closed or the program has ended
_MESSAGE = 2**16  # bytes
_PIPE = 2**20  # bytes; what a pipe can hold at most without privileges
KILLED = 137
"""The exit code that a shell gives a killed command."""
# What a program ended with whose worker died without a reply, as when others in a hostile sandbox kill all they can.
# Where the sandbox itself has ended, whoever takes the exit code finds that out.
_KILLED = {"exit_code": KILLED, "complaint": "", "left": True}


class SandboxProgram:
    """A :class:`~pytest_evocode.environments.programs.Program` and the socket of the worker that waits for it.

    Args:
        outputs: The ends of its pipes that are here, and what they are of; for a terminal there are none.
        stdin: The end of the pipe to its stdin, -1 for none.
        require_running: Raises EnvironmentFault where it has ended, with the exit code, because the sandbox has.
        new_notes: Returns lines about limits that were passed, for the output of a program that fails.
    """

    def __init__(
        self,
        outputs: Mapping[int, Stream],
        stdin: int,
        require_running: Callable[[int], None],
        new_notes: Callable[[], str],
    ) -> None:
        self.mark = 0
        """The number of the namespace that all its processes are in."""
        self._require_running = require_running
        self._new_notes = new_notes
        self._worker: socket.socket | None = None
        self._streams = dict(outputs)
        self._stdin = stdin
        self._fds = {*outputs, stdin} - {-1}
        self._closes = weakref.finalize(self, _close_all, self._fds)
        self._answer: dict[str, Any] | None = None
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._writing = threading.Lock()
        self._input_closed = stdin < 0
        self._poll = select.poll()
        for fd in self._fds:
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError):  # A user may have so many bytes in pipes at once.
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE)
        for fd in self._streams:
            self._poll.register(fd, select.POLLIN)

    def begun(self, worker: socket.socket) -> None:
        """Wait until the worker at the other end of a socket has made its namespace, and take the number of that."""
        self._worker = worker
        self._poll.register(worker, select.POLLIN)
        worker.settimeout(_STARTING)
        try:
            message, fds, _, _ = socket.recv_fds(worker, _MESSAGE, 1)
        except TimeoutError:
            raise EnvironmentFault("a program was not started in the sandbox in time") from None
        worker.settimeout(None)
        if not fds:
            self._answer = _parse(message)  # No process could be started.
            return
        self._fds.add(fds[0])  # As long as it is open no other namespace gets the number.
        self.mark = os.fstat(fds[0]).st_ino

    @property
    def exit_code(self) -> int:
        """That of the program once it has ended."""
        assert self._answer is not None
        return int(self._answer["exit_code"])

    @property
    def left_others(self) -> bool:
        """Whether other processes than those to be spared were alive when it had ended."""
        assert self._answer is not None
        return bool(self._answer.get("left", True))

    def serve(self, take: TakeOutput) -> None:
        """Take all its output until it has ended, and why it could not be started, and read on what others print."""
        worker = self._worker
        assert worker is not None
        try:
            while self._answer is None:
                for fd, _ in self._poll.poll():
                    if fd == worker.fileno():
                        self._answer = _receive_answer(worker)
                    else:
                        self._read(fd, take)
            for fd in [*self._streams]:
                still_in_pipe = _PIPE  # What a descendant adds later is not its output.
                while still_in_pipe > 0 and (read := self._read(fd, take)):
                    still_in_pipe -= read
            if self._answer.get("complaint"):
                take(2, f"{self._answer['complaint']}\n".encode())
            if self.exit_code != 0 and (notes := self._new_notes()):
                take(2, notes.encode())
        except BaseException as error:  # Of `take` or of the worker; whoever waits has to know.
            self._failure = error
        finally:
            self._poll.unregister(worker)
            worker.close()
            self._ended.set()
        while self._streams:  # If the pipes were closed, a service that was left running would die of SIGPIPE.
            for fd, _ in self._poll.poll():
                self._read(fd, lambda stream, piece: None)

    def _read(self, fd: int, take: TakeOutput) -> int:
        """Take a piece of output, and return its length; nothing is left to be read where that is 0."""
        try:
            piece = os.read(fd, _PIPE)
        except BlockingIOError:
            return 0
        if piece:
            take(self._streams[fd], piece)
        else:
            self._poll.unregister(fd)
            del self._streams[fd]
            self._close(fd)
        return len(piece)

    def write(self, data: bytes, timeout: float | None = None) -> None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        rest = memoryview(data)
        poll = select.poll()
        with self._writing:
            while rest:
                if self._input_closed:
                    raise BrokenPipeError("the program's stdin is closed")
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(self._stdin, rest[:_PIPE]) :]
                    continue
                if self._ended.is_set():  # A descendant has the other end, and does not read.
                    raise BrokenPipeError("the program has ended")
                left = _CLOSING if deadline is None else min(_CLOSING, deadline - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"{len(rest)} bytes of a program's input were not taken in time")
                poll.register(self._stdin, select.POLLOUT)
                poll.poll(left * 1000 + 1)

    def close_input(self) -> None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        self._input_closed = True
        with self._writing:
            self._close(self._stdin)

    def signal(self, number: int) -> None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        assert self._worker is not None
        if number == signal.SIGKILL:
            self._require_running = lambda exit_code: None  # It is known why it ends.
        with contextlib.suppress(OSError):
            self._worker.send(str(number).encode())

    def has_ended(self, timeout: float | None = None) -> bool:
        """Wait until it has ended and its output was taken, for ``timeout`` seconds at most, and tell whether so."""
        if self._ended.wait(timeout) and self._failure is not None:
            raise self._failure
        return self._ended.is_set()

    def wait(self, timeout: float | None = None) -> int | None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        if not self.has_ended(timeout):
            return None
        self._require_running(self.exit_code)
        self._require_running = lambda exit_code: None  # Once will do, because it takes time.
        return self.exit_code

    def close(self) -> None:
        """Close all that belongs to it here, where it was not begun."""
        if self._worker is not None:
            self._worker.close()
        self._closes()

    def _close(self, fd: int) -> None:
        if fd in self._fds:
            self._fds.discard(fd)
            os.close(fd)


def _receive_answer(worker: socket.socket) -> dict[str, Any]:
    """Return the reply of a worker."""
    try:
        message = worker.recv(_MESSAGE)
    except OSError:
        message = b""
    return _parse(message)


def _parse(message: bytes) -> dict[str, Any]:
    return parse(message) if message else _KILLED


def _close_all(fds: set[int]) -> None:
    while fds:
        os.close(fds.pop())


class PseudoTerminal:
    """Two connected ends of a terminal, as a context that closes the outer one.

    It is a :class:`~pytest_evocode.environments.terminal.Remote`, by its outer end. The inner end is to be closed once
    a program has it, so that the outer one ends when the program does.
    """

    def __init__(self) -> None:
        self._outer, self.inner = os.openpty()
        os.set_blocking(self._outer, False)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._outer)

    def fileno(self) -> int:
        """Return the file descriptor of the outer end."""
        return self._outer

    def recv(self, size: int, /) -> bytes:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.read(self._outer, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""  # No process has the inner end open any more.

    def send(self, data: bytes, /) -> int:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.write(self._outer, data)
        except BlockingIOError:
            return 0

    def resize(self, size: os.terminal_size) -> bool:
        """Set the size of the program's terminal, and return True."""
        termios.tcsetwinsize(self._outer, (size.lines, size.columns))
        return True
