"""Where a connection to a host goes: the decision by name and by address, and the connection itself."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pytest_evocode.environments.egress.addresses import refusal_of_address
from pytest_evocode.environments.egress.gate import EgressGate
from pytest_evocode.tasks.allowlist import Address, parse_address, parse_name

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Finds the addresses of a name; raises OSError where there are none."""

_RESOLVING, _CONNECTING = 10.0, 15.0  # seconds
_MOST_ADDRESSES = 4  # that are tried
_AUTHORITY = re.compile(r"(\[[0-9A-Za-z:.%]+\]|[^\[\]:@/\\?#\s]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Route:
    """A connection that is allowed, and there."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: str
    """The host as it is written in an authority."""
    port: int
    name: str | None
    """The name in the form in which names are compared; None where an address was asked for."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no connection."""

    status: int
    why: str


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


async def system_resolver(name: str) -> Sequence[str]:
    """Ask whom this machine asks."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def find_route(gate: EgressGate, resolve: Resolve, host: str, port: int) -> Route | Refusal:
    """Connect to a host where that is allowed; where it is not, the gate counts it."""
    addresses = await _addresses(gate, resolve, host, port)
    if isinstance(addresses, Refusal):
        return addresses
    trouble = "there is no way to it"
    for address in addresses[:_MOST_ADDRESSES]:
        try:
            # To the address that was looked at: a name may lead elsewhere when it is asked for again.
            streams = await asyncio.wait_for(asyncio.open_connection(str(address), port), _CONNECTING)
        except TimeoutError:
            trouble = f"no answer within {_CONNECTING:g} s"
        except OSError as error:
            trouble = error.strerror or str(error)
        else:
            return Route(*streams, host, port, parse_name(host))
    return Refusal(502, f"{host}:{port} is allowed and cannot be reached: {trouble}")


async def _addresses(gate: EgressGate, resolve: Resolve, host: str, port: int) -> list[Address] | Refusal:
    def deny(why: str) -> Refusal:
        gate.note(host, port, why)
        return Refusal(403, f"{host}:{port} is not allowed in this phase: {why}")

    if (address := parse_address(host)) is not None:
        why = refusal_of_address(address, gate, by_name=False)
        return [address] if why is None else deny(why)
    if (name := parse_name(host)) is None:
        return deny("it is no name of a host")
    if not (gate.is_open or gate.hosts.has_name(name)):
        return deny("the name is not listed")
    try:
        found = await asyncio.wait_for(resolve(name), _RESOLVING)
    except (OSError, UnicodeError) as error:
        trouble = getattr(error, "strerror", None) or "it has no address"
        return Refusal(502, f"{host} is allowed and cannot be resolved: {trouble}")
    addresses = [each for text in dict.fromkeys(found) if (each := _resolved(text)) is not None]
    refusals = {each: refusal_of_address(each, gate, by_name=True) for each in addresses}
    good = [each for each, why in refusals.items() if why is None]
    if refusals and not good:
        first, why = next(iter(refusals.items()))
        return deny(f"it leads to {first}: {why}")
    return good


def _resolved(text: str) -> Address | None:
    # A zone says by which interface; whatever has one is link-local, and refused by its address.
    try:
        return parse_address(text.partition("%")[0]) or ipaddress.ip_address(text)
    except ValueError:
        return None
