"""Services that all forks of an attempt share: as built, and with nothing in them that can be written."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.compose.creation import copy_files, create_alike, volume_mount
from pytest_evocode.environments.docker.compose.group import GROUP, ServiceGroup, ServicesPlan, remove_group
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient


class SharedServices:
    """The services that ``[metadata.evocode.sidecars]`` calls shared, started for the first fork.

    They are not those of the agent: what an agent can reach is never connected to where a suite runs.
    """

    def __init__(self, plan: ServicesPlan, of_agent: ServiceGroup) -> None:
        """``of_agent`` has the containers that these are to be like."""
        self._plan = plan
        self._client: APIClient = plan.client
        self._of_agent = of_agent
        self._label = uuid.uuid4().hex[:12]
        self._lock = threading.Lock()
        self._containers: dict[str, str] = {}
        self._networks: set[str] = set()

    def attach(self, networks: Mapping[str, str]) -> None:
        """Let the fork with these networks reach them, by their names."""
        with self._lock:
            if not self._containers:
                self._start(networks)
                return
            for name, container in self._containers.items():
                for network, names in self._plan.project.sidecars[name].networks.items():
                    with faults(f"connecting the service {name}"):
                        self._client.connect_container_to_network(container, networks[network], aliases=list(names))

    def _start(self, networks: Mapping[str, str]) -> None:
        labels = {**self._plan.labels, GROUP: self._label}
        for name, service in self._plan.project.sidecars.items():
            if service.start != "shared":
                continue
            with faults(f"looking at the service {name}"):
                template = self._client.inspect_container(self._of_agent.containers[name])
                mounts = []
                for mount in template["Mounts"]:
                    if mount["Type"] == "volume":
                        made = self._client.create_volume(labels=labels)["Name"]
                        mounts.append(volume_mount(made, mount["Destination"], writable=False, empty=False))
            container = create_alike(
                self._client,
                template,
                service,
                image=self._plan.images[name],
                mounts=mounts,
                networks=networks,
                labels=labels,
                read_only=True,
            )
            self._containers[name] = container
            copy_files(self._client, container, service.copies)
            with faults(f"starting the service {name}"):
                self._client.start(container)

    def detach(self, networks: Mapping[str, str]) -> None:
        """Part them from a fork that is removed."""
        from docker.errors import APIError

        with self._lock:
            for container in self._containers.values():
                for network in networks.values():
                    with contextlib.suppress(APIError):
                        self._client.disconnect_container_from_network(container, network, force=True)

    def close(self) -> None:
        """Remove them."""
        with self._lock, contextlib.suppress(EnvironmentFault):
            if self._containers:
                remove_group(self._client, f"{GROUP}={self._label}")
            self._containers.clear()
