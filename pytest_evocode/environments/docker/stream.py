"""The output of running commands, read from the engine's framed streams.

The SDK's ``docker.utils.socket.frames_iter`` does not serve here: it waits without a deadline, and misses what came in
one piece with the header of the engine's response.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pytest_evocode.environments.docker.docker_private import read_buffered, response_of, socket_of


class EngineConnection:
    """A connection to a command or container, as a context that closes the connection and its response.

    ``stream`` is what the SDK's ``exec_start(socket=True)`` and ``attach_socket`` return.
    """

    def __init__(self, stream: Any) -> None:
        self._response = response_of(stream)
        self._connection = socket_of(stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.close()
        self._connection.close()


class TerminalStream(EngineConnection):
    """The stream of a command on a terminal, which has no frames.

    It is a :class:`~pytest_evocode.environments.terminal.Remote`.
    """

    def __enter__(self) -> TerminalStream:
        self._buffered = read_buffered(self._response, self._connection)
        self._connection.settimeout(None)
        return self

    def fileno(self) -> int:
        """Return the connection's file descriptor."""
        return self._connection.fileno()

    def early(self) -> bytes:
        """Return what was printed before there was a connection to read from."""
        return self._buffered

    def recv(self, size: int, /) -> bytes:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        return self._connection.recv(size)

    def send(self, data: bytes, /) -> int:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        return self._connection.send(data)


class FramedStream(EngineConnection):
    """The stream of a command or container without a terminal.

    It is a sequence of frames. A frame is a header of eight bytes, the first of them 1 for stdout and 2 for stderr, the
    last four the length of the payload, and the payload. ``take`` is called with the payloads in order, of both streams
    unless ``stderr`` is false.
    """

    def __init__(self, stream: Any, take: Callable[[bytes], None], *, stderr: bool = True) -> None:
        super().__init__(stream)
        self._deliver = take
        self._stderr = stderr
        self._buffer = bytearray()
        self._frame_left = 0
        self._wanted = True

    def __enter__(self) -> FramedStream:
        self._take(read_buffered(self._response, self._connection))
        return self

    def collect(self, deadline: float | None) -> bool:
        """Read output until it ends.

        Args:
            deadline: By ``time.monotonic``; None for no limit.

        Returns:
            Whether the output has ended; False at the deadline, after which a second call goes on.
        """
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
