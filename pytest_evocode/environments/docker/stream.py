"""The output of running commands, out of the engine's framed streams."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any


class EngineConnection:
    """What ``exec_start(socket=True)`` and ``attach_socket`` return, as a context that leaves no connection open."""

    def __init__(self, stream: Any) -> None:
        self._response = stream._response
        self._connection: socket.socket = getattr(stream, "_sock", stream)  # With TLS it is the socket itself.

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.close()
        self._connection.close()

    def _early(self) -> bytes:
        """What came in one piece with the response's header: it is in the buffer the header was read through."""
        with contextlib.suppress(AttributeError):
            buffered = self._response.raw._fp.fp
            self._connection.settimeout(0)
            return bytes(buffered.peek())
        return b""


class TerminalStream(EngineConnection):
    """A terminal's, which has no frames.

    A :class:`~pytest_evocode.environments.terminal.Remote`.
    """

    def __enter__(self) -> TerminalStream:
        self._waiting = self._early()
        self._connection.settimeout(None)
        return self

    def fileno(self) -> int:
        """The connection's."""
        return self._connection.fileno()

    def early(self) -> bytes:
        """What was printed before there was a connection to read from."""
        return self._waiting

    def recv(self, size: int, /) -> bytes:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        return self._connection.recv(size)

    def send(self, data: bytes, /) -> int:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        return self._connection.send(data)


class FramedStream(EngineConnection):
    """A command's or a container's without a terminal.

    A frame is eight bytes, the first of them 1 for stdout and 2 for stderr, the last four its length, and its payload.
    ``take`` gets the payloads in order, of both streams unless ``stderr`` is false.
    """

    def __init__(self, stream: Any, take: Callable[[bytes], None], *, stderr: bool = True) -> None:
        super().__init__(stream)
        self._deliver = take
        self._stderr = stderr
        self._buffer = bytearray()
        self._frame_left = 0
        self._wanted = True

    def __enter__(self) -> FramedStream:
        self._take(self._early())
        return self

    def collect(self, deadline: float | None) -> bool:
        """Take output until it ends; False at the deadline, from where a second call goes on."""
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            self._connection.settimeout(left)
            try:
                chunk = self._connection.recv(2**18)
            except TimeoutError:
                return False
            if not chunk:
                return True
            self._take(chunk)

    def send(self, data: bytes) -> None:
        """Write to the command's stdin."""
        self._connection.sendall(data)

    def shutdown(self) -> None:
        """End a :meth:`collect` that runs in another thread."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _take(self, chunk: bytes) -> None:
        buffer = self._buffer
        buffer += chunk
        while buffer and (self._frame_left or len(buffer) >= 8):
            if not self._frame_left:
                self._wanted = self._stderr or buffer[0] == 1
                self._frame_left = struct.unpack(">I", buffer[4:8])[0]
                del buffer[:8]
            if self._wanted:
                self._deliver(bytes(buffer[: self._frame_left]))
            taken = min(self._frame_left, len(buffer))
            del buffer[:taken]
            self._frame_left -= taken
