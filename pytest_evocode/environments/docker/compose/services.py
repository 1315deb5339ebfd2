"""Containers of services, which ``docker compose`` makes, files of the task in them, and services that forks share."""

from __future__ import annotations

import contextlib
import io
import json
import posixpath
import tarfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.archive import add_entry
from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.compose.project import (
    ComposeProject,
    CopiedFiles,
    Service,
    VolumeMount,
    engine_variables,
    run_compose,
)
from pytest_evocode.environments.docker.files import ContainerFiles
from pytest_evocode.environments.docker.snapshots import REPOSITORY
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

NOWHERE = "192.0.2.1"
"""An address that leads nowhere: the name server of containers in networks without a way out, whose own engine would
otherwise ask for them."""
GROUP = "evocode.group"
"""The label of all that one group of services consists of."""
_LOG = {"driver": "json-file", "options": {"max-size": "4m", "max-file": "1"}}


@dataclass(frozen=True, slots=True)
class VolumeCopy:
    """What a volume held, as an archive with its directory, or without where a service can write to nothing else."""

    contents: IO[bytes]
    service: str
    """A service that has it."""
    path: str
    """Where, in that service."""


@dataclass(frozen=True, slots=True)
class ServicesPlan:
    """What the services of an attempt's environment and of its forks have in common."""

    client: APIClient
    project: ComposeProject
    images: Mapping[str, str]
    """The ids of the images as built, by service."""
    labels: Mapping[str, str]
    closed: bool
    """Whether no network has a way out."""


def create_services(
    plan: ServicesPlan,
    group: str,
    services: Mapping[str, Service],
    networks: Mapping[str, str],
    volumes: Mapping[str, str],
    images: Mapping[str, str] = MappingProxyType({}),
    filled: Mapping[str, VolumeCopy] = MappingProxyType({}),
) -> dict[str, str]:
    """Have ``docker compose`` make the containers of services beside ``main``, whose networks and volumes exist.

    Raises EnvironmentFault; what was made by then has its labels.

    Args:
        plan: What there is to be.
        group: What :data:`GROUP` says of the containers.
        services: The services.
        networks: The engine's names of the networks.
        volumes: The engine's names of the volumes that have names.
        images: The engine's names of images that are not those as built.
        filled: What volumes are to get later, by :attr:`VolumeMount.key`; they get no files of the image.

    Returns:
        The ids of the containers by service, in the order of the services.
    """
    if not services:
        return {}
    found = {
        name: {
            **_described(service, {**plan.labels, GROUP: group}, filled),
            "image": images.get(name, plan.images[name]),
            **({"dns": [NOWHERE]} if plan.closed else {}),
        }
        for name, service in services.items()
    }
    model = {
        "services": found,
        "networks": {name: {"external": True, "name": each} for name, each in networks.items()},
        "volumes": {name: {"external": True, "name": each} for name, each in volumes.items()},
    }
    # Given as its input: a session that is killed leaves no file with the task's secrets.
    arguments = ["--project-name", f"evocode-{group}", "--env-file", "/dev/null", "--file", "-"]
    arguments += ["create", "--no-build", "--pull", "never"]
    done = run_compose(arguments, engine_variables(), Path("/"), json.dumps(model))
    if done.returncode != 0:
        raise EnvironmentFault(f"docker compose could not make the services: {done.stderr.strip()[-2000:]}")
    with faults("looking for services"):
        made = plan.client.containers(all=True, filters={"label": f"{GROUP}={group}"})
    ids = {each["Labels"]["com.docker.compose.service"]: str(each["Id"]) for each in made}
    return {name: ids[name] for name in services}


def _described(service: Service, labels: Mapping[str, str], filled: Mapping[str, VolumeCopy]) -> dict[str, Any]:
    """Return what a compose file says of a service, without its image."""
    # Those that only the image declares are named as well, for nothing of the image to be in them.
    named = {mount.target for mount in service.volumes}
    others = [each.path for each in filled.values() if each.service == service.name and each.path not in named]
    return {
        **service.settings,
        "pull_policy": "never",
        "labels": {key: value.replace("$", "$$") for key, value in labels.items()},
        "logging": _LOG,
        "healthcheck": {"disable": True},  # See wait_until_healthy.
        "networks": {each: {"aliases": list(names)} for each, names in service.networks.items()},
        "volumes": [
            {"type": "volume", "target": mount.target, "read_only": mount.read_only}
            | {"volume": {"nocopy": mount.key(service.name) in filled}}
            | ({"source": mount.name} if mount.name is not None else {})
            for mount in (*service.volumes, *map(VolumeMount, others))
        ],
    }


def copy_files(client: APIClient, container: str, copies: Sequence[CopiedFiles]) -> None:
    """Copy files of the task into a container that was not started yet."""
    files = ContainerFiles(client, container)
    for each in copies:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            target = PurePosixPath(posixpath.normpath(f"/{each.target.lstrip('/')}"))
            directories = [*reversed(target.parents[:-1]), *([target] if each.source is None else [])]
            missing = [str(path) for path in directories if files.look_up(str(path)) is None]
            for path in missing:
                add_entry(archive, path, None, 0o755)
            if isinstance(each.source, bytes):
                add_entry(archive, str(target), each.source, each.mode if each.mode is not None else 0o444)
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


class SharedServices:
    """The services that ``[metadata.evocode.sidecars]`` calls shared, started for the first fork.

    All forks of an attempt have them, as built, and with nothing in them that can be written. They are not those of the
    agent: what an agent can reach is never connected to where a suite runs.
    """

    def __init__(self, plan: ServicesPlan) -> None:
        """Start nothing yet."""
        self._plan = plan
        self._client = plan.client
        self._id = uuid.uuid4().hex[:12]
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
        volumes: dict[str, str] = {}
        shared = [each for each in self._plan.project.sidecars.values() if each.start == "shared"]
        services = {each.name: self._fixed(each, volumes) for each in shared}
        self._containers = create_services(self._plan, self._id, services, networks, volumes)
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
                volumes[str(mounts[-1].name)] = self._client.create_volume(
                    labels={**self._plan.labels, GROUP: self._id}
                )["Name"]
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
                remove_group(self._client, self._id)
            self._containers.clear()


def remove_group(client: APIClient, group: str) -> None:
    """Remove the containers, networks and volumes of a group, and what was begun of it: what ``down -v`` does."""
    chosen = {"label": f"{GROUP}={group}"}
    with faults("removing services"):
        discard(client, "container", *(each["Id"] for each in client.containers(all=True, filters=chosen)))
        discard(client, "network", *(each["Id"] for each in client.networks(filters=chosen)))
        discard(client, "volume", *(each["Name"] for each in client.volumes(filters=chosen)["Volumes"] or ()))
