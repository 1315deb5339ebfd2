"""The proxy of one engine: one thread of the session, which serves what its environments connect to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

logger = logging.getLogger(__name__)

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Finds the addresses of a name; raises OSError where there are none."""

_MOST = 256  # connections of one environment at once
_PIECE = 2**16  # bytes that are passed on at once
_ENDING = 10.0  # seconds for the thread to end


async def system_resolver(name: str) -> Sequence[str]:
    """Ask whom this machine asks."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def write(writer: asyncio.StreamWriter, data: bytes | None) -> None:
    """Write all of what there is, at the pace at which it is taken."""
    writer.write(data or b"")
    await writer.drain()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what one side sends until it ends."""
    while piece := await reader.read(_PIECE):
        await write(writer, piece)
    writer.write_eof()


async def both_ways(*ways: Coroutine[Any, Any, None]) -> None:
    """Pass on what both sides send, until both have ended or one way has failed."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class EgressProxy:
    """Serves connections; nothing is started before the first environment needs it. Any thread may call."""

    def __init__(self, resolve: Resolve = system_resolver) -> None:
        """Resolve names by ``resolve``."""
        self.resolve = resolve
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the proxy's thread, which is started when it is first needed."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="egress-proxy", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """End the thread; what it served must have been closed."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result(_ENDING)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_ENDING)
        loop.close()


async def _end_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


class ServedConnections(ABC):
    """Connections from one environment, which end with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @abstractmethod
    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends, and close it."""

    def listen(self, listener: socket.socket) -> None:
        """Serve a socket that listens in the environment's network, in place of an earlier one."""
        self._call(self._listen(listener))

    async def _listen(self, listener: socket.socket) -> None:
        if self._server is not None:
            self._server.close()

        self._server = await asyncio.start_server(self.serve, sock=listener)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends."""
        if len(self._tasks) >= _MOST:
            writer.close()
            return
        answering = self.loop.create_task(self.answer(reader, writer))
        self._tasks.add(answering)
        await asyncio.wait([answering])
        self._tasks.discard(answering)
        if not answering.cancelled() and (error := answering.exception()) is not None:
            logger.info("a connection from an environment failed: %r", error)

    def drop(self) -> None:
        """End all connections."""
        self._call(self._drop())

    async def _drop(self) -> None:
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """End all connections, and take no more."""
        self._call(self._close())

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._drop()

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        if self.loop.is_closed():
            coroutine.close()
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(_ENDING)
