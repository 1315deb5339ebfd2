"""What the proxy does with one connection from inside: tunnels by CONNECT, and plain HTTP by absolute addresses."""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
from collections.abc import Iterable

import h11

from pytest_evocode.environments.egress.gate import EgressGate
from pytest_evocode.environments.egress.routes import Refusal, Resolve, Route, find_route, parse_authority
from pytest_evocode.tasks.allowlist import parse_name

_HEAD = 2**16  # bytes of a request's head at most
_PIECE = 2**16  # bytes that are passed on at once
_PATIENCE = 60.0  # seconds for the head of the first request
# Of TLS.
_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
_RECORD_HEADER = 5  # bytes
_LONGEST = 2**16  # bytes of a first message; real ones have at most a few thousand
_NOBODYS = ""  # no name that anybody may have
_ABSOLUTE = re.compile(r"http://([^/?#]+)([^#]*)", re.IGNORECASE)
# They are about one connection, and not passed on. How a body ends is h11's business.
_OF_ONE_CONNECTION = {
    *(b"connection", b"proxy-connection", b"keep-alive", b"te", b"trailer", b"upgrade"),
    *(b"proxy-authorization", b"proxy-authenticate", b"proxy-authentication-info"),
}


class Exchange:
    """One connection from inside, which may carry several requests."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: EgressGate, resolve: Resolve
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._gate = gate
        self._resolve = resolve
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)

    async def run(self) -> None:
        """Serve until either side ends; what is broken is closed without a word."""
        try:
            await self._serve()
        except (OSError, TimeoutError, h11.ProtocolError):
            with contextlib.suppress(OSError, h11.ProtocolError):
                await self._refuse(Refusal(400, "no request that a proxy understands"))
        finally:
            self._writer.close()

    async def _serve(self) -> None:
        while True:
            event = await asyncio.wait_for(self._next_event(self._http, self._reader), _PATIENCE)
            if not isinstance(event, h11.Request):
                return
            goes_on = await (self._tunnel(event) if event.method == b"CONNECT" else self._forward(event))
            if not goes_on or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _next_event(self, http: h11.Connection, reader: asyncio.StreamReader) -> object:
        while True:
            event = http.next_event()
            if event is not h11.NEED_DATA:
                return event
            http.receive_data(await reader.read(_PIECE))

    async def _refuse(self, refusal: Refusal) -> bool:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = f"evocode: {refusal.why}\n".encode()
            headers = [
                ("Content-Type", "text/plain; charset=utf-8"),
                ("Content-Length", str(len(body))),
                ("Connection", "close"),
            ]
            for event in (
                h11.Response(status_code=refusal.status, headers=headers),
                h11.Data(body),
                h11.EndOfMessage(),
            ):
                await _write(self._writer, self._http.send(event))
            with contextlib.suppress(OSError):
                self._writer.write_eof()
        return False

    # Tunnels.

    async def _tunnel(self, request: h11.Request) -> bool:
        target = parse_authority(request.target.decode("latin-1"), None)
        if target is None:
            return await self._refuse(Refusal(400, "CONNECT needs HOST:PORT"))
        route = await find_route(self._gate, self._resolve, *target)
        if isinstance(route, Refusal):
            return await self._refuse(route)
        try:
            ready = h11.Response(status_code=200, headers=[], reason=b"Connection established")
            await _write(self._writer, self._http.send(ready))
            begun, _ = self._http.trailing_data
            ways = [
                asyncio.ensure_future(self._pass_up(route, begun)),
                asyncio.ensure_future(_pass_on(route.reader, self._writer)),
            ]
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
        finally:
            route.writer.close()
        return False

    async def _pass_up(self, route: Route, begun: bytes) -> None:
        """Pass on what the client sends, the beginning only when it names no other server than the tunnel may have."""
        hello, held = ClientHello(), bytearray()
        piece = begun or await self._reader.read(_PIECE)
        while piece:
            held += piece
            if hello.feed(piece):
                break
            piece = await self._reader.read(_PIECE)
        if route.name is not None and not self._may_be_asked(hello.server_name, route.name):
            why = f"TLS asks for this name in a connection to {route.name}"
            self._gate.note(hello.server_name or "(no name)", route.port, why)
            raise ConnectionAbortedError
        await _write(route.writer, bytes(held))
        await _pass_on(self._reader, route.writer)

    def _may_be_asked(self, server_name: str | None, name: str) -> bool:
        if server_name is None or self._gate.is_open:
            return True
        asked = parse_name(server_name)
        return asked is not None and (asked == name or self._gate.hosts.has_name(asked))

    # Plain HTTP.

    async def _forward(self, request: h11.Request) -> bool:
        match = _ABSOLUTE.fullmatch(request.target.decode("latin-1"))
        target = parse_authority(match[1], 80) if match else None
        if match is None or target is None:
            return await self._refuse(Refusal(400, "this is a proxy: it takes CONNECT, and http:// in full"))
        route = await find_route(self._gate, self._resolve, *target)
        if isinstance(route, Refusal):
            return await self._refuse(route)
        path = match[2] if match[2].startswith("/") else f"/{match[2]}"
        # Whatever Host the client sent: the server is the one that was looked at.
        headers = [(b"Host", match[1].encode("latin-1")), (b"Connection", b"close"), *_kept(request.headers, b"host")]
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        try:
            passed_on = h11.Request(method=request.method, target=path.encode("latin-1"), headers=headers)
            await _write(route.writer, http.send(passed_on))
            upload = asyncio.ensure_future(self._upload(http, route.writer))
            try:
                await self._answer(http, route.reader)
            finally:
                upload.cancel()
                await asyncio.wait([upload])  # What it ended with says nothing that the answer does not.
                _ = upload.cancelled() or upload.exception()
        except (OSError, h11.RemoteProtocolError) as error:
            return await self._refuse(Refusal(502, f"{route.host} broke off: {error}"))
        finally:
            route.writer.close()
        return True

    async def _upload(self, http: h11.Connection, upstream: asyncio.StreamWriter) -> None:
        while True:
            event = await self._next_event(self._http, self._reader)
            if isinstance(event, h11.Data | h11.EndOfMessage):
                sent = h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event
                await _write(upstream, http.send(sent))
            if not isinstance(event, h11.Data):
                return

    async def _answer(self, http: h11.Connection, upstream: asyncio.StreamReader) -> None:
        while True:
            event = await self._next_event(http, upstream)
            if isinstance(event, h11.InformationalResponse | h11.Response):
                kind = type(event)
                headers = _kept(event.headers)
                event = kind(status_code=event.status_code, headers=headers, reason=event.reason)
            elif isinstance(event, h11.EndOfMessage):
                event = h11.EndOfMessage()
            elif not isinstance(event, h11.Data):
                raise ConnectionAbortedError("no whole answer")
            await _write(self._writer, self._http.send(event))
            if isinstance(event, h11.EndOfMessage):
                return


def _kept(headers: Iterable[tuple[bytes, bytes]], *others: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers that are passed on."""
    headers = list(headers)
    named = {word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")} - {
        b"content-length",
        b"transfer-encoding",
    }
    dropped = _OF_ONE_CONNECTION | named | {*others}
    return [(name, value) for name, value in headers if name not in dropped]


