"""The network of one container: none, one with a way to the internet, or a loopback with the proxy's port on it.

On the loopback of each is, on demand, a port that leads to a server of the session.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.environments.egress import PROXY_PORT, PROXY_VARIABLES, SESSION_PORT, EgressGate
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Allowlist, Network

if TYPE_CHECKING:
    from docker import APIClient

    from pytest_evocode.environments.docker.container_settings import ContainerSettings
    from pytest_evocode.environments.docker.relay_container import RelayContainer
    from pytest_evocode.environments.docker.snapshots import DockerSnapshot
    from pytest_evocode.environments.egress.session_server import SessionServer


class ContainerNetwork:
    """The network of one container, which :meth:`open` makes and :meth:`close` removes."""

    def __init__(self, settings: ContainerSettings, network: Network | None) -> None:
        self.settings = settings
        self._wanted = network
        self.gate = EgressGate(network, default="public") if isinstance(network, Allowlist) else None
        self._relay: RelayContainer | None = None
        self._server: SessionServer | None = None
        self._server_relay: RelayContainer | None = None
        self._serving = threading.Lock()

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
        return None if self.is_none or self.gate is not None else self.settings.public_network()

    @property
    def has_hosts(self) -> bool:
        """Whether the engine writes ``/etc/hosts``: for a container with a network, and Podman for all."""
        return (not self.is_none and self.gate is None) or _is_podman(self.settings.client)

    # What a container in several networks has; see the services of compose files.

    @property
    def mounts(self) -> Sequence[Mapping[str, Any]]:
        """Mounts that the container has because others have them, once the network is open."""
        return ()

    @property
    def host_options(self) -> Mapping[str, Any]:
        """More arguments of ``create_host_config``."""
        return {}

    @property
    def endpoints(self) -> dict[str, Any] | None:
        """The names that the container has in its first network, as the engine takes them."""
        return None

    def join(self, container: str) -> None:
        """Connect a container that is not started yet to the other networks."""

    def held(self) -> AbstractContextManager[None]:
        """Keep what else is in the network as it is while the context lasts."""
        return contextlib.nullcontext()

    def complete(self, snapshot: DockerSnapshot) -> DockerSnapshot:
        """Return a snapshot with what else is in the network, which is held meanwhile."""
        return snapshot

    def of_fork(self, network: Network | None, snapshot: DockerSnapshot, *, anew: bool) -> ContainerNetwork:
        """Return the network of a fork; ``anew`` says that it has the files of the image, with some of the snapshot."""
        return ContainerNetwork(self.settings, network)

    def open(self) -> str:
        """Return the engine's network mode for a container."""
        self.close()
        if self.gate is None:
            return "none" if self.is_none else self.settings.public_network()
        return self.open_gate(self.gate)

    def open_gate(self, gate: EgressGate, **networking: Any) -> str:
        """Do as :meth:`open` for a network with a gate; ``networking`` is for what holds the network."""
        from pytest_evocode.environments.docker.relay_container import RelayContainer
        from pytest_evocode.environments.egress.exchange import ServedEnvironment

        served = ServedEnvironment(self.settings.proxy(), gate)
        self._relay = RelayContainer(self.settings, served, port=PROXY_PORT)
        self._relay.start(**networking)
        return f"container:{self._relay.container}"

    @contextlib.contextmanager
    def serve(self, path: Path, container: str) -> Iterator[str]:
        """Do as :meth:`~pytest_evocode.environments.protocol.Environment.serve` for a container that runs.

        What listens is there until the container has another network, or is gone.
        """
        from pytest_evocode.environments.egress.session_server import SessionServer

        with self._serving:
            server = self._server = self._server or SessionServer(self.settings.proxy().loop)
            if self._server_relay is None:
                self._listen(server, container)
        with server.open(path):
            yield f"http://127.0.0.1:{SESSION_PORT}"

    def _listen(self, server: SessionServer, container: str) -> None:
        from pytest_evocode.environments.docker.relay_container import RelayContainer

        holder = container if self._relay is None else self._relay.container
        relay = RelayContainer(self.settings, server, port=SESSION_PORT)
        relay.start(network=f"container:{holder}")
        self._server_relay = relay

    def begun_anew(self, container: str) -> None:
        """Follow a container that was started again into its new network; where a gate's relay holds one, it stays."""
        with self._serving:
            if self._relay is None and self._server_relay is not None:
                self.close_server()
                if self._server is not None and self._server.is_open:
                    self._listen(self._server, container)

    def close_server(self) -> None:
        """Remove what listens for a server of the session, before the container is removed whose network it is in."""
        relay, self._server_relay = self._server_relay, None
        if relay is not None:
            with contextlib.suppress(EnvironmentFault):  # As for the gate's.
                relay.stop()

    def close(self) -> None:
        """Remove what was made; the container must be gone."""
        self.close_server()
        relay, self._relay = self._relay, None
        if relay is not None:
            with contextlib.suppress(EnvironmentFault):  # The session's end, or the next one, removes it by its label.
                relay.stop()


def _is_podman(client: APIClient) -> bool:
    """Tell whether an engine is Podman, which answers most of the calls that Docker does."""
    with faults("asking the engine what it is"):
        components = client.version().get("Components") or ()
    return any("podman" in str(each.get("Name", "")).lower() for each in components)
