"""The network of one container: none, one with a way to the internet, or a loopback with the proxy's port on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_evocode.environments.egress import PROXY_VARIABLES, EgressGate
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Allowlist, Network

if TYPE_CHECKING:
    from docker import APIClient

    from pytest_evocode.environments.docker.relay_container import RelayContainer
    from pytest_evocode.environments.egress.proxy import EgressProxy, ServedEnvironment


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What the networks of a session's containers have in common."""

    client: APIClient
    public: Callable[[], str]
    """Finds or makes the network for containers that may reach the internet, but never one another."""
    proxy: Callable[[], EgressProxy]


class ContainerNetwork:
    """The network of one container, which :meth:`open` makes and :meth:`close` removes."""

    def __init__(self, settings: NetworkSettings, network: Network | None) -> None:
        self._settings = settings
        self._wanted = network
        self.gate = EgressGate(network, default="public") if isinstance(network, Allowlist) else None
        self._relay: RelayContainer | None = None
        self._served: ServedEnvironment | None = None

    @property
    def is_none(self) -> bool:
        """Whether there is none."""
        return self._wanted == "no-network"

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which programs find the way out."""
        return {} if self.gate is None else PROXY_VARIABLES

    @property
    def public(self) -> str | None:
        """The network by which the container reaches the internet by itself; None where it does not."""
        return None if self.is_none or self.gate is not None else self._settings.public()

    def open(self, image: str, labels: Mapping[str, str]) -> str:
        """Return the engine's network mode for a container; ``image`` is the task's as it was built."""
        if self.gate is None:
            return "none" if self.is_none else self._settings.public()
        from pytest_evocode.environments.docker.relay_container import RelayContainer
        from pytest_evocode.environments.egress.proxy import ServedEnvironment

        self.close()
        proxy = self._settings.proxy()
        self._served = ServedEnvironment(proxy, self.gate)
        self._relay = RelayContainer(self._settings.client, image, labels, proxy)
        self._relay.start(self._served)
        return f"container:{self._relay.container}"

    def close(self) -> None:
        """Remove what was made; the container must be gone."""
        relay, self._relay = self._relay, None
        served, self._served = self._served, None
        if served is not None:
            served.close()
        if relay is not None:
            with contextlib.suppress(EnvironmentFault):  # The session's end, or the next one, removes it by its label.
                relay.stop()
