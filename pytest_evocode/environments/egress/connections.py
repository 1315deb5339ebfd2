"""Connections that the proxy takes and makes: over sockets of this machine, or through a tunnel to another."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

PIECE = 2**16  # bytes that are passed on at once


class EgressConnection(Protocol):
    """One connection, for a coroutine; each method raises OSError once the connection is broken."""

    async def read(self) -> bytes:
        """Return the next bytes, none at the end."""

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait where the other end is slow to take them."""

    async def end(self) -> None:
        """Say that nothing more will be sent; reading goes on."""

    def close(self) -> None:
        """Drop the connection; a second call does nothing."""


class SocketConnection:
    """An :class:`EgressConnection` over a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """See :class:`EgressConnection`."""
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        """See :class:`EgressConnection`."""
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        """See :class:`EgressConnection`."""
        if self._writer.can_write_eof():
            self._writer.write_eof()

    def close(self) -> None:
        """See :class:`EgressConnection`."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.close()
