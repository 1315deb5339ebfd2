"""Sessions with MCP servers during a turn, by the ``mcp`` SDK; importing this takes a second."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import Future, wait
from typing import Any

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread
import httpcore2
import httpx2
import mcp
from httpcore2._backends.anyio import AnyIOStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, PaginatedRequestParams, Tool, jsonrpc_message_adapter

from pytest_evocode.agents.mcp.servers import ToolServer
from pytest_evocode.agents.program_streams import ProgramStream
from pytest_evocode.environments import Environment
from pytest_evocode.environments.programs import User

_CONNECTING = 30.0  # seconds
_READING = 300.0  # seconds, as the SDK has it: a server may hold a stream open
# Bash passes what it reads to a connection and back, and ends with either; it says first that there is one.
_CONNECT = 'exec 3<>"/dev/tcp/$1/$2" || exit 7; printf C; { cat <&3; kill 0; } & cat >&3; kill 0'
_PROXIES = 'printf "%s\\n" "${HTTP_PROXY:-$http_proxy}" "${HTTPS_PROXY:-$https_proxy}" "${NO_PROXY:-$no_proxy}"'


class _ContainerNetwork(httpcore2.AsyncNetworkBackend):
    """Opens connections by a program in the container, which runs as the agent's user."""

    def __init__(self, environment: Environment, user: User | None, portal: anyio.from_thread.BlockingPortal) -> None:
        self._environment, self._user, self._portal = environment, user, portal

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        argv = ("bash", "-c", _CONNECT, "bash", host.strip("[]"), str(port))
        stream = await ProgramStream.open(self._environment, self._portal, argv, user=self._user)
        try:
            with anyio.fail_after(min(timeout or _CONNECTING, _CONNECTING)):
                await stream.receive(1)
        except TimeoutError:
            await stream.aclose()
            raise httpcore2.ConnectTimeout(f"{host}:{port} does not answer in the container") from None
        except anyio.EndOfStream:
            why = stream.errors.strip().splitlines() or ["no connection"]
            raise httpcore2.ConnectError(f"{host}:{port} is not reached from the container: {why[0]}") from None
        return AnyIOStream(stream)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def http_client(
    environment: Environment,
    user: User | None,
    portal: anyio.from_thread.BlockingPortal,
    url: str,
    headers: Mapping[str, str],
) -> httpx2.AsyncClient:
    """Return a client whose connections all come from inside the container, by the proxy that programs find there."""
    said = environment.exec(_PROXIES, user=user, timeout=_CONNECTING).output.split("\n")
    plain, secure, spared = [*said, "", "", ""][:3]
    address = httpx2.URL(url)
    proxy = secure if address.scheme == "https" else plain
    if any(each and address.host.endswith(each) for each in (part.strip() for part in spared.split(","))):
        proxy = ""
    transport = httpx2.AsyncHTTPTransport(proxy=proxy or None, verify=_authorities(), trust_env=False)
    # There is no public way to give a transport its network.
    transport._pool._network_backend = _ContainerNetwork(environment, user, portal)
    timeout = httpx2.Timeout(_CONNECTING, read=_READING)
    return httpx2.AsyncClient(transport=transport, headers=dict(headers), timeout=timeout, trust_env=False)


def _authorities() -> Any:
    """Return what certificates are checked with: this machine's own setting, else the client's."""
    import ssl

    bundle = os.environ.get("SSL_CERT_FILE")
    return ssl.create_default_context(cafile=bundle) if bundle else True


_STARTING = 60.0  # seconds for a server to start and to list its tools
_LISTENING = 20.0  # seconds in which a server that takes no connection yet may come up
_PAUSE = 0.5  # seconds between two attempts
_CLOSING = 5.0  # seconds for a server to take that its session has ended
_PAGES = 100  # of a list of tools
_SHOWN_LINES = 10  # of what a server printed to stderr


