"""The way from an environment, whatever its network, to a server of the session that listens at a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from pytest_evocode.environments.egress.proxy import ServedConnections

_PIECE = 2**16  # bytes that are passed on at once


class SessionServer(ServedConnections):
    """Carries connections to the socket that is open at the moment; while none is, each ends at once.

    Its port is not given up meanwhile, or something that an agent has left running could take it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._path: Path | None = None

    @property
    def is_open(self) -> bool:
        """Whether a socket is open."""
        return self._path is not None

    @contextlib.contextmanager
    def open(self, path: Path) -> Iterator[None]:
        """Carry connections to the Unix socket at a path while the context lasts."""
        self._path = path
        try:
            yield
        finally:
            self._path = None
            self.drop()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """See :class:`~pytest_evocode.environments.egress.proxy.ServedConnections`."""
        with contextlib.closing(writer):
            if self._path is None:
                return
            from_server, to_server = await asyncio.open_unix_connection(self._path)
            with contextlib.closing(to_server):
                ways = [
                    asyncio.ensure_future(_pass_on(reader, to_server)),
                    asyncio.ensure_future(_pass_on(from_server, writer)),
                ]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    writer.write_eof()
