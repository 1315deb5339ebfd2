"""The gateway's HTTP server: it finds the session of a request by its token, and has the request forwarded."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path

import aiohttp
from aiohttp import web

from pytest_evocode.gateway.forwarding import Forwarding
from pytest_evocode.gateway.places import PlaceQueue
from pytest_evocode.gateway.requests import Trouble, asked_path, error_of, tokens_in
from pytest_evocode.gateway.routes import Family
from pytest_evocode.gateway.session import GatewaySession

_LONGEST_BODY = 64 * 2**20  # bytes; providers take 32 MB at most
_LARGE = 4 * 2**20  # bytes
_BACKLOG = 512


class Server:
    """Serves requests in the running loop, for the sessions in a mapping by their tokens."""

    def __init__(self, sessions: Mapping[str, GatewaySession]) -> None:
        self._sessions = sessions
        self._places = PlaceQueue()
        self._client = aiohttp.ClientSession(
            # The limits of accounts hold, and what one program is told is not for another.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Content-Type", "User-Agent"),
            timeout=aiohttp.ClientTimeout(),
            trust_env=True,
        )
        app = web.Application(client_max_size=_LONGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # Whoever goes away ends its request. What is encoded goes on as it is.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, auto_decompress=False)

    async def listen(self, path: Path) -> None:
        """Serve at a Unix socket."""
        await self._runner.setup()
        await web.UnixSite(self._runner, path, backlog=_BACKLOG).start()

    async def listen_on_loopback(self) -> int:
        """Serve at a free port of 127.0.0.1 as well, and return it."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        await web.SockSite(self._runner, listener, backlog=_BACKLOG).start()
        port: int = listener.getsockname()[1]
        return port

    async def close(self) -> None:
        """End all connections."""
        with contextlib.suppress(TimeoutError):
            await self._runner.cleanup()
        await self._client.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = asked_path(request.method, request.raw_path)
        if path is None:
            return web.json_response({"error": {"message": "the path begins with no API's name"}}, status=404)
        tokens = tokens_in(request.headers, path.query)
        session = next((found for token in tokens if (found := self._sessions.get(token)) is not None), None)
        if session is None or session.closed or path.family not in session.routes:
            return _refusal(path.family, "token", "this key is of no session under way, or not for this API")
        if not path.is_known:
            return _refusal(path.family, "path", f"the gateway passes no {request.method} {path.path} on")
        length = request.content_length
        is_large = request.can_read_body and (length is None or length > _LARGE)
        with session.serving() as number:
            async with session.large if is_large else contextlib.nullcontext():
                body = await request.read()
                forwarding = Forwarding(
                    session, path, request, body, number=number, client=self._client, places=self._places
                )
                return await forwarding.answer()


def _refusal(family: Family, trouble: Trouble, words: str) -> web.Response:
    status, body = error_of(family, trouble, words)
    return web.Response(status=status, body=body, content_type="application/json")
