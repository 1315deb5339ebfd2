"""The services of one environment, an attempt's or a fork's, with networks and volumes of their own: made and run.

``docker compose`` makes the containers.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import posixpath
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.archive import add_directories
from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.compose.project import (
    ComposeProject,
    CopiedFiles,
    Service,
    VolumeMount,
    engine_variables,
    run_compose,
)
from pytest_evocode.environments.docker.container_settings import health_of, wait_until_healthy
from pytest_evocode.environments.docker.files import ContainerFiles, paused
from pytest_evocode.environments.docker.snapshots import COMMENT, REPOSITORY, copy_volume
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

NOWHERE = "192.0.2.1"
"""An address that leads nowhere: the name server of containers in networks without a way out, whose own engine would
otherwise ask for them."""
_COMPOSE = "com.docker.compose."
_LOG = {"driver": "json-file", "options": {"max-size": "4m", "max-file": "1"}}


@dataclass(frozen=True, slots=True)
class VolumeCopy:
    """What a volume held, as an archive with its directory, or without where a service can write to nothing else."""

    contents: IO[bytes]
    service: str
    """A service that has it."""
    path: str
    """Where, in that service."""


def write_project(
    services: Mapping[str, Service],
    images: Mapping[str, str],
    networks: Mapping[str, str],
    volumes: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    closed: bool,
    filled: Mapping[str, VolumeCopy] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return a compose file for services beside ``main``, whose networks and named volumes exist.

    Args:
        services: The services.
        images: The engine's names of their images.
        networks: The engine's names of the networks.
        volumes: The engine's names of the volumes.
        labels: The labels of the containers.
        closed: Whether no network has a way out.
        filled: What volumes are to get later, by :attr:`VolumeMount.key`; they get no files of the image.
    """
    found: dict[str, Any] = {}
    for name, service in services.items():
        # Those that only the image declares are named as well, for nothing of the image to be in them.
        named = {mount.target for mount in service.volumes}
        others = [each.path for each in filled.values() if each.service == name and each.path not in named]
        found[name] = {
            **service.settings,
            "image": images[name],
            "pull_policy": "never",
            "labels": {key: value.replace("$", "$$") for key, value in labels.items()},
            "logging": _LOG,
            "healthcheck": {"disable": True},  # See wait_until_healthy.
            "networks": {each: {"aliases": list(names)} for each, names in service.networks.items()},
            "volumes": [
                {"type": "volume", "target": mount.target, "read_only": mount.read_only}
                | {"volume": {"nocopy": mount.key(name) in filled}}
                | ({"source": mount.name} if mount.name is not None else {})
                for mount in (*service.volumes, *map(VolumeMount, others))
            ],
            **({"dns": [NOWHERE]} if closed else {}),
        }
    return {
        "services": found,
        "networks": {name: {"external": True, "name": each} for name, each in networks.items()},
        "volumes": {name: {"external": True, "name": each} for name, each in volumes.items()},
    }


def create_by_compose(client: APIClient, name: str, model: Mapping[str, Any]) -> dict[str, str]:
    """Have ``docker compose`` make the containers of a file, and return their ids by service.

    Raises EnvironmentFault; what was made by then has its labels.
    """
    if not model["services"]:
        return {}
    # Given as its input: a session that is killed leaves no file with the task's secrets.
    arguments = ["--project-name", name, "--env-file", "/dev/null", "--file", "-"]
    arguments += ["create", "--no-build", "--pull", "never"]
    done = run_compose(arguments, engine_variables(), Path("/"), json.dumps(model))
    if done.returncode != 0:
        raise EnvironmentFault(f"docker compose could not make the services: {done.stderr.strip()[-2000:]}")
    with faults("looking for services"):
        found = client.containers(all=True, filters={"label": f"{_COMPOSE}project={name}"})
    return {each["Labels"][f"{_COMPOSE}service"]: each["Id"] for each in found}


def copy_files(client: APIClient, container: str, copies: Sequence[CopiedFiles]) -> None:
    """Copy files of the task into a container that was not started yet."""
    files = ContainerFiles(client, container)
    for each in copies:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            target = PurePosixPath(posixpath.normpath(f"/{each.target.lstrip('/')}"))
            directories = [*reversed(target.parents[:-1]), *([target] if each.source is None else [])]
            missing = [str(path) for path in directories if files.look_up(str(path)) is None]
            add_directories(archive, dict.fromkeys(missing, 0o755))
            if isinstance(each.source, bytes):
                info = tarfile.TarInfo(str(target)[1:])
                info.size, info.mode = len(each.source), each.mode if each.mode is not None else 0o444
                archive.addfile(info, io.BytesIO(each.source))
            elif each.source is not None:
                archive.add(each.source, str(target)[1:], filter=partial(_of_root, mode=each.mode))
        with faults(f"copying {each.target} into a service"):
            files.put(packed.getvalue())


