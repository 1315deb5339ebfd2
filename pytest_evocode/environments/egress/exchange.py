"""What the proxy does with one connection from inside: tunnels by CONNECT, and plain HTTP by absolute addresses.

Where it goes is decided by name and by address.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import re
import socket
import ssl
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import h11

from pytest_evocode.environments.egress.gate import EgressGate
from pytest_evocode.environments.egress.proxy import EgressProxy, Resolve, ServedConnections, both_ways, pass_on, write
from pytest_evocode.errors import RefusedConnection
from pytest_evocode.tasks.allowlist import Address, parse_address, parse_name

_RESOLVING, _CONNECTING = 10.0, 15.0  # seconds
_MOST_ADDRESSES = 4  # that are tried
# What answers requests for credentials in some clouds, at addresses that look public or merely private.
_METADATA = {
    ipaddress.ip_address(address)
    for address in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")
}
# What carries an address of IPv4 inside leads to it on some networks. The first is how networks without IPv4 reach it.
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_EMBEDDING = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96")))
_AUTHORITY = re.compile(r"(\[[0-9A-Za-z:.%]+\]|[^\[\]:@/\\?#\s]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class AllowedConnection:
    """A connection that is allowed, and there."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: str
    """The host as it is written in an authority."""
    port: int
    name: str | None
    """The name in the form in which names are compared; None where an address was asked for."""


def parse_authority(text: str, default_port: int | None) -> tuple[str, int] | None:
    """Return host and port of ``HOST:PORT``; None where a text is nothing of the kind.

    >>> parse_authority("example.org:443", None), parse_authority("[::1]", 80), parse_authority("a@b:1", None)
    (('example.org', 443), ('[::1]', 80), None)
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None or (match[2] is None and default_port is None):
        return None
    port = int(match[2]) if match[2] is not None else default_port or 0
    return (match[1], port) if 0 < port < 2**16 else None


async def find_route(gate: EgressGate, resolve: Resolve, host: str, port: int) -> AllowedConnection:
    """Connect to a host where that is allowed; where it is not, the gate counts it. Raises RefusedConnection."""
    trouble = "there is no way to it"
    for address in (await _addresses(gate, resolve, host, port))[:_MOST_ADDRESSES]:
        try:
            # To the address that was looked at: a name may lead elsewhere when it is asked for again.
            streams = await asyncio.wait_for(asyncio.open_connection(str(address), port), _CONNECTING)
        except TimeoutError:
            trouble = f"no answer within {_CONNECTING:g} s"
        except OSError as error:
            trouble = error.strerror or str(error)
        else:
            return AllowedConnection(*streams, host, port, parse_name(host))
    raise RefusedConnection(502, f"{host}:{port} is allowed and cannot be reached: {trouble}")


async def _addresses(gate: EgressGate, resolve: Resolve, host: str, port: int) -> list[Address]:
    def deny(why: str) -> RefusedConnection:
        gate.note(host, port, why)
        return RefusedConnection(403, f"{host}:{port} is not allowed in this phase: {why}")

    if (address := parse_address(host)) is not None:
        why = _refusal_of_address(address, gate, by_name=False)
        if why is not None:
            raise deny(why)
        return [address]
    if (name := parse_name(host)) is None:
        raise deny("it is no name of a host")
    if not (gate.is_open or gate.hosts.has_name(name)):
        raise deny("the name is not listed")
    try:
        found = await asyncio.wait_for(resolve(name), _RESOLVING)
    except (OSError, UnicodeError) as error:
        trouble = getattr(error, "strerror", None) or "it has no address"
        raise RefusedConnection(502, f"{host} is allowed and cannot be resolved: {trouble}") from None
    addresses = [each for text in dict.fromkeys(found) if (each := _resolved(text)) is not None]
    refusals = {each: _refusal_of_address(each, gate, by_name=True) for each in addresses}
    good = [each for each, why in refusals.items() if why is None]
    if refusals and not good:
        first, why = next(iter(refusals.items()))
        raise deny(f"it leads to {first}: {why}")
    return good


def _resolved(text: str) -> Address | None:
    # A zone says by which interface; whatever has one is link-local, and refused by its address.
    try:
        return parse_address(text.partition("%")[0]) or ipaddress.ip_address(text)
    except ValueError:
        return None


def _refusal_of_address(address: Address, gate: EgressGate, *, by_name: bool) -> str | None:
    """Return why no connection may go to an address, None where one may.

    The host itself and what is next to it (its loopback, its own addresses, link-local ones and metadata services) has
    to be listed as that very address. Other addresses that are not public have to be listed, too, be it by a range.

    Args:
        address: Where the connection would go.
        gate: What the environment may reach.
        by_name: Whether a name that may be reached led to it.
    """
    hosts = gate.hosts
    if _is_near(address):
        return None if hosts.has_address(address, by_itself=True) else "the address is the host's own or next to it"
    if hosts.has_address(address):
        return None
    if not address.is_global:
        return "the address is not public, and not listed"
    return None if by_name or gate.is_open else "the address is not listed"


def _is_near(address: Address) -> bool:
    """Tell whether an address is one of this machine, or of what only its neighbours reach."""
    if address in _TRANSLATED:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return _is_near(inner) or not inner.is_global
    special = address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
    embedding = any(address in network for network in _EMBEDDING)
    broadcast = address == ipaddress.ip_address("255.255.255.255") or address in ipaddress.ip_network("0.0.0.0/8")
    return special or embedding or broadcast or address in _METADATA or _is_own(address)


def _is_own(address: Address) -> bool:
    """Tell whether this machine has the address: only to those can a socket be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


