"""The hosts that a phase may reach, as ``allowed_hosts`` of task.toml lists them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")
_LONGEST_NAME, _LONGEST_LABEL = 253, 63
# Some resolvers read "127.1", "0x7f.1" and "2130706433" as addresses: their last part is a number.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def parse_address(text: str) -> Address | None:
    """Return the address that a text is, without brackets; one of IPv4 that is written as IPv6 is one of IPv4.

    >>> parse_address("[::ffff:192.0.2.1]"), parse_address("fe80::1%eth0"), parse_address("127.1")
    (IPv4Address('192.0.2.1'), None, None)
    """
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if "%" in text:  # A zone means something on one machine only.
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def parse_name(text: str) -> str | None:
    """Return a host's name in the one form in which names are compared; None where a text is no name.

    >>> parse_name("Example.ORG."), parse_name("bücher.example"), parse_name("127.1"), parse_name("a..b")
    ('example.org', 'xn--bcher-kva.example', None, None)
    """
    name = text.lower().removesuffix(".")
    if not name.isascii():
        import idna

        try:
            name = idna.encode(name, uts46=True).decode()
        except idna.IDNAError:
            return None
    labels = name.split(".")
    fine = all(len(label) <= _LONGEST_LABEL and _LABEL.fullmatch(label) for label in labels)
    return name if fine and len(name) <= _LONGEST_NAME and not _NUMBER.fullmatch(labels[-1]) else None


def parse_entry(text: str) -> str | None:
    """Return an entry of ``allowed_hosts`` in its one form; None where it is none.

    >>> parse_entry("*.Example.org"), parse_entry("192.0.2.0/24"), parse_entry("https://example.org")
    ('*.example.org', '192.0.2.0/24', None)
    """
    text = text.strip()
    if text.startswith("*."):
        name = parse_name(text[2:])
        return f"*.{name}" if name else None
    if "/" in text:
        try:
            return None if "%" in text else str(ipaddress.ip_network(text))
        except ValueError:
            return None
    address = None if text.startswith("[") else parse_address(text)
    return str(address) if address else parse_name(text)


@dataclass(frozen=True, slots=True)
class Allowlist:
    """What may be reached: entries of ``allowed_hosts``, each in the form of :func:`parse_entry`.

    >>> hosts = Allowlist.of(["example.org", "*.example.net", "192.0.2.0/24"])
    >>> hosts.has_name("example.org"), hosts.has_name("www.example.org"), hosts.has_name("evilexample.org")
    (True, False, False)
    >>> hosts.has_name("a.b.example.net"), hosts.has_name("example.net")
    (True, False)
    >>> hosts.has_address(parse_address("192.0.2.7")), hosts.has_address(parse_address("192.0.3.7"))
    (True, False)
    """

    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Allowlist:
        """Return the list of some entries; those that are none are left out, and so are repeated ones."""
        return cls(tuple(dict.fromkeys(entry for each in entries if (entry := parse_entry(each)))))

    def with_hosts(self, entries: Iterable[str]) -> Allowlist:
        """Return the list with more entries."""
        return Allowlist.of((*self.hosts, *entries))

    def has_name(self, name: str) -> bool:
        """Tell whether a name, as :func:`parse_name` returns it, is listed or is below one that has a wildcard."""
        parts = name.split(".")
        wildcards = ("*." + ".".join(parts[number:]) for number in range(1, len(parts)))
        return name in self.hosts or any(wildcard in self.hosts for wildcard in wildcards)

    def has_address(self, address: Address, *, by_itself: bool = False) -> bool:
        """Tell whether an address is listed, or is in a range that is; only the former counts ``by_itself``."""
        networks = (network for entry in self.hosts if (network := _network(entry)))
        whole = address.max_prefixlen
        return any(address in network for network in networks if not by_itself or network.prefixlen == whole)


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry)
    except ValueError:
        return None
