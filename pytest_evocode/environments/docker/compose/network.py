"""The network of a container that has services beside it: those of the compose file, closed where the task says so."""

from __future__ import annotations

import contextlib
import logging
import posixpath
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.compose.project import Service, VolumeMount
from pytest_evocode.environments.docker.compose.services import (
    GROUP,
    NOWHERE,
    ServicesPlan,
    SharedServices,
    VolumeCopy,
    copy_files,
    create_services,
    remove_group,
)
from pytest_evocode.environments.docker.container_settings import ContainerSettings, health_of, wait_until_healthy
from pytest_evocode.environments.docker.files import paused
from pytest_evocode.environments.docker.networks import ContainerNetwork
from pytest_evocode.environments.docker.snapshots import COMMENT, REPOSITORY, DockerSnapshot, copy_volume
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Network

logger = logging.getLogger(__name__)

_WAITING = 600.0  # seconds for a service that others wait for to end
_LOOK = 0.1  # seconds between two looks at a service
_NO_ADDRESS = "com.docker.network.bridge.inhibit_ipv4"
_SHOWN_LINES = 20


@dataclass(frozen=True)
class ComposeSnapshot(DockerSnapshot):
    """A snapshot of ``main`` with what the services beside it held."""

    images: Mapping[str, str] = field(default_factory=dict)
    """The images of those that forks are to have as they were, by service."""
    service_volumes: Mapping[str, VolumeCopy] = field(default_factory=dict)
    """By :attr:`VolumeMount.key`."""

    @property
    def reference(self) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`; no later session can find the services."""
        return ""

    def discard(self) -> None:
        """Remove the images and the copies of volumes."""
        for volume in self.service_volumes.values():
            volume.contents.close()
        for image in self.images.values():
            discard(self.client, "image", image)
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
        settings: ContainerSettings,
        network: Network | None,
        plan: ServicesPlan,
        *,
        snapshot: ComposeSnapshot | None = None,
        shared: SharedServices | None = None,
        anew: bool | None = None,
    ) -> None:
        """Make nothing yet.

        Args:
            settings: Those of ``main``.
            network: What there is beside the services.
            plan: What services there are to be.
            snapshot: What the services are to hold; None makes them anew, as built.
            shared: The services that all forks share; None for the attempt's own.
            anew: Whether ``main`` has the files of its image, by default without a snapshot.
        """
        super().__init__(settings, network)
        self._client = settings.client
        self._plan = replace(plan, closed=network == "no-network" or self.gate is not None)
        self._snapshot = snapshot
        self._filled = {} if snapshot is None else snapshot.service_volumes
        self._shared = shared
        self._anew = snapshot is None if anew is None else anew
        self._shared_by_forks = SharedServices(self._plan)
        self._id = ""
        self.containers: dict[str, str] = {}
        """The ids of the containers by service, without shared ones."""
        self.networks: dict[str, str] = {}
        """The engine's names of the networks, by those in the compose file."""
        self._volumes: dict[str, str] = {}
        """The same of the volumes that have names there."""

    def container_of(self, service: str) -> str:
        """Return the id of the container of a service; raises EnvironmentFault where there is none."""
        container = self.containers.get(service)
        if container is None:
            raise EnvironmentFault(f"there is no container of the service {service} here")
        return container

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
        """What ``main`` shares with other services."""
        from docker.types import Mount

        return [
            Mount(
                target,
                self._volumes[str(mount.name)],
                type="volume",
                read_only=mount.read_only,
                no_copy=mount.name in self._filled,
            )
            for target, mount in self._plan.project.shared_volumes.items()
        ]

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
        elif self._plan.closed:
            found["dns"] = [NOWHERE]
        return found

    @property
    def endpoints(self) -> dict[str, Any] | None:
        """See :class:`ContainerNetwork`."""
        return self._endpoints() if self.gate is None else None

    def _endpoints(self) -> dict[str, Any]:
        first = next(iter(self._plan.project.main.networks))
        names = list(self._plan.project.main.networks[first])
        return {"EndpointsConfig": {self.networks[first]: {"Aliases": names}}}

    def join(self, container: str) -> None:
        """See :class:`ContainerNetwork`."""
        if self.gate is None:
            self._join(container)
        if self._anew:
            copy_files(self._client, container, self._plan.project.main.copies)

    def _join(self, container: str) -> None:
        for name, names in list(self._plan.project.main.networks.items())[1:]:
            self._client.connect_container_to_network(container, self.networks[name], aliases=list(names))

    def open(self) -> str:
        """Make the networks, volumes and services, and start all in order; see :class:`ContainerNetwork`.

        Raises:
            TaskError: A service does not become what others wait for. In a fork that is not raised: it may be the
                agent's doing, and is for the suite to find.
            EnvironmentFault: The engine failed.
        """
        self.close()
        self._id = uuid.uuid4().hex[:12]
        project = self._plan.project
        for name in project.networks:
            internal = self._plan.closed or name in project.internal
            with faults("making a network of services"):
                self._client.create_network(
                    f"evocode-{self._id}-{name}",
                    driver="bridge",
                    internal=internal,
                    options={_NO_ADDRESS: "true"} if internal else None,  # Or the host could be reached there.
                    labels={**self._plan.labels, GROUP: self._id},
                )
            self.networks[name] = f"evocode-{self._id}-{name}"
        self._create()
        if self._shared is not None:
            self._shared.attach(self.networks)
        for name, container in self.containers.items():
            self._wait_for(project.sidecars[name])
            with faults(f"starting the service {name}"):
                self._client.start(container)
        self._wait_for(project.main)
        first = self.networks[next(iter(project.main.networks))]
        if self.gate is None:
            return first
        return self.open_gate(self.gate, network=first, endpoints=self._endpoints(), dns=[NOWHERE], join=self._join)

    def _create(self) -> None:
        project = self._plan.project
        labels = {**self._plan.labels, GROUP: self._id}
        named = (mount.name for each in (project.main, *project.sidecars.values()) for mount in each.volumes)
        for name in dict.fromkeys(each for each in named if each is not None):
            with faults("making a volume"):
                volume = f"evocode-{self._id}-volume-{len(self._volumes)}"
                self._volumes[name] = self._client.create_volume(volume, labels=labels)["Name"]
        services = {
            name: each
            for name, each in project.sidecars.items()
            if not (each.start == "shared" and self._shared is not None)
        }
        images = {} if self._snapshot is None else self._snapshot.images
        self.containers |= create_services(
            self._plan, self._id, services, self.networks, self._volumes, images, self._filled
        )
        for name, service in services.items():
            if name not in images:
                copy_files(self._client, self.containers[name], service.copies)
        for copied in self._filled.values():
            fixed = services[copied.service].settings.get("read_only")
            target = copied.path if fixed else posixpath.dirname(copied.path.rstrip("/"))
            # Opened anew, because several forks may read it at the same time.
            with open(f"/proc/self/fd/{copied.contents.fileno()}", "rb") as stream, faults("filling a volume"):
                self._client.put_archive(self.containers[copied.service], target, stream)

    def _wait_for(self, service: Service) -> None:
        """Wait until what a service depends on is as it has to be."""
        for name, condition in service.depends_on.items():
            if (container := self.containers.get(name)) is None:
                continue
            why = self._wait(name, container, condition)
            if why and self._snapshot is None:
                place = ("services", service.name, "depends_on", name)
                shown = self.log(name).decode("utf-8", "replace").splitlines()[-_SHOWN_LINES:]
                raise self._plan.project.file.error(
                    "\n".join([f"the service {name} {why}; it printed:", *shown]), *place
                )
            if why:
                logger.info("in a fork, the service %s %s", name, why)

    def _wait(self, name: str, container: str, condition: str) -> str:
        """Wait until a service is as another one needs it, and return why it never will be; empty where it is."""

        def state() -> Mapping[str, Any]:
            with faults(f"waiting for the service {name}"):
                found: Mapping[str, Any] = self._client.inspect_container(container)["State"]
            return found

        def ended() -> bool:
            return not state()["Running"] and not state().get("Restarting")

        if condition == "service_healthy":
            with faults(f"looking at the image of {name}"):
                image = self._client.inspect_image(self._plan.images[name])  # type: ignore[no-untyped-call]
            health = health_of(self._plan.project.sidecars[name].settings.get("healthcheck"), image)
            if health is None:
                return "has no healthcheck"
            return wait_until_healthy(self._client, container, health, ended)
        deadline = time.monotonic() + _WAITING
        while condition == "service_completed_successfully" and time.monotonic() < deadline:
            if ended():
                code = state()["ExitCode"]
                return "" if code == 0 else f"ended with exit code {code}"
            time.sleep(_LOOK)
        return "" if condition == "service_started" else f"had not ended after {_WAITING:g} s"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Pause all services while the context lasts."""
        with contextlib.ExitStack() as until_done:
            for container in self.containers.values():
                state = self._client.inspect_container(container)["State"]
                if state["Running"] and not state["Paused"]:
                    until_done.enter_context(paused(self._client, container))
            yield

    def complete(self, snapshot: DockerSnapshot) -> DockerSnapshot:
        """Copy what the services hold, as far as forks are to have it; see :class:`ContainerNetwork`."""
        project = self._plan.project
        names = {engines: name for name, engines in self._volumes.items()}
        of_main = {mount.name for mount in project.shared_volumes.values()}
        images: dict[str, str] = {}
        volumes: dict[str, VolumeCopy] = {}
        with contextlib.ExitStack() as undo, faults("taking a snapshot of services"):
            undo.callback(snapshot.discard)
            for name, container in self.containers.items():
                service = project.sidecars[name]
                whole = service.start in (None, "snapshot")
                # Where only volumes can be written, what is in a volume is put there, without its directory.
                end = "/." if service.settings.get("read_only") else ""
                mounts = {
                    each["Destination"]: VolumeMount(each["Destination"], names.get(each["Name"])).key(name)
                    for each in self._client.inspect_container(container)["Mounts"]
                    if each["Type"] == "volume"
                }
                wanted = [path for path, key in mounts.items() if key not in volumes and (whole or key in of_main)]
                for path in wanted:
                    contents = undo.enter_context(copy_volume(self._client, container, path + end))
                    volumes[mounts[path]] = VolumeCopy(contents, name, path)
                if whole:
                    images[name] = self._commit(container)
                    undo.callback(discard, self._client, "image", images[name])
            undo.pop_all()
        return ComposeSnapshot(
            snapshot.client, snapshot.image, snapshot.image_layers, snapshot.volumes, images, volumes
        )

    def _commit(self, container: str) -> str:
        name = f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"
        repository, _, tag = name.partition(":")
        conf = {"Labels": dict(self._plan.labels)}
        self._client.commit(container, repository=repository, tag=tag, message=COMMENT, pause=False, conf=conf)
        return name

    def log(self, service: str) -> bytes:
        """Return the last of what a service printed."""
        container = self.container_of(service)
        with faults(f"reading the log of {service}"):
            printed: bytes = self._client.logs(container, tail=10_000)
        return printed[-(2**20) :]

    def states(self) -> dict[str, dict[str, Any]]:
        """Return what the engine says of the services, as ``docker compose ps`` does."""
        found = {}
        for name, container in self.containers.items():
            with faults(f"looking at the service {name}"):
                state = self._client.inspect_container(container)["State"]
            found[name] = {
                "state": state["Status"],
                "exit_code": None if state["Running"] else state["ExitCode"],
                "oom_killed": state["OOMKilled"],
                "started_at": state["StartedAt"],
            }
        return found

    def close(self) -> None:
        """See :class:`ContainerNetwork`."""
        super().close()
        if self._shared is not None:
            self._shared.detach(self.networks)
        group, self._id = self._id, ""
        if group:
            remove_group(self._client, group)
        for parts in (self.containers, self.networks, self._volumes):
            parts.clear()
        self._shared_by_forks.close()

    def of_fork(self, network: Network | None, snapshot: DockerSnapshot, *, anew: bool) -> ContainerNetwork:
        """See :class:`ContainerNetwork`."""
        assert isinstance(snapshot, ComposeSnapshot)
        return ComposeNetwork(
            self.settings, network, self._plan, snapshot=snapshot, shared=self._shared_by_forks, anew=anew
        )