_HEAD = 2**16  # bytes of a request's head at most
_PIECE = 2**16  # bytes that are passed on at once
_PATIENCE = 60.0  # seconds for the head of the first request
_HANDSHAKE = 22  # the kind of record that TLS begins with
_NOBODYS = ""  # no name that anybody may have
_ABSOLUTE = re.compile(r"http://([^/?#]+)([^#]*)", re.IGNORECASE)
# They are about one connection, and not passed on. How a body ends is h11's business.
_OF_ONE_CONNECTION = {
    *(b"connection", b"proxy-connection", b"keep-alive", b"te", b"trailer", b"upgrade"),
    *(b"proxy-authorization", b"proxy-authenticate", b"proxy-authentication-info"),
}


class ProxyConnection:
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
        except (RefusedConnection, OSError, TimeoutError, h11.ProtocolError) as error:
            refusal = (
                error
                if isinstance(error, RefusedConnection)
                else RefusedConnection(400, "no request that a proxy understands")
            )
            with contextlib.suppress(OSError, h11.ProtocolError):
                await self._refuse(refusal)
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

    async def _refuse(self, refusal: RefusedConnection) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = f"evocode: {refusal}\n".encode()
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
                await write(self._writer, self._http.send(event))
            with contextlib.suppress(OSError):
                self._writer.write_eof()

    # Tunnels.

    async def _tunnel(self, request: h11.Request) -> bool:
        target = parse_authority(request.target.decode("latin-1"), None)
        if target is None:
            raise RefusedConnection(400, "CONNECT needs HOST:PORT")
        route = await find_route(self._gate, self._resolve, *target)
        try:
            ready = h11.Response(status_code=200, headers=[], reason=b"Connection established")
            await write(self._writer, self._http.send(ready))
            begun, _ = self._http.trailing_data
            await both_ways(self._pass_up(route, begun), pass_on(route.reader, self._writer))
        finally:
            route.writer.close()
        return False

    async def _pass_up(self, route: AllowedConnection, begun: bytes) -> None:
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
        await write(route.writer, bytes(held))
        await pass_on(self._reader, route.writer)

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
            raise RefusedConnection(400, "this is a proxy: it takes CONNECT, and http:// in full")
        route = await find_route(self._gate, self._resolve, *target)
        path = match[2] if match[2].startswith("/") else f"/{match[2]}"
        # Whatever Host the client sent: the server is the one that was looked at.
        headers = [(b"Host", match[1].encode("latin-1")), (b"Connection", b"close"), *_kept(request.headers, b"host")]
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        try:
            passed_on = h11.Request(method=request.method, target=path.encode("latin-1"), headers=headers)
            await write(route.writer, http.send(passed_on))
            upload = asyncio.ensure_future(self._upload(http, route.writer))
            try:
                await self._answer(http, route.reader)
            finally:
                upload.cancel()
                await asyncio.wait([upload])  # What it ended with says nothing that the answer does not.
                _ = upload.cancelled() or upload.exception()
        except (OSError, h11.RemoteProtocolError) as error:
            raise RefusedConnection(502, f"{route.host} broke off: {error}") from error
        finally:
            route.writer.close()
        return True

    async def _upload(self, http: h11.Connection, upstream: asyncio.StreamWriter) -> None:
        while True:
            event = await self._next_event(self._http, self._reader)
            if isinstance(event, h11.Data | h11.EndOfMessage):
                sent = h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event
                await write(upstream, http.send(sent))
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
            await write(self._writer, self._http.send(event))
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


