"""The containers of services, which ``docker compose`` makes for an attempt and for its forks."""

from __future__ import annotations

import io
import json
import posixpath
import tarfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.archive import add_directories
from pytest_evocode.environments.docker.compose.project import (
    CopiedFiles,
    Service,
    VolumeMount,
    engine_variables,
    run_compose,
)
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.files import ContainerFiles
from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.environments.docker.snapshots import REPOSITORY
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
