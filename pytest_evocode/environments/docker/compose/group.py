"""The running services of one environment: an attempt's, or those of a fork, with networks and volumes of their own."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pytest_evocode.environments.docker.compose.creation import (
    ServiceLimits,
    copy_files,
    create_alike,
    create_by_compose,
    fill_volume,
    volume_mount,
    write_project,
)
from pytest_evocode.environments.docker.compose.health import health_of
from pytest_evocode.environments.docker.compose.project import ComposeProject, Service, VolumeMount
from pytest_evocode.environments.docker.compose.service_snapshots import ServicesSnapshot, VolumeCopy
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.environments.docker.snapshots import COMMENT, REPOSITORY, copy_volume, paused
from pytest_evocode.environments.tree_archives import parents

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

GROUP = "evocode.group"
"""The label of all that one group consists of."""
_WAITING = 600.0  # seconds for a service that others wait for to end
_LOOK = 0.1  # seconds between two looks at a service
_NO_ADDRESS = "com.docker.network.bridge.inhibit_ipv4"
_SHOWN_LINES = 20


class AttachedServices(Protocol):
    """Services outside of a group that it reaches all the same."""

    def attach(self, networks: Mapping[str, str]) -> None:
        """Connect them to networks, given by their names in the compose file."""

    def detach(self, networks: Mapping[str, str]) -> None:
        """Take them out of the networks again."""


@dataclass(frozen=True, slots=True)
class ServicesPlan:
    """What the services of an attempt's environment and of its forks have in common."""

    client: APIClient
    project: ComposeProject
    images: Mapping[str, str]
    """The ids of the images as built, by service."""
    labels: Mapping[str, str]
    limits: ServiceLimits


@dataclass(slots=True)
class _Parts:
    """What a group consists of by now, by the names in the compose file."""

    containers: dict[str, str] = field(default_factory=dict)
    networks: dict[str, str] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)
    """By the names in the compose file, or those of the volumes that they are copies of."""


