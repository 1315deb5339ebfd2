"""The container beside one with an allowlist: it holds the network that both are in, and carries connections out of it.

That network is a loopback and nothing else. A program there listens at the proxy's port and passes everything on to the
session over the stream by which the engine runs it, so that it works with every engine, be it on another machine. It is
out of reach for what runs in the other container, which sees neither its processes nor its files; it is of the task's
image as built, and ends when the session does.

What passes are messages: a letter, the number of a connection, a length and so many bytes. ``R``: the program listens.
``O``: a connection was taken. ``D``: data. ``E``: no more data follows. ``C``: it is closed
when what was sent before has been taken. ``A``: so many bytes of
data were taken on; each side sends no more than a window beyond what the other has acknowledged, so that a slow
connection holds up no other one.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import queue
import struct
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.execs import FramedStream
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.relay_programs import PROGRAM, WINDOW, arguments
from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.environments.egress import PROXY_PORT
from pytest_evocode.environments.egress.proxy import EgressProxy, ServedEnvironment
from pytest_evocode.environments.programs import Stream
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

_STARTING = 30.0  # seconds for the program to listen
_HEADER = struct.Struct(">cII")
_PIECE = 2**15  # bytes of one message
_MEMORY, _PROCESSES = 256 * 2**20, 32
_NOBODY = "65534:65534"
_COMPLAINT = 2000  # bytes of what the program has to say


class RelayContainer:
    """One such container, from :meth:`start` to :meth:`stop`."""

    def __init__(self, client: APIClient, image: str, labels: Mapping[str, str], proxy: EgressProxy) -> None:
        self._client = client
        self._image = image
        self._labels = labels
        self._loop = proxy.loop
        self._ready = threading.Event()
        self._complaint = bytearray()
        self._received = bytearray()
        self._outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._connections: dict[int, RelayedConnection] = {}
        self._served: ServedEnvironment | None = None
        self._stream: FramedStream | None = None
        self._listening = False
        self.container = ""

    def start(
        self,
        served: ServedEnvironment,
        *,
        network: str = "none",
        endpoints: dict[str, Any] | None = None,
        dns: list[str] | None = None,
        join: Callable[[str], object] = lambda container: None,
    ) -> None:
        """Start it; connections go to ``served``.

        Args:
            served: The way out.
            network: What else is in reach: a network of the engine's that has no way out.
            endpoints: The names that the container has there.
            dns: The name servers that the engine asks for other names than those in its networks.
            join: Connects it to more such networks.
        """
        from docker.types import LogConfig

        self._served = served
        with faults("starting the container that holds a network"):
            created = self._client.create_container(
                self._image,
                entrypoint=["bash", "-c", PROGRAM, "bash"],
                command=arguments(PROXY_PORT),
                user=_NOBODY,
                working_dir="/",
                labels=dict(self._labels),
                stdin_open=True,
                network_disabled=network == "none",
                networking_config=endpoints,
                host_config=self._client.create_host_config(
                    network_mode=network,
                    dns=dns,
                    mem_limit=_MEMORY,
                    memswap_limit=_MEMORY,
                    pids_limit=_PROCESSES,
                    cap_drop=["ALL"],
                    read_only=True,
                    security_opt=["no-new-privileges:true"],
                    log_config=LogConfig(type="none"),
                ),
            )
            self.container = created["Id"]
            join(self.container)
            attach = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._stream = FramedStream(self._client.attach_socket(self.container, params=attach), self._take)
            self._client.start(self.container)
        name = f"relay-{self.container[:12]}"
        threading.Thread(target=self._read, args=[self._stream], name=name, daemon=True).start()
        threading.Thread(target=self._write, args=[self._stream], name=name, daemon=True).start()
        if not (self._ready.wait(_STARTING) and self._listening):
            why = self._complaint.decode("utf-8", "replace").strip() or "it does not listen"
            self.stop()
            raise EnvironmentFault(f"no program can carry connections out of this container's allowlist: {why}")

    def stop(self) -> None:
        """Remove it; a second call does nothing."""
        container, self.container = self.container, ""
        if not container:
            return
        self._outgoing.put(b"")
        discard(self._client, "container", container)
        if self._stream is not None:
            self._stream.shutdown()

    # Threads of the stream.

    def _read(self, stream: FramedStream) -> None:
        try:
            with contextlib.suppress(OSError), stream:
                stream.collect(None)
        finally:
            self._ready.set()
            with contextlib.suppress(RuntimeError):  # The session is over, and its loop closed.
                self._loop.call_soon_threadsafe(self._break)

    def _write(self, stream: FramedStream) -> None:
        with contextlib.suppress(OSError, ValueError):
            while message := self._outgoing.get():
                stream.send(message)

    def _take(self, stream: Stream, chunk: bytes) -> None:
        if stream == 2:
            self._complaint += chunk[: _COMPLAINT - len(self._complaint)]
            return
        self._received += chunk
        while len(self._received) >= _HEADER.size:
            kind, number, length = _HEADER.unpack_from(self._received)
            end = _HEADER.size + length
            if len(self._received) < end:
                return
            payload = bytes(self._received[_HEADER.size : end])
            del self._received[:end]
            if kind == b"R":
                self._listening = True
                self._ready.set()
            else:
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._handle, kind, number, payload)

    # The proxy's thread.

    def _handle(self, kind: bytes, number: int, payload: bytes) -> None:
        if kind == b"O" and self._served is not None:
            connection = self._connections[number] = RelayedConnection(self, number)
            self._served.begin(connection)
        elif (open_one := self._connections.get(number)) is not None:
            open_one.handle(kind, payload)

    def _break(self) -> None:
        for connection in list(self._connections.values()):
            connection.handle(b"C", b"")

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Send a message."""
        self._outgoing.put(_HEADER.pack(kind, number, len(payload)) + payload)

    def forget(self, number: int) -> None:
        """Take no notice of a connection any more."""
        self._connections.pop(number, None)