class ServerSession:
    """A session with one server, which is started in the container or reached from there.

    Args:
        server: The server.
        environment: Where the agent works.
        user: The agent's user there.
        portal: The event loop that the session belongs to.
    """

    def __init__(
        self,
        server: ToolServer,
        environment: Environment,
        user: User | None,
        portal: anyio.from_thread.BlockingPortal,
    ) -> None:
        self._server, self._environment, self._user, self._portal = server, environment, user, portal
        self._program: ProgramStream | None = None
        self._end = anyio.Event()
        self._failure = ""
        self._session: mcp.ClientSession | None = None
        self.tools: list[Tool] = []

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Hold the session until :meth:`end`; it is started when the server has listed its tools."""
        begun = anyio.current_time()
        while True:
            try:
                await self._hold(task_status)
                return
            except BaseException as error:
                if self._session is not None:  # Told to whoever calls a tool next.
                    self._failure = _words(error)
                    if not isinstance(error, Exception | BaseExceptionGroup):
                        raise
                    return
                late = anyio.current_time() - begun > _LISTENING
                found = _first(error)
                answered = isinstance(found, MCPError) or not isinstance(found, Exception)
                if self._server.transport == "stdio" or late or answered:
                    raise
            await anyio.sleep(_PAUSE)

    async def _hold(self, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with self._transport() as (read, write), mcp.ClientSession(read, write) as session:
            with anyio.fail_after(_STARTING):
                await session.initialize()
                self.tools = await _list_tools(session)
            self._session = session
            task_status.started()
            await self._end.wait()

    def _transport(self) -> contextlib.AbstractAsyncContextManager[Any]:
        server = self._server
        if server.transport == "stdio":
            return self._by_program()
        if server.transport == "sse":
            return sse_client(server.url, httpx_client_factory=lambda *given, **named: self._client())
        return self._by_http()

    def _client(self) -> Any:
        server = self._server
        return http_client(self._environment, self._user, self._portal, server.url, server.headers)

    @contextlib.asynccontextmanager
    async def _by_http(self) -> AsyncIterator[Any]:
        client = await anyio.to_thread.run_sync(self._client)
        async with client, streamable_http_client(self._server.url, http_client=client) as streams:
            yield streams

    @contextlib.asynccontextmanager
    async def _by_program(self) -> AsyncIterator[Any]:
        """Start the server in the container; a message is a line."""
        argv = (self._server.command, *self._server.args)
        env = self._server.env
        program = await ProgramStream.open(self._environment, self._portal, argv, user=self._user, env=env)
        self._program = program
        to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, from_session = anyio.create_memory_object_stream[SessionMessage](0)

        async def receive() -> None:
            async with to_session:
                with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    async for line in program.lines():
                        if line.strip():
                            await to_session.send(_parse(line))

        async def send() -> None:
            async with from_session:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for message in from_session:
                        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        await program.send(f"{text}\n".encode())

        async with anyio.create_task_group() as group:
            group.start_soon(receive)
            group.start_soon(send)
            try:
                yield read, write
            finally:
                await program.aclose()
                group.cancel_scope.cancel()
                for stream in (read, write, to_session, from_session):
                    stream.close()

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool; raises ConnectionError, with what the server said last, where there is no answer."""
        if self._session is None or self._failure or (self._program is not None and self._program.ended):
            raise ConnectionError(self.ending)
        try:
            return await self._session.call_tool(tool, arguments)
        except MCPError as error:
            if self._program is not None and self._program.ended:
                raise ConnectionError(self.ending) from None
            raise ConnectionError(f"the server answers with an error: {error.message}") from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError, OSError) as error:
            raise ConnectionError(self._failure or _words(error)) from None
        except ValueError as error:
            raise ConnectionError(f"the server's answer is of no known form: {error}") from None

    async def end(self) -> None:
        """End the session, and the server where it was started for it."""
        self._end.set()

    @property
    def ending(self) -> str:
        """How a server has ended, with the last lines that it printed to stderr."""
        if self._program is None:
            return self._failure or "the connection has ended"
        how = "" if self._program.exit_code is None else f" with exit code {self._program.exit_code}"
        last = "\n".join(self._program.errors.strip().splitlines()[-_SHOWN_LINES:])
        return f"the server has ended{how}" + (f". Its last lines:\n{last}" if last else "")


class TurnSessions:
    """The sessions of a turn, in an event loop of their own."""

    def __init__(self, environment: Environment, user: User | None) -> None:
        self._environment, self._user = environment, user
        self._stack = contextlib.ExitStack()
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        self._sessions: dict[str, tuple[ServerSession, Future[None]]] = {}

    def start(self, server: ToolServer) -> list[Tool]:
        """Begin a session and return the server's tools; raises ConnectionError where it cannot be begun."""
        session = ServerSession(server, self._environment, self._user, self._portal)
        try:
            future, _ = self._portal.start_task(session.serve)
        except BaseException as error:
            if not isinstance(error, Exception | BaseExceptionGroup):
                raise
            ended = session._program is not None
            raise ConnectionError(session.ending if ended else _words(error)) from None
        self._sessions[server.name] = (session, future)
        return session.tools

    def call(self, server: str, tool: str, arguments: dict[str, Any]) -> Future[CallToolResult]:
        """Call a tool; the future raises ConnectionError where there is no answer."""
        return self._portal.start_task_soon(self._sessions[server][0].call, tool, arguments)

    def close(self) -> None:
        """End all sessions."""
        for session, _ in self._sessions.values():
            self._portal.call(session.end)
        # One that is busy, or that the agent has stopped, answers nothing.
        _, late = wait([future for _, future in self._sessions.values()], timeout=_CLOSING)
        for future in late:
            future.cancel()
        self._stack.close()


async def _list_tools(session: mcp.ClientSession) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def _parse(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


def _first(error: BaseException) -> BaseException:
    """Return the error itself, of a group the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _words(error: BaseException) -> str:
    return str(_first(error)) or type(_first(error)).__name__
