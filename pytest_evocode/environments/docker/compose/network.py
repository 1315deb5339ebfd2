"""The network of a container that has services beside it: those of the compose file, closed where the task says so."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_evocode.environments.docker.compose.group import (
    NOWHERE,
    ServiceGroup,
    ServicesPlan,
    ServicesSnapshot,
    SharedServices,
    copy_files,
)
from pytest_evocode.environments.docker.networks import ContainerNetwork, NetworkSettings
from pytest_evocode.environments.docker.snapshots import DockerSnapshot
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Network


@dataclass(frozen=True)
class ComposeSnapshot(DockerSnapshot):
    """A snapshot of ``main`` with what the services beside it held."""

    services: ServicesSnapshot | None = None

    @property
    def reference(self) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`; no later session can find the services."""
        return ""

    def discard(self) -> None:
        """Remove the images and the copies of volumes."""
        if self.services is not None:
            self.services.discard()
        DockerSnapshot.discard(self)


_AS_SAID = ("tmpfs", "cap_drop", "cap_add", "sysctls", "group_add", "extra_hosts")


def _ulimit(name: str, value: Any) -> Mapping[str, Any]:
    soft, hard = (value["soft"], value["hard"]) if isinstance(value, Mapping) else (value, value)
    return {"Name": name, "Soft": soft, "Hard": hard}


class ComposeNetwork(ContainerNetwork):
    """The networks of the compose file, with the services in them.

    Without a network, or with an allowlist, none of them has a way out: ``main`` gets there by the gate alone.
    """

    def __init__(
        self,
        settings: NetworkSettings,
        network: Network | None,
        plan: ServicesPlan,
        *,
        snapshot: ServicesSnapshot | None = None,
        shared: SharedServices | None = None,
        anew: bool | None = None,
    ) -> None:
        """Make nothing yet; ``anew`` says that ``main`` has the files of its image, by default without a snapshot."""
        super().__init__(settings, network)
        self._plan = plan
        self._closed = network == "no-network" or self.gate is not None
        self._snapshot = snapshot
        self._shared = shared
        self._anew = snapshot is None if anew is None else anew
        self._shared_by_forks = SharedServices(plan, closed=self._closed)
        self._group: ServiceGroup | None = None

    @property
    def group(self) -> ServiceGroup:
        """The services; raises EnvironmentFault where they do not run."""
        if self._group is None:
            raise EnvironmentFault("the services are not running")
        return self._group

    @property
    def is_none(self) -> bool:
        """Never: the services are there."""
        return False

    @property
    def has_hosts(self) -> bool:
        """See :class:`ContainerNetwork`."""
        return True

    @property
    def public(self) -> str | None:
        """None: there is no network that a container could be left in."""
        return None

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables of the way out, which no connection to a service takes."""
        found = dict(super().variables)
        for name in ("NO_PROXY", "no_proxy"):
            if name in found:
                found[name] = ",".join([found[name], *self._plan.project.names])
        return found

    @property
    def mounts(self) -> Sequence[Mapping[str, Any]]:
        """See :class:`ContainerNetwork`."""
        return self.group.main_mounts()

    @property
    def host_options(self) -> Mapping[str, Any]:
        """See :class:`ContainerNetwork`."""
        said = self._plan.project.main.settings
        found = {name: said[name] for name in _AS_SAID if said.get(name)}
        if isinstance(said.get("extra_hosts"), list):
            found["extra_hosts"] = dict(re.split("[=:]", each, maxsplit=1) for each in said["extra_hosts"])
        if said.get("ulimits"):
            found["ulimits"] = [_ulimit(name, value) for name, value in said["ulimits"].items()]
        if self.gate is not None:  # Whoever holds the network has them.
            found.pop("sysctls", None)
            found.pop("extra_hosts", None)
        elif self._closed:
            found["dns"] = [NOWHERE]
        return found

    @property
    def endpoints(self) -> dict[str, Any] | None:
        """See :class:`ContainerNetwork`."""
        return self._endpoints() if self.gate is None else None

    def _endpoints(self) -> dict[str, Any]:
        first = next(iter(self._plan.project.main.networks))
        names = list(self._plan.project.main.networks[first])
        return {"EndpointsConfig": {self.group.networks[first]: {"Aliases": names}}}

    def join(self, container: str) -> None:
        """See :class:`ContainerNetwork`."""
        if self.gate is None:
            self._join(container)
        if self._anew:
            copy_files(self.settings.client, container, self._plan.project.main.copies)

    def _join(self, container: str) -> None:
        for name, names in list(self._plan.project.main.networks.items())[1:]:
            self.settings.client.connect_container_to_network(container, self.group.networks[name], aliases=list(names))

    def open(self, image: str, labels: Mapping[str, str]) -> str:
        """See :class:`ContainerNetwork`; the services are there when this returns."""
        self.close()
        group = self._group = ServiceGroup(
            self._plan, closed=self._closed, snapshot=self._snapshot, shared=self._shared
        )
        group.open()
        first = group.networks[next(iter(self._plan.project.main.networks))]
        if self.gate is None:
            return first
        return self.open_gate(
            self.gate, image, labels, network=first, endpoints=self._endpoints(), dns=[NOWHERE], join=self._join
        )

    def close(self) -> None:
        """See :class:`ContainerNetwork`."""
        self.close_gate()
        group, self._group = self._group, None
        if group is not None:
            group.close()
        self._shared_by_forks.close()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """See :class:`ContainerNetwork`."""
        with self.group.held():
            yield

    def complete(self, snapshot: DockerSnapshot) -> DockerSnapshot:
        """See :class:`ContainerNetwork`."""
        try:
            services = self.group.snapshot()
        except BaseException:
            with contextlib.suppress(EnvironmentFault):
                snapshot.discard()
            raise
        return ComposeSnapshot(snapshot.client, snapshot.image, snapshot.image_layers, snapshot.volumes, services)

    def of_fork(self, network: Network | None, snapshot: DockerSnapshot, *, anew: bool) -> ContainerNetwork:
        """See :class:`ContainerNetwork`."""
        assert isinstance(snapshot, ComposeSnapshot)
        return ComposeNetwork(
            self.settings, network, self._plan, snapshot=snapshot.services, shared=self._shared_by_forks, anew=anew
        )