async def _write(writer: asyncio.StreamWriter, data: bytes | None) -> None:
    writer.write(data or b"")
    await writer.drain()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        await _write(writer, piece)
    writer.write_eof()


class ClientHello:
    """Reads the name of the server in the beginning of what a client sends, in pieces as they come.

    What begins as TLS and is no whole, plain message names nobody: a server may understand it in another way than we.
    """

    def __init__(self) -> None:
        self._unread = bytearray()
        self._message = bytearray()
        self.server_name: str | None = None
        """The name, once it is known."""

    def feed(self, piece: bytes) -> bool:
        """Take a piece, and return whether enough is known: the name, that there is none, or that it is no TLS."""
        self._unread += piece
        while self._unread:
            if self._unread[0] != _HANDSHAKE:
                if self._message:  # Another record within the message.
                    self.server_name = _NOBODYS
                return True
            if len(self._unread) < _RECORD_HEADER:
                return False
            end = _RECORD_HEADER + struct.unpack_from(">H", self._unread, 3)[0]
            begun = self._message or self._unread[_RECORD_HEADER:end]
            if begun and begun[0] != _CLIENT_HELLO:
                return True
            if end == _RECORD_HEADER or len(self._message) + len(self._unread) > _LONGEST:
                self.server_name = _NOBODYS
                return True
            if len(self._unread) < end:
                return False
            self._message += self._unread[_RECORD_HEADER:end]
            del self._unread[:end]
            if len(self._message) >= 4 and len(self._message) >= 4 + int.from_bytes(self._message[1:4], "big"):
                try:
                    self.server_name = _server_name(bytes(self._message[4:]))
                except (struct.error, UnicodeDecodeError, IndexError):
                    self.server_name = _NOBODYS
                return True
        return False


def _server_name(hello: bytes) -> str | None:
    position = 2 + 32  # version and random
    position += 1 + hello[position]  # session
    position += 2 + struct.unpack_from(">H", hello, position)[0]  # ciphers
    position += 1 + hello[position]  # compressions
    if position >= len(hello):
        return None
    end = position + 2 + struct.unpack_from(">H", hello, position)[0]
    position += 2
    while position + 4 <= end:
        kind, length = struct.unpack_from(">HH", hello, position)
        position += 4
        if kind == _SERVER_NAME:
            # A list of one: two bytes of length, one of the kind of name, two of length, the name.
            size = struct.unpack_from(">H", hello, position + 3)[0]
            return hello[position + 5 : position + 5 + size].decode("ascii")
        position += length
    return None
