"""Where a connection to a host goes: the decision by name and by address, and the connection itself."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pytest_evocode.environments.egress.gate import EgressGate
from pytest_evocode.tasks.allowlist import Address, parse_address, parse_name

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Finds the addresses of a name; raises OSError where there are none."""

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
        why = _refusal_of_address(address, gate, by_name=False)
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
    refusals = {each: _refusal_of_address(each, gate, by_name=True) for each in addresses}
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