class ServiceGroup:
    """The services beside one ``main``, from :meth:`open` to :meth:`close`.

    Args:
        plan: What there is to be.
        closed: Whether no network has a way out.
        snapshot: What the services are to hold; None makes them anew, as built.
        shared: The services that all forks share; None where there are none, and for the attempt's own.
    """

    def __init__(
        self,
        plan: ServicesPlan,
        *,
        closed: bool,
        snapshot: ServicesSnapshot | None = None,
        shared: AttachedServices | None = None,
    ) -> None:
        self._plan = plan
        self._client = plan.client
        self._closed = closed
        self._snapshot = snapshot
        self._shared = shared
        self._id = uuid.uuid4().hex[:12]
        self._labels = {**plan.labels, GROUP: self._id}
        self._parts = _Parts()

    @property
    def networks(self) -> Mapping[str, str]:
        """The engine's names of the networks, by those in the compose file."""
        return self._parts.networks

    @property
    def containers(self) -> Mapping[str, str]:
        """The ids of the containers by service, without shared ones."""
        return self._parts.containers

    def main_mounts(self) -> list[dict[str, Any]]:
        """Return the mounts of ``main``: what it shares with other services."""
        found = []
        for target, mount in self._plan.project.shared_volumes.items():
            old = self._name_of(target, mount)
            empty = self._snapshot is not None and old in self._snapshot.volumes
            found.append(volume_mount(self._parts.volumes[old], target, writable=not mount.read_only, empty=empty))
        return found

    def _name_of(self, target: str, mount: VolumeMount) -> str:
        """Return the name under which this group knows a volume that ``main`` shares."""
        return str(mount.name) if self._snapshot is None else self._snapshot.main_volumes[target]

    def open(self) -> None:
        """Make the networks, volumes and services, and start all in order.

        Raises:
            TaskError: A service does not become what others wait for. In a fork that is not raised: it may be the
                agent's doing, and is for the suite to find.
            EnvironmentFault: The engine failed.
        """
        for name in self._plan.project.networks:
            internal = self._closed or name in self._plan.project.internal
            with faults("making a network of services"):
                self._client.create_network(
                    self._named(name),
                    driver="bridge",
                    internal=internal,
                    options={_NO_ADDRESS: "true"} if internal else None,  # Or the host could be reached there.
                    labels=self._labels,
                )
            self._parts.networks[name] = self._named(name)
        if self._snapshot is None:
            self._create_new()
        else:
            self._create_from(self._snapshot)
        if self._shared is not None:
            self._shared.attach(self._parts.networks)
        for service in self._own():
            self._wait_for(service)
            with faults(f"starting the service {service.name}"):
                self._client.start(self._parts.containers[service.name])
        self._wait_for(self._plan.project.main)

    def _own(self) -> list[Service]:
        """Return the services that are in this group, in their order."""
        return [each for each in self._plan.project.sidecars.values() if each.name in self._parts.containers]

    def _named(self, name: str) -> str:
        return f"evocode-{self._id}-{name}"

    def _create_new(self) -> None:
        plan, project = self._plan, self._plan.project
        named = (mount.name for each in (project.main, *project.sidecars.values()) for mount in each.volumes)
        for name in dict.fromkeys(each for each in named if each is not None):
            self._make_volume(name)
        if not project.sidecars:
            return
        model = write_project(
            project, plan.images, self._parts.networks, self._parts.volumes, self._labels, plan.limits,
            closed=self._closed,
        )  # fmt: skip
        self._parts.containers.update(create_by_compose(self._client, f"evocode-{self._id}", model))
        for service in project.sidecars.values():
            copy_files(self._client, self._parts.containers[service.name], service.copies)

    def _create_from(self, snapshot: ServicesSnapshot) -> None:
        for name, template in snapshot.templates.items():
            service = self._plan.project.sidecars[name]
            if service.start == "shared" and self._shared is not None:
                continue
            mounts = []
            for mount in template["Mounts"]:
                if mount["Type"] == "volume":
                    if mount["Name"] not in self._parts.volumes:
                        self._make_volume(mount["Name"])
                    new, empty = self._parts.volumes[mount["Name"]], mount["Name"] in snapshot.volumes
                    mounts.append(volume_mount(new, mount["Destination"], writable=mount["RW"], empty=empty))
            image = snapshot.images.get(name)
            container = create_alike(
                self._client,
                template,
                service,
                image=image or self._plan.images[name],
                mounts=mounts,
                networks=self._parts.networks,
                labels=self._labels,
            )
            self._parts.containers[name] = container
            if image is None:
                copy_files(self._client, container, service.copies)
        for old in snapshot.main_volumes.values():
            if old not in self._parts.volumes:  # Only shared services have it, too.
                self._make_volume(old)
        for volume in snapshot.volumes.values():
            # Opened anew, because several forks may read it at the same time.
            with open(f"/proc/self/fd/{volume.contents.fileno()}", "rb") as stream:
                container = self._parts.containers[volume.service]
                read_only = snapshot.templates[volume.service]["HostConfig"]["ReadonlyRootfs"]
                fill_volume(self._client, container, volume.path, stream, read_only=read_only)
        logger.debug("made the services %s of a fork of %s", ", ".join(self._parts.containers), self._id)

    def _make_volume(self, name: str) -> None:
        number = len(self._parts.volumes)
        with faults("making a volume"):
            made = self._client.create_volume(f"evocode-{self._id}-volume-{number}", labels=self._labels)
        self._parts.volumes[name] = made["Name"]

    def _wait_for(self, service: Service) -> None:
        """Wait until what a service depends on is as it has to be."""
        for name, condition in service.depends_on.items():
            if (container := self._parts.containers.get(name)) is None:
                continue
            why = self._wait(name, container, condition)
            if why and self._snapshot is None:
                place = ("services", service.name, "depends_on", name)
                shown = self.logs(name).decode("utf-8", "replace").splitlines()[-_SHOWN_LINES:]
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
            return "has no healthcheck" if health is None else health.wait(self._client, container, ended)
        deadline = time.monotonic() + _WAITING
        while condition == "service_completed_successfully" and time.monotonic() < deadline:
            if ended():
                code = state()["ExitCode"]
                return "" if code == 0 else f"ended with exit code {code}"
            time.sleep(_LOOK)
        return "" if condition == "service_started" else f"had not ended after {_WAITING:g} s"

    # What is kept of it.

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Pause all services while the context lasts."""
        with contextlib.ExitStack() as until_done:
            for container in self._parts.containers.values():
                state = self._client.inspect_container(container)["State"]
                if state["Running"] and not state["Paused"]:
                    until_done.enter_context(paused(self._client, container))
            yield

    def snapshot(self) -> ServicesSnapshot:
        """Copy what the services hold, as far as forks are to have it; they have to be held meanwhile."""
        project = self._plan.project
        with faults("taking a snapshot of services"), contextlib.ExitStack() as undo:
            templates = {name: self._client.inspect_container(each) for name, each in self._parts.containers.items()}
            main = {
                target: self._parts.volumes[self._name_of(target, mount)]
                for target, mount in project.shared_volumes.items()
            }
            images: dict[str, str] = {}
            volumes: dict[str, VolumeCopy] = {}
            for name, template in templates.items():
                service = project.sidecars[name]
                mounts = [each for each in template["Mounts"] if each["Type"] == "volume"]
                whole = service.start in (None, "snapshot")
                for mount in mounts:
                    if mount["Name"] not in volumes and (whole or mount["Name"] in main.values()):
                        contents = undo.enter_context(copy_volume(self._client, template["Id"], mount["Destination"]))
                        volumes[mount["Name"]] = VolumeCopy(contents, name, mount["Destination"])
                if whole and self._has_changed(template["Id"], [mount["Destination"] for mount in mounts], service):
                    images[name] = self._commit(template["Id"])
                    undo.callback(discard, self._client, "image", images[name])
            undo.pop_all()
        return ServicesSnapshot(self._client, templates, images, volumes, main)

    def _has_changed(self, container: str, mounted: Sequence[str], service: Service) -> bool:
        """Tell whether a service has changed files that no volume has."""
        given = [*mounted, *(copied.target for copied in service.copies)]
        above = {parent for path in given for parent in parents(path)}
        changes = self._client.diff(container) or ()
        return any(change["Path"] not in above and change["Path"] not in given for change in changes)

    def _commit(self, container: str) -> str:
        name = f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"
        repository, _, tag = name.partition(":")
        conf = {"Labels": dict(self._plan.labels)}
        self._client.commit(container, repository=repository, tag=tag, message=COMMENT, pause=False, conf=conf)
        return name

    def logs(self, service: str) -> bytes:
        """Return the last of what a service printed."""
        with faults(f"reading the log of {service}"):
            printed: bytes = self._client.logs(self._parts.containers[service], tail=10_000)
        return printed[-(2**20) :]

    def states(self) -> dict[str, dict[str, Any]]:
        """Return what the engine says of the services, as ``docker compose ps`` does."""
        found = {}
        for name, container in self._parts.containers.items():
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
        """Remove all of it, and what was begun of it: what ``down -v`` does; a second call does nothing more."""
        if self._shared is not None:
            self._shared.detach(self._parts.networks)
        remove_group(self._client, f"{GROUP}={self._id}")
        self._parts = _Parts()


def remove_group(client: APIClient, label: str) -> None:
    """Remove the containers, networks and volumes with a label."""
    chosen = {"label": label}
    with faults("removing services"):
        discard(client, "container", *(each["Id"] for each in client.containers(all=True, filters=chosen)))
        discard(client, "network", *(each["Id"] for each in client.networks(filters=chosen)))
        discard(client, "volume", *(each["Name"] for each in client.volumes(filters=chosen)["Volumes"] or ()))
