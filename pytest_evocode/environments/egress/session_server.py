"""The way from an environment, whatever its network, to a server of the session that listens at a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from pytest_evocode.environments.egress.proxy import ServedConnections, both_ways, pass_on


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
            with contextlib.closing(to_server), contextlib.suppress(OSError):
                await both_ways(pass_on(reader, to_server), pass_on(from_server, writer))
