"""The network of one sandbox: none, the host's, or a loopback with the proxy's port on it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.egress import PROXY_PORT, PROXY_VARIABLES, EgressGate
from pytest_evocode.tasks import Allowlist, Network

if TYPE_CHECKING:
    from pytest_evocode.environments.egress.proxy import EgressProxy, ServedEnvironment

_LISTENING = 30.0  # seconds for a worker to make a socket


class SandboxNetwork:
    """The network of one sandbox.

    The proxy's port is a socket of the session itself, made in the sandbox's network: nothing inside takes part, and
    nothing inside can end it.
    """

    def __init__(self, proxy: Callable[[], EgressProxy] | None, network: Network | None) -> None:
        self._proxy = proxy
        self.gate = EgressGate(network, default="no-network") if isinstance(network, Allowlist) else None
        # The host's network includes its loopback services, so only a task that asks for it gets it.
        self.is_shared = network == "public"
        self._served: ServedEnvironment | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which programs find the way out."""
        return {} if self.gate is None else PROXY_VARIABLES

    def open(self, ask: Callable[..., dict[str, Any]]) -> None:
        """Serve the proxy's port of a sandbox that has been started; ``ask`` has a worker do something in it."""
        if self.gate is None:
            return
        assert self._proxy is not None  # Kept sandboxes have none, and no allowlist.
        from pytest_evocode.environments.egress.proxy import ServedEnvironment

        listener = socket.socket(fileno=ask("listen", timeout=_LISTENING, port=PROXY_PORT)["fd"])
        self._served = self._served or ServedEnvironment(self._proxy(), self.gate)
        self._served.listen(listener)

    def close(self) -> None:
        """End all connections."""
        served, self._served = self._served, None
        if served is not None:
            served.close()