def with_files(client: APIClient, image: str, copies: Sequence[CopiedFiles], labels: Mapping[str, str]) -> str:
    """Return an image with files of the task on top, for a container into which nothing can be copied later."""
    with faults("making an image with files of the task"):
        container = client.create_container(image, labels=dict(labels), network_disabled=True)["Id"]
    try:
        copy_files(client, container, copies)
        with faults("making an image with files of the task"):
            conf = {"Labels": dict(labels)}
            made = client.commit(container, repository=REPOSITORY, tag=uuid.uuid4().hex[:12], conf=conf)
    finally:
        discard(client, "container", container)
    return str(made["Id"])


def _of_root(info: tarfile.TarInfo, mode: int | None) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if mode is not None and info.isfile():
        info.mode = mode
    return info


logger = logging.getLogger(__name__)

GROUP = "evocode.group"
"""The label of all that one group consists of."""
_WAITING = 600.0  # seconds for a service that others wait for to end
_LOOK = 0.1  # seconds between two looks at a service
_NO_ADDRESS = "com.docker.network.bridge.inhibit_ipv4"
_SHOWN_LINES = 20


@dataclass(frozen=True, slots=True)
class ServicesPlan:
    """What the services of an attempt's environment and of its forks have in common."""

    client: APIClient
    project: ComposeProject
    images: Mapping[str, str]
    """The ids of the images as built, by service."""
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ServicesSnapshot:
    """What the services of an environment held when a snapshot was taken of it."""

    client: APIClient
    images: Mapping[str, str]
    """The images of those that forks are to have as they were, by service."""
    volumes: Mapping[str, VolumeCopy]
    """By :attr:`VolumeMount.key`."""

    def discard(self) -> None:
        """Free what it takes."""
        for volume in self.volumes.values():
            volume.contents.close()
        for image in self.images.values():
            discard(self.client, "image", image)


