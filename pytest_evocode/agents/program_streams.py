"""The streams of a program in the container, for code that runs in an event loop on the host."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import CancelledError

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from pytest_evocode.environments import Command, Environment
from pytest_evocode.environments.programs import CappedOutput, Program, Stream, User
from pytest_evocode.errors import EnvironmentFault

_CHUNKS = 256  # of the output that wait to be read; then the program waits
_WRITING = 120.0  # seconds in which a program has to take what is written to it
_ENDING = 2.0  # seconds for a program to end by itself once its input is closed
_PAUSE = 0.02  # seconds
_ERRORS = 16 * 2**10  # bytes kept of the beginning and of the end of what it prints to stderr
_LONGEST_LINE = 64 * 2**20  # bytes
_NO_MORE_LINES = (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.ClosedResourceError)
_NOBODY_READS = (RuntimeError, CancelledError)


class ProgramStream(anyio.abc.ByteStream):
    """A running program as a stream of bytes: what it prints is received, what is sent is its input.

    It is made by :meth:`open`, and belongs to the event loop of ``portal``.
    """

    _program: Program

    def __init__(self, portal: anyio.from_thread.BlockingPortal) -> None:
        self._portal = portal
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(_CHUNKS)
        self._drained = self._closed = False
        self._rest = b""
        self._errors = CappedOutput(_ERRORS)
        self.exit_code: int | None = None
        """The program's; None while it runs, and where it is not known."""
        self._end = threading.Event()

    @classmethod
    async def open(
        cls,
        environment: Environment,
        portal: anyio.from_thread.BlockingPortal,
        argv: tuple[str, ...],
        *,
        user: User | None,
        env: Mapping[str, str] | None = None,
    ) -> ProgramStream:
        """Start a program in a container."""
        made = cls(portal)
        command = Command(argv, user=user, env=env or {})
        made._program = await anyio.to_thread.run_sync(environment.open_program, command, made._take)
        threading.Thread(target=made._wait, name="program-end", daemon=True).start()
        return made

    def _take(self, stream: Stream, chunk: bytes) -> None:
        """Take what the program prints, in a thread of the environment's."""
        if stream == 2:
            self._errors.add(chunk)
            return
        # The loop may have ended, or nobody may read any more.
        with contextlib.suppress(*_NOBODY_READS):
            self._portal.call(self._put, bytes(chunk))

    def _wait(self) -> None:
        """Wait for the program's end, in a thread: the loop may have ended by then."""
        with contextlib.suppress(EnvironmentFault):
            self.exit_code = self._program.wait()
        self._end.set()
        with contextlib.suppress(*_NOBODY_READS):
            self._portal.call(self._put, None)

    async def _put(self, chunk: bytes | None) -> None:
        if not self._closed:
            await self._chunks.put(chunk)

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._end.is_set()

    @property
    def errors(self) -> str:
        """What the program has printed to stderr."""
        return self._errors.text()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return what the program prints next; raises anyio.EndOfStream once it has ended."""
        if self._closed:
            raise anyio.ClosedResourceError
        while not self._rest:
            chunk = None if self._drained else await self._chunks.get()
            if chunk is None:
                self._drained = True
                raise anyio.EndOfStream
            self._rest = chunk
        given, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return given

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines that the program prints, until it has ended, or prints one that no message is as long as."""
        buffer = BufferedByteReceiveStream(self)
        with contextlib.suppress(*_NO_MORE_LINES):
            while True:
                yield await buffer.receive_until(b"\n", _LONGEST_LINE)

    async def send(self, item: bytes) -> None:
        """Write to the program's input."""
        try:
            await anyio.to_thread.run_sync(self._program.write, item, _WRITING, abandon_on_cancel=True)
        except (BrokenPipeError, TimeoutError) as error:
            # Who reads no more is about to end, mostly: messages say how.
            await anyio.to_thread.run_sync(self._end.wait, _ENDING, abandon_on_cancel=True)
            raise anyio.BrokenResourceError from error

    async def send_eof(self) -> None:
        """Close the program's input."""
        await anyio.to_thread.run_sync(self._program.close_input)

    async def kill(self) -> None:
        """Kill the program and its process group, where it still runs."""
        if not self.ended:
            await anyio.to_thread.run_sync(self._program.signal, signal.SIGKILL)

    async def aclose(self) -> None:
        """Close the input, and kill the program where it does not end by itself."""
        with anyio.CancelScope(shield=True):
            self._closed = True
            while not self._chunks.empty():  # Whoever waits to put one more goes on, and puts none.
                self._chunks.get_nowait()
            await self.send_eof()
            with anyio.move_on_after(_ENDING):
                while not self.ended:
                    await anyio.sleep(_PAUSE)
            await self.kill()
