"""What one environment may reach at the moment, and what it was denied."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from pytest_evocode.results.records import DeniedConnection
from pytest_evocode.tasks import Allowlist, Network

PROXY_PORT = 3128
"""The port of the proxy on the loopback of every environment that has one."""
SESSION_PORT = 31280
"""The port of a container's loopback at which a server of the session is, below those that the kernel gives away."""
_URL = f"http://127.0.0.1:{PROXY_PORT}"
_DIRECT = "localhost,127.0.0.1,::1"
PROXY_VARIABLES = {
    # Node.js looks at the others only if it is told to.
    "NODE_USE_ENV_PROXY": "1",
    **{
        spelling: value
        for name, value in (("HTTP_PROXY", _URL), ("HTTPS_PROXY", _URL), ("ALL_PROXY", _URL), ("NO_PROXY", _DIRECT))
        for spelling in (name, name.lower())
    },
}
"""Variables of every program in an environment that has a proxy."""

_MOST = 50  # different hosts and ports that are kept
_LONGEST = 253  # characters of a host's name


class EgressGate:
    """Decides for one environment; any thread may ask and change it."""

    def __init__(self, network: Network | None, *, default: Network) -> None:
        """Begin with ``network``; None, here and in :meth:`allow`, is the engine's ``default``."""
        self._default = default
        self._network: Network = default if network is None else network
        self._lock = threading.Lock()
        self._denied: dict[tuple[str, int, str], int] = {}
        self._others = 0
        self.changed: Callable[[], None] = lambda: None
        """Called when something else is allowed than before."""

    def allow(self, network: Network | None) -> None:
        """Let through from now on what a network allows; if that is a change, connections that are open are ended.

        With ``public`` that is everything but the host's own services, with ``no-network`` nothing.
        """
        network = self._default if network is None else network
        with self._lock:
            before, self._network = self._network, network
        if network != before:
            self.changed()

    @property
    def is_open(self) -> bool:
        """Whether names are not looked at."""
        return self._network == "public"

    @property
    def hosts(self) -> Allowlist:
        """What is listed."""
        network = self._network
        return network if isinstance(network, Allowlist) else Allowlist()

    def note(self, host: str, port: int, why: str) -> None:
        """Count a connection that is denied."""
        key = (host[:_LONGEST], port, why)
        with self._lock:
            if key in self._denied or len(self._denied) < _MOST:
                self._denied[key] = self._denied.get(key, 0) + 1
            else:
                self._others += 1

    def take_denied(self, phase: Literal["agent", "verifier"]) -> tuple[DeniedConnection, ...]:
        """Return what was denied since the last call, which is then forgotten here."""
        with self._lock:
            denied, others = self._denied, self._others
            self._denied, self._others = {}, 0
        found = [
            DeniedConnection(phase=phase, host=host, port=port, count=count, why=why)
            for (host, port, why), count in denied.items()
        ]
        if others:
            found.append(DeniedConnection(phase=phase, host="", port=0, count=others, why="the list is full"))
        return tuple(found)