class _Asked(ssl.SSLObject):
    """A server that only reads what name it is asked for."""

    name: str | None = _NOBODYS


def _take_name(server: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> ssl.AlertDescription:
    assert isinstance(server, _Asked)
    server.name = name
    return ssl.AlertDescription.ALERT_DESCRIPTION_UNRECOGNIZED_NAME  # No more than the name is wanted.


_HOOKS = threading.Lock()


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Say nothing of a name that is not ASCII: Python tells it as an error that nobody sees, which pytest fails for."""

    def hook(error: sys.UnraisableHookArgs) -> None:
        if not (error.exc_type is UnicodeDecodeError and isinstance(error.object, bytes)):
            before(error)

    with _HOOKS:
        before, sys.unraisablehook = sys.unraisablehook, hook
        try:
            yield
        finally:
            sys.unraisablehook = before


@functools.cache
def _context() -> ssl.SSLContext:
    """Return the context of all: making one takes milliseconds, and one whose callback refers to it is never freed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED  # Which will do is the server's business.
    context.sslobject_class = _Asked
    context.sni_callback = _take_name
    return context


class ClientHello:
    """Reads the name of the server in the beginning of what a client sends, in pieces as they come.

    What begins as TLS and is no whole, plain message names nobody: a server may understand it in another way than we.
    """

    def __init__(self) -> None:
        self._begun = False
        self._received = ssl.MemoryBIO()
        server = _context().wrap_bio(self._received, ssl.MemoryBIO(), server_side=True)
        assert isinstance(server, _Asked)
        self._server = server

    @property
    def server_name(self) -> str | None:
        """The name, once it is known."""
        return self._server.name if self._begun else None

    def feed(self, piece: bytes) -> bool:
        """Take a piece, and return whether enough is known: the name, that there is none, or that it is no TLS."""
        if not self._begun and piece[0] != _HANDSHAKE:
            return True
        self._begun = True
        self._received.write(piece)
        try:
            with _silent():
                self._server.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            pass
        return True


class ServedEnvironment(ServedConnections):
    """Those to the proxy, which end as well when the environment's gate allows something else."""

    def __init__(self, proxy: EgressProxy, gate: EgressGate) -> None:
        super().__init__(proxy.loop)
        self._proxy = proxy
        self._gate = gate
        gate.changed = self.drop

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """See :class:`~pytest_evocode.environments.egress.proxy.ServedConnections`."""
        await ProxyConnection(reader, writer, self._gate, self._proxy.resolve).run()
