"""The gateway of one process: a thread with a loop, a socket in a private directory, and the sessions under way."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_evocode.environments.scratch import Scratch
from pytest_evocode.gateway.exchanges import Exchange
from pytest_evocode.gateway.routes import Route
from pytest_evocode.gateway.session import GatewaySession
from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.llm.usage import Api

if TYPE_CHECKING:
    from pytest_evocode.gateway.server import Server

_ENDING = 10.0  # seconds
_Result = TypeVar("_Result")


class Gateway:
    """Serves the programs of all attempts of a process; nothing is started before its address is asked for.

    Any thread may call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, GatewaySession] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: Server | None = None
        self._scratch: Scratch | None = None
        self._port: int | None = None

    @property
    def socket(self) -> Path:
        """The Unix socket, which only this user can reach."""
        with self._lock:
            self._start()
            assert self._scratch is not None
            return self._scratch.path / "gateway"

    @property
    def port(self) -> int:
        """The port at 127.0.0.1, for programs that share the host's loopback; there is none before it is asked for."""
        with self._lock:
            server = self._start()
            if self._port is None:
                self._port = self._call(server.listen_on_loopback())
            return self._port

    def open(
        self,
        *routes: Route,
        spending: AttemptSpending | None = None,
        begin: Callable[[int, Api, Any], None] | None = None,
        record: Callable[[Exchange], None] | None = None,
        on_end: Callable[[], None] | None = None,
        earlier: Iterable[Exchange] = (),
        token: str | None = None,
    ) -> GatewaySession:
        """Open a session for one program.

        Args:
            routes: Where its requests go, at most one for each family of APIs.
            spending: The account that replies are charged to, whose budget ends the session and whose clock stands
                while the provider is waited for.
            begin: Gets each request to a model as it comes, before ``record`` gets it with its answer: its number, its
                API and its JSON value.
            record: Gets each exchange, one at a time, in a thread of the session; ``close`` raises what it raised.
            on_end: Called once, in a thread of its own, when the program need not go on: the budget is used up, or the
                provider was given up.
            earlier: Exchanges that an earlier session has paid for; requests like theirs get the same answers.
            token: That of a session that was closed, for a program that has it by now; None for a new one.
        """
        session = GatewaySession(
            routes,
            spending=spending,
            begin=begin,
            record=record,
            on_end=on_end,
            earlier=earlier,
            token=token,
        )
        session.stop = self._stop
        with self._lock:
            self._sessions[session.token] = session
        return session

    def close(self) -> None:
        """Cut off all that is under way, and end the thread."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None and self._thread is not None and self._server is not None:
                with contextlib.suppress(TimeoutError):
                    asyncio.run_coroutine_threadsafe(self._server.close(), loop).result(_ENDING)
                loop.call_soon_threadsafe(loop.stop)
                self._thread.join(_ENDING)
                if not self._thread.is_alive():
                    loop.close()
            if self._scratch is not None:
                self._scratch.close()
            self._server = self._scratch = self._port = None
        atexit.unregister(self.close)

    def _start(self) -> Server:
        """Start the thread; the caller holds the lock."""
        if self._server is None:
            # Half a second, and megabytes, which sessions without such programs do without.
            from pytest_evocode.gateway.server import Server

            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
            self._thread.start()
            self._scratch = Scratch("gateway")
            self._server = self._call(_serve(self._sessions, self._scratch.path / "gateway", Server))
            atexit.register(self.close)
        return self._server

    def _call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _stop(self, session: GatewaySession) -> None:
        with self._lock:
            self._sessions.pop(session.token, None)
            loop = self._loop
        if loop is not None:
            with contextlib.suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(_cut_off(session), loop).result(_ENDING)


async def _serve(sessions: dict[str, GatewaySession], path: Path, kind: type[Server]) -> Server:
    server = kind(sessions)
    await server.listen(path)
    return server


async def _cut_off(session: GatewaySession) -> None:
    tasks = list(session.tasks)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_ENDING)


_of_process = Gateway()


def gateway_of_process() -> Gateway:
    """Return the one gateway of this process, which ends with it."""
    return _of_process
