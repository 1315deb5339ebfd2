"""The connection to an agent that speaks ACP: its program in the container, and what that asks for there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import queue
import shlex
import signal
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any

import anyio
import anyio.from_thread
from acp.connection import Connection
from acp.exceptions import RequestError

from pytest_evocode.agents.program_streams import ProgramStream
from pytest_evocode.environments import Environment
from pytest_evocode.environments.programs import User

_WRITE = 'mkdir -p -- "$(dirname -- "$1")" && exec cat >"$1"'
_FILES = 60.0  # seconds that reading or writing a file may take
_LARGEST = 64 * 2**20  # bytes of a file that is read
_OUTPUT = 2**20  # bytes kept of a terminal's output unless the agent says
#: In the order of preference.
_GRANTS = ("allow_always", "allow_once")

Answer = dict[str, Any] | None


class _Terminal:
    """A command that runs beside the agent."""

    def __init__(self, stream: ProgramStream, limit: int) -> None:
        self.stream = stream
        self._limit = limit
        self._output = bytearray()
        self._dropped = False
        self._ended = anyio.Event()
        self.reading: asyncio.Task[None] | None = None
        """The task that reads the output; held here, since the loop does not."""

    @property
    def exit_code(self) -> int | None:
        return self.stream.exit_code

    def text(self) -> str:
        return bytes(self._output).decode("utf-8", "replace")

    async def read(self) -> None:
        try:
            while True:
                self._output += await self.stream.receive()
                if len(self._output) > self._limit:
                    del self._output[: -self._limit or None]
                    self._dropped = True
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended.set()

    async def wait(self) -> dict[str, Any]:
        await self._ended.wait()
        return self._status()

    def _status(self) -> dict[str, Any]:
        code = self.exit_code
        by_signal = code is not None and code > 128
        return {"exitCode": None if by_signal else code, "signal": _signal_name(code) if by_signal else None}

    def output(self) -> dict[str, Any]:
        status = {"exitStatus": self._status()} if self._ended.is_set() else {}
        return {"output": self.text(), "truncated": self._dropped, **status}


class ContainerSide:
    """Answers an agent's requests; all are run as the agent's user, who can do no more by asking than by itself."""

    def __init__(self, environment: Environment, user: User | None, portal: anyio.from_thread.BlockingPortal) -> None:
        self._environment, self._user, self._portal = environment, user, portal
        self.terminals: dict[str, _Terminal] = {}
        self._made = 0
        self._methods: Mapping[str, Callable[[dict[str, Any]], Awaitable[Answer]]] = {
            "session/request_permission": self._grant,
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }

    async def answer(self, method: str, params: dict[str, Any]) -> Answer:
        """Return the answer to a request; raises the protocol's error for one that is not known, or failed."""
        if method not in self._methods:
            raise RequestError.method_not_found(method)
        try:
            return await self._methods[method](params)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise RequestError.invalid_params({"details": repr(error)}) from None

    async def _grant(self, params: dict[str, Any]) -> Answer:
        options = params["options"]
        granted = (each for kind in _GRANTS for each in options if each.get("kind") == kind)
        chosen = next(granted, None)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}

    async def _run(self, argv: tuple[str, ...], data: bytes = b"") -> bytes:
        stream = await ProgramStream.open(self._environment, self._portal, argv, user=self._user)
        read = bytearray()
        with anyio.fail_after(_FILES):
            if data:
                await stream.send(data)
            await stream.send_eof()
            try:
                while len(read) < _LARGEST:
                    read += await stream.receive()
            except anyio.EndOfStream:
                pass
        if stream.exit_code != 0:
            raise RequestError.internal_error({"details": stream.errors.strip() or f"exit code {stream.exit_code}"})
        return bytes(read)

    async def _read(self, params: dict[str, Any]) -> Answer:
        text = (await self._run(("cat", "--", params["path"]))).decode("utf-8", "replace")
        line, limit = params.get("line"), params.get("limit")
        if line is not None or limit is not None:
            first = max(0, (line or 1) - 1)
            lines = text.splitlines(keepends=True)
            text = "".join(lines[first : None if limit is None else first + limit])
        return {"content": text}

    async def _write(self, params: dict[str, Any]) -> Answer:
        await self._run(("bash", "-c", _WRITE, "bash", params["path"]), params["content"].encode())
        return {}

    async def _create(self, params: dict[str, Any]) -> Answer:
        env = {each["name"]: each["value"] for each in params.get("env") or ()}
        words = (params["command"], *(params.get("args") or ()))
        # Some agents give a whole script as the command.
        script = words[0] if len(words) == 1 else shlex.join(words)
        if params.get("cwd"):
            script = f"cd -- {shlex.quote(params['cwd'])} && {script}"
        argv = ("bash", "-c", f"exec 2>&1; {script}")
        stream = await ProgramStream.open(self._environment, self._portal, argv, user=self._user, env=env)
        await stream.send_eof()
        self._made += 1
        number = f"terminal-{self._made}"
        self.terminals[number] = terminal = _Terminal(stream, params.get("outputByteLimit") or _OUTPUT)
        terminal.reading = asyncio.get_running_loop().create_task(terminal.read())
        return {"terminalId": number}

    async def _output(self, params: dict[str, Any]) -> Answer:
        return self.terminals[params["terminalId"]].output()

    async def _wait(self, params: dict[str, Any]) -> Answer:
        return await self.terminals[params["terminalId"]].wait()

    async def _kill(self, params: dict[str, Any]) -> Answer:
        await self.terminals[params["terminalId"]].stream.kill()
        return {}

    async def close(self) -> None:
        """Kill all commands that still run."""
        for terminal in self.terminals.values():
            await terminal.stream.kill()
            if terminal.reading is not None:
                terminal.reading.cancel()

    async def _release(self, params: dict[str, Any]) -> Answer:
        """Kill a command that still runs; what it printed is kept for the trajectory."""
        await self.terminals[params["terminalId"]].stream.kill()
        return {}


def _signal_name(code: int | None) -> str:
    try:
        return signal.Signals((code or 128) - 128).name
    except ValueError:
        return str(code)


logger = logging.getLogger(__name__)

_CLOSING = 5.0  # seconds


class _Lines:
    """Messages as lines of a program's streams: what the SDK calls a transport."""

    def __init__(self, stream: ProgramStream) -> None:
        self._stream = stream
        self._lines = stream.lines()

    async def send(self, message: dict[str, Any]) -> None:
        try:
            await self._stream.send(json.dumps(message).encode() + b"\n")
        except anyio.BrokenResourceError:
            raise ConnectionError("Connection closed") from None  # As the SDK says of what cannot be read.

    async def receive(self) -> dict[str, Any] | None:
        async for line in self._lines:
            with contextlib.suppress(ValueError):  # Something else that the program prints.
                if isinstance(message := json.loads(line), dict):
                    return message
        return None

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
