"""Which addresses a connection may go to, whatever name led there."""

from __future__ import annotations

import ipaddress
import socket

from pytest_evocode.environments.egress.gate import EgressGate
from pytest_evocode.tasks.allowlist import Address

# What answers requests for credentials in some clouds, at addresses that look public or merely private.
_METADATA = {
    ipaddress.ip_address(address)
    for address in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")
}
# What carries an address of IPv4 inside leads to it on some networks. The first is how networks without IPv4 reach it.
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_EMBEDDING = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96")))


def refusal_of_address(address: Address, gate: EgressGate, *, by_name: bool) -> str | None:
    """Return why no connection may go to an address, None where one may.

    The host itself and what is next to it (its loopback, its own addresses, link-local ones and metadata services) has
    to be listed as that very address. Other addresses that are not public have to be listed, too, be it by a range.

    Args:
        address: Where the connection would go.
        gate: What the environment may reach.
        by_name: Whether a name that may be reached led to it.
    """
    hosts = gate.hosts
    if is_near(address):
        return None if hosts.has_address(address, by_itself=True) else "the address is the host's own or next to it"
    if hosts.has_address(address):
        return None
    if not address.is_global:
        return "the address is not public, and not listed"
    return None if by_name or gate.is_open else "the address is not listed"


def is_near(address: Address) -> bool:
    """Tell whether an address is one of this machine, or of what only its neighbours reach."""
    if address in _TRANSLATED:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return is_near(inner) or not inner.is_global
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