class RelayedConnection:
    """An :class:`~pytest_evocode.environments.egress.connections.EgressConnection` from inside, through a relay."""

    def __init__(self, relay: RelayContainer, number: int) -> None:
        self._relay = relay
        self._number = number
        self._pieces: collections.deque[bytes] = collections.deque()
        self._changed = asyncio.Event()
        self._window = WINDOW
        self._ended = self._closed = False

    def handle(self, kind: bytes, payload: bytes) -> None:
        """Take a message of the relay."""
        if kind == b"D":
            self._pieces.append(payload)
        elif kind == b"A":
            self._window += int.from_bytes(payload, "big")
        elif kind == b"E":
            self._ended = True
        elif kind == b"C":
            self._closed = True
            self._relay.forget(self._number)
        self._changed.set()

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def read(self) -> bytes:
        """See :class:`~pytest_evocode.environments.egress.connections.EgressConnection`."""
        while not self._pieces:
            if self._ended:
                return b""
            if self._closed:
                raise ConnectionResetError
            await self._wait()
        piece = self._pieces.popleft()
        self._relay.send(b"A", self._number, len(piece).to_bytes(4, "big"))
        return piece

    async def write(self, data: bytes) -> None:
        """See :class:`~pytest_evocode.environments.egress.connections.EgressConnection`."""
        left = memoryview(data)
        while left:
            while not self._closed and self._window <= 0:
                await self._wait()
            if self._closed:
                raise ConnectionResetError
            piece = bytes(left[: min(_PIECE, self._window)])
            left = left[len(piece) :]
            self._window -= len(piece)
            self._relay.send(b"D", self._number, piece)

    async def end(self) -> None:
        """See :class:`~pytest_evocode.environments.egress.connections.EgressConnection`."""
        if not self._closed:
            self._relay.send(b"E", self._number)

    def close(self) -> None:
        """See :class:`~pytest_evocode.environments.egress.connections.EgressConnection`."""
        if not self._closed:
            self._closed = True
            self._relay.send(b"C", self._number)
            self._relay.forget(self._number)
        self._changed.set()
