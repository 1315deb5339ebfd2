"""The output of a running command, out of the engine's framed stream."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from types import TracebackType
from typing import Any

from pytest_evocode.environments.base import CappedOutput


class ExecStream:
    """What ``exec_start(socket=True)`` returns, as a context that leaves no connection open."""

    def __init__(self, stream: Any, into: CappedOutput) -> None:
        self._response = stream._response
        self._connection: socket.socket = getattr(stream, "_sock", stream)  # With TLS it is the socket itself.
        self._into = into
        self._buffer = bytearray()
        self._frame_left = 0

    def __enter__(self) -> ExecStream:
        self._take_early()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.close()
        self._connection.close()

    def _take_early(self) -> None:
        """Take what came in one piece with the response's header: it is in the buffer the header was read through."""
        with contextlib.suppress(AttributeError):
            buffered = self._response.raw._fp.fp
            self._connection.settimeout(0)
            self._take(buffered.peek())

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

    def _take(self, chunk: bytes) -> None:
        """A frame is eight bytes, the last four of them its length, and its payload; stdout and stderr become one."""
        buffer = self._buffer
        buffer += chunk
        while buffer and (self._frame_left or len(buffer) >= 8):
            if not self._frame_left:
                self._frame_left = struct.unpack(">I", buffer[4:8])[0]
                del buffer[:8]
            self._into.add(bytes(buffer[: self._frame_left]))
            taken = min(self._frame_left, len(buffer))
            del buffer[:taken]
            self._frame_left -= taken
