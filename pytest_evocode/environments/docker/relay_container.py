"""The container beside one with an allowlist: it holds the network that both are in, and carries connections out of it.

That network is a loopback and nothing else. A program there listens at the proxy's port and passes everything on to the
session over the stream by which the engine runs it, so that it works with every engine, be it on another machine. It is
out of reach for what runs in the other container, which sees neither its processes nor its files; it is of the task's
image as built, and ends when the session does.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.execs import FramedStream
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.multiplexer import Multiplexer
from pytest_evocode.environments.docker.relay_programs import PROGRAM, arguments
from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.environments.egress import PROXY_PORT
from pytest_evocode.environments.egress.proxy import ServedEnvironment
from pytest_evocode.environments.programs import Stream
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

_STARTING = 30.0  # seconds for the program to listen
_MEMORY, _PROCESSES = 256 * 2**20, 32
_NOBODY = "65534:65534"
_COMPLAINT = 2000  # bytes of what the program has to say


class RelayContainer:
    """One such container, from :meth:`start` to :meth:`stop`."""

    def __init__(self, client: APIClient, image: str, labels: Mapping[str, str], served: ServedEnvironment) -> None:
        """Have connections served by ``served``."""
        self._client = client
        self._image = image
        self._labels = labels
        self._served = served
        self._loop = served.loop
        self._ready = threading.Event()
        self._complaint = bytearray()
        self._outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._multiplexer = Multiplexer(self._outgoing.put, self._begin)
        self._carrying: set[asyncio.Task[None]] = set()
        self._stream: FramedStream | None = None
        self._listening = False
        self.container = ""

    def start(
        self,
        *,
        network: str = "none",
        endpoints: dict[str, Any] | None = None,
        dns: list[str] | None = None,
        join: Callable[[str], object] = lambda container: None,
    ) -> None:
        """Start it.

        Args:
            network: What else is in reach: a network of the engine's that has no way out.
            endpoints: The names that the container has there.
            dns: The name servers that the engine asks for other names than those in its networks.
            join: Connects it to more such networks.
        """
        from docker.types import LogConfig

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
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._multiplexer.close)

    def _write(self, stream: FramedStream) -> None:
        with contextlib.suppress(OSError, ValueError):
            while message := self._outgoing.get():
                stream.send(message)

    def _take(self, stream: Stream, chunk: bytes) -> None:
        if stream == 2:
            self._complaint += chunk[: _COMPLAINT - len(self._complaint)]
            return
        with contextlib.suppress(RuntimeError):  # The session is over, and its loop closed.
            self._loop.call_soon_threadsafe(self._multiplexer.take, chunk)

    # The proxy's thread.

    def _begin(self, number: int) -> None:
        if number == 0:
            self._listening = True
            self._ready.set()
            return
        self._multiplexer.expect(number)
        carrying = self._loop.create_task(self._carry(number))
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)

    async def _carry(self, number: int) -> None:
        inner, outer = socket.socketpair()
        served = self._loop.create_task(self._served.serve(*await asyncio.open_connection(sock=outer)))
        await self._multiplexer.carry(number, *await asyncio.open_connection(sock=inner), served)
