"""Attempts to leave an environment with an allowlist, run inside of it: a line of JSON says what came of each.

Standard library only. The arguments: the host's addresses, as JSON, and the ports there at which something listens.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from typing import Any

_PATIENCE = 0.5  # seconds; what is not refused at once would be answered by this machine, at once as well
_QUERY = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\4good\4test\0" + struct.pack(">HH", 1, 1)


def _tcp(family: int, address: tuple[Any, ...]) -> str:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as attempt:
            attempt.settimeout(_PATIENCE)
            attempt.connect(address)
            return "connected"
    except OSError as error:
        return f"refused: {error}"


def _udp(family: int, address: tuple[Any, ...]) -> str:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as attempt:
            attempt.settimeout(_PATIENCE)
            attempt.sendto(_QUERY, address)
            attempt.recv(512)
            return "answered"
    except OSError as error:
        return f"refused: {error}"


def _resolved(name: str) -> str:
    try:
        return f"resolved: {socket.getaddrinfo(name, 80)}"
    except OSError as error:
        return f"refused: {error}"


def _proxy(request: str) -> str:
    with socket.create_connection(("127.0.0.1", 3128), timeout=20) as connection:
        connection.sendall(request.encode())
        return connection.recv(2**16).decode("latin-1").split("\r\n")[0]


def _interfaces() -> list[str]:
    with open("/proc/net/dev") as file:
        return [line.partition(":")[0].strip() for line in file if ":" in line]


def _routes() -> list[str]:
    with open("/proc/net/route") as file:
        found = file.read().splitlines()[1:]
    if os.path.exists("/proc/net/ipv6_route"):
        with open("/proc/net/ipv6_route") as file:
            found += [line for line in file if line.split()[-1] != "lo"]
    return found


def _name_servers() -> list[str]:
    try:
        with open("/etc/resolv.conf") as file:
            return [line.split()[1] for line in file if line.startswith("nameserver")]
    except OSError:
        return []


def attempts(own: list[str], tcp: int, udp: int) -> dict[str, Any]:
    """Make all attempts."""
    found: dict[str, Any] = {"interfaces": _interfaces(), "routes": _routes()}
    for address in [*own, "192.0.2.1", "169.254.169.254", "172.17.0.1", "10.0.0.1", "127.0.0.2"]:
        found[f"tcp {address}"] = _tcp(socket.AF_INET, (address, tcp))
    for address in [*own, *_name_servers(), "192.0.2.1", "127.0.0.11", "172.17.0.1"]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        found[f"dns {address}"] = _udp(family, (address, 53))
        found[f"udp {address}"] = _udp(family, (address, udp))
    for address in ("2001:db8::1", "fe80::1", "::ffff:192.0.2.1", "ff02::1"):
        found[f"tcp6 {address}"] = _tcp(socket.AF_INET6, (address, tcp))
        found[f"udp6 {address}"] = _udp(socket.AF_INET6, (address, 53))
    for name in ("good.test", "example.org", "host.docker.internal"):
        found[f"name {name}"] = _resolved(name)
    for host in [*own, "169.254.169.254", "127.0.0.1", "localhost", "host.docker.internal", "evil.test", "[::1]"]:
        found[f"proxy {host}"] = _proxy(f"CONNECT {host}:{tcp} HTTP/1.1\r\nHost: x\r\n\r\n")
    found["proxy origin"] = _proxy("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n")
    return found


if __name__ == "__main__":
    print(json.dumps(attempts(json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
