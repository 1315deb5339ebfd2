"""The connection to an agent that speaks ACP: its program in the container, and an event loop on the host."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import anyio
import anyio.from_thread
from acp.connection import Connection

from pytest_evocode.agents.acp.container_side import ContainerSide
from pytest_evocode.agents.program_streams import ProgramStream
from pytest_evocode.environments import Environment
from pytest_evocode.environments.programs import User

logger = logging.getLogger(__name__)

_LONGEST_LINE = 64 * 2**20  # bytes
_CLOSING = 5.0  # seconds


class _Lines:
    """Messages as lines of a program's streams: what the SDK calls a transport."""

    def __init__(self, stream: ProgramStream) -> None:
        self._stream = stream
        self._rest = b""
        self._lines: list[bytes] = []

    async def send(self, message: dict[str, Any]) -> None:
        try:
            await self._stream.send(json.dumps(message).encode() + b"\n")
        except anyio.BrokenResourceError:
            raise ConnectionError("Connection closed") from None  # As the SDK says of what cannot be read.

    async def receive(self) -> dict[str, Any] | None:
        while True:
            while self._lines:
                try:
                    message = json.loads(self._lines.pop(0))
                except ValueError:  # Something else that the program prints.
                    continue
                if isinstance(message, dict):
                    return message
            try:
                self._rest += await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                return None
            if len(self._rest) > _LONGEST_LINE:
                return None
            *self._lines, self._rest = self._rest.split(b"\n")

    async def close(self) -> None:
        await self._stream.aclose()


class AcpProgram:
    """An agent's program that runs, and may go on from turn to turn.

    Args:
        environment: Where it is started.
        user: The agent's user.
        command: A script for bash.
        env: Variables of the program alone.
    """

    def __init__(self, environment: Environment, user: User | None, command: str, env: Mapping[str, str]) -> None:
        self.environment = environment
        self.updates: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        """What the agent tells of its sessions, in order."""
        self._stack = contextlib.ExitStack()
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        self._container = ContainerSide(environment, user, self._portal)
        self._stack.callback(self._close)
        try:
            self._stream, self._connection = self._portal.call(self._open, user, command, env)
        except BaseException:
            self._stack.close()  # Or the thread of the event loop would live on, and the session with it.
            raise

    async def _open(self, user: User | None, command: str, env: Mapping[str, str]) -> tuple[ProgramStream, Connection]:
        argv = ("bash", "-c", command)
        stream = await ProgramStream.open(self.environment, self._portal, argv, user=user, env=env)
        return stream, Connection(self._handle, _Lines(stream))

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        if not is_notification:
            return await self._container.answer(method, params or {})
        if method == "session/update":
            self.updates.put(params)
        return None

    @property
    def terminals(self) -> Mapping[str, Any]:
        """The commands that the agent has had run, by id."""
        return self._container.terminals

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._stream.ended

    @property
    def ending(self) -> str:
        """How the program has ended, and what it printed to stderr, for messages."""
        code = self._stream.exit_code
        last = "\n".join(self._stream.errors.strip().splitlines()[-20:])
        if self.ended:
            how = "its program has ended" + ("" if code is None else f" with exit code {code}")
        else:
            how = "its program still runs" if last else ""
        return f"{how}. Its last lines:\n{last}" if last else how

    def request(self, method: str, params: Mapping[str, Any]) -> Future[Any]:
        """Send a request; the future raises the protocol's error, or ConnectionError where the program has ended."""
        return self._portal.start_task_soon(self._connection.send_request, method, dict(params))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        with contextlib.suppress(ConnectionError):
            self._portal.call(self._connection.send_notification, method, dict(params))

    def _close(self) -> None:
        async def close() -> None:
            with anyio.move_on_after(_CLOSING):
                await self._container.close()
                await self._connection.close()

        if hasattr(self, "_connection"):
            self._portal.call(close)

    def close(self) -> None:
        """End the program and everything that it has had run."""
        try:
            self._stack.close()
        except Exception:
            logger.warning("an agent's program could not be ended", exc_info=True)