class ServiceGroup:
    """The services beside one ``main``, from :meth:`open` to :meth:`close`.

    Args:
        plan: What there is to be.
        closed: Whether no network has a way out.
        snapshot: What the services are to hold; None makes them anew, as built.
        shared: The services that all forks share; None for the attempt's own.
    """

    def __init__(
        self,
        plan: ServicesPlan,
        *,
        closed: bool,
        snapshot: ServicesSnapshot | None = None,
        shared: SharedServices | None = None,
    ) -> None:
        self._plan = plan
        self._client = plan.client
        self._closed = closed
        self._is_fork = snapshot is not None
        self._images = snapshot.images if snapshot is not None else {}
        self._filled = snapshot.volumes if snapshot is not None else {}
        self._shared = shared
        self._id = uuid.uuid4().hex[:12]
        self._labels = {**plan.labels, GROUP: self._id}
        self.containers: dict[str, str] = {}
        """The ids of the containers by service, without shared ones."""
        self.networks: dict[str, str] = {}
        """The engine's names of the networks, by those in the compose file."""
        self._volumes: dict[str, str] = {}
        """The same of the volumes that have names there."""

    def main_mounts(self) -> list[Mapping[str, Any]]:
        """Return the mounts of ``main``: what it shares with other services."""
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
            self.networks[name] = self._named(name)
        self._create()
        if self._shared is not None:
            self._shared.attach(self.networks)
        for name, container in self.containers.items():
            self._wait_for(self._plan.project.sidecars[name])
            with faults(f"starting the service {name}"):
                self._client.start(container)
        self._wait_for(self._plan.project.main)

    def _named(self, name: str) -> str:
        return f"evocode-{self._id}-{name}"

    def _create(self) -> None:
        plan, project = self._plan, self._plan.project
        named = (mount.name for each in (project.main, *project.sidecars.values()) for mount in each.volumes)
        for name in dict.fromkeys(each for each in named if each is not None):
            with faults("making a volume"):
                volume = f"evocode-{self._id}-volume-{len(self._volumes)}"
                self._volumes[name] = self._client.create_volume(volume, labels=self._labels)["Name"]
        services = {
            name: each
            for name, each in project.sidecars.items()
            if not (each.start == "shared" and self._shared is not None)
        }
        model = write_project(
            services, {**plan.images, **self._images}, self.networks, self._volumes, self._labels,
            closed=self._closed, filled=self._filled,
        )  # fmt: skip
        made = create_by_compose(self._client, f"evocode-{self._id}", model)
        for name, service in services.items():
            self.containers[name] = made[name]  # In their order.
            if name not in self._images:
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
            if why and not self._is_fork:
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

    # What is kept of it.

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Pause all services while the context lasts."""
        with contextlib.ExitStack() as until_done:
            for container in self.containers.values():
                state = self._client.inspect_container(container)["State"]
                if state["Running"] and not state["Paused"]:
                    until_done.enter_context(paused(self._client, container))
            yield

    def snapshot(self) -> ServicesSnapshot:
        """Copy what the services hold, as far as forks are to have it; they have to be held meanwhile."""
        project = self._plan.project
        names = {engines: name for name, engines in self._volumes.items()}
        of_main = {mount.name for mount in project.shared_volumes.values()}
        images: dict[str, str] = {}
        volumes: dict[str, VolumeCopy] = {}
        with faults("taking a snapshot of services"), contextlib.ExitStack() as undo:
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
        return ServicesSnapshot(self._client, images, volumes)

    def _commit(self, container: str) -> str:
        name = f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"
        repository, _, tag = name.partition(":")
        conf = {"Labels": dict(self._plan.labels)}
        self._client.commit(container, repository=repository, tag=tag, message=COMMENT, pause=False, conf=conf)
        return name

    def logs(self, service: str) -> bytes:
        """Return the last of what a service printed."""
        with faults(f"reading the log of {service}"):
            printed: bytes = self._client.logs(self.containers[service], tail=10_000)
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
        """Remove all of it, and what was begun of it: what ``down -v`` does; a second call does nothing more."""
        if self._shared is not None:
            self._shared.detach(self.networks)
        remove_group(self._client, f"{GROUP}={self._id}")
        for parts in (self.containers, self.networks, self._volumes):
            parts.clear()


class SharedServices:
    """The services that ``[metadata.evocode.sidecars]`` calls shared, started for the first fork.

    All forks of an attempt have them, as built, and with nothing in them that can be written. They are not those of the
    agent: what an agent can reach is never connected to where a suite runs.
    """

    def __init__(self, plan: ServicesPlan, *, closed: bool) -> None:
        """Start nothing yet; ``closed`` says that those of the agent have no way out, so these ask for no names."""
        self._plan = plan
        self._client = plan.client
        self._closed = closed
        self._id = uuid.uuid4().hex[:12]
        self._labels = {**plan.labels, GROUP: self._id}
        self._lock = threading.Lock()
        self._containers: dict[str, str] = {}

    def attach(self, networks: Mapping[str, str]) -> None:
        """Let the fork with these networks, by their names in the compose file, reach them."""
        with self._lock:
            if not self._containers:
                self._start(networks)
                return
            for name, container in self._containers.items():
                for network, names in self._plan.project.sidecars[name].networks.items():
                    with faults(f"connecting the service {name}"):
                        self._client.connect_container_to_network(container, networks[network], aliases=list(names))

    def _start(self, networks: Mapping[str, str]) -> None:
        plan = self._plan
        volumes: dict[str, str] = {}
        shared = [each for each in plan.project.sidecars.values() if each.start == "shared"]
        services = {each.name: self._fixed(each, volumes) for each in shared}
        model = write_project(services, plan.images, networks, volumes, self._labels, closed=self._closed)
        self._containers = create_by_compose(self._client, f"evocode-{self._id}", model)
        for name, container in self._containers.items():
            with faults(f"starting the service {name}"):
                self._client.start(container)

    def _fixed(self, service: Service, volumes: dict[str, str]) -> Service:
        """Return a service in which nothing can be written, and that passes nothing on between its networks.

        Its volumes are made, because the engine lets no other ones be read-only, and added to ``volumes``.
        """
        mounts: list[VolumeMount] = []
        with faults(f"making volumes of {service.name}"):
            image = self._client.inspect_image(self._plan.images[service.name])  # type: ignore[no-untyped-call]
            paths = [*(each.target for each in service.volumes), *(image["Config"].get("Volumes") or ())]
            for path in dict.fromkeys(paths):
                mounts.append(VolumeMount(path, f"{service.name}-{len(mounts)}", read_only=True))
                volumes[str(mounts[-1].name)] = self._client.create_volume(labels=self._labels)["Name"]
        sysctls = {**(service.settings.get("sysctls") or {}), "net.ipv4.ip_forward": "0"}
        settings = {**service.settings, "read_only": True, "sysctls": sysctls}
        return replace(service, settings=settings, volumes=mounts)

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
                remove_group(self._client, f"{GROUP}={self._id}")
            self._containers.clear()


def remove_group(client: APIClient, label: str) -> None:
    """Remove the containers, networks and volumes with a label."""
    chosen = {"label": label}
    with faults("removing services"):
        discard(client, "container", *(each["Id"] for each in client.containers(all=True, filters=chosen)))
        discard(client, "network", *(each["Id"] for each in client.networks(filters=chosen)))
        discard(client, "volume", *(each["Name"] for each in client.volumes(filters=chosen)["Volumes"] or ()))
