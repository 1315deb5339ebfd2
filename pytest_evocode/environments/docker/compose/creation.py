"""The containers of services: made by ``docker compose`` for an attempt, and alike by the engine for its forks."""

from __future__ import annotations

import io
import json
import posixpath
import tarfile
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.docker.compose.project import (
    ComposeProject,
    CopiedFiles,
    Service,
    engine_variables,
    run_compose,
)
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.environments.docker.snapshots import REPOSITORY
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

NOWHERE = "192.0.2.1"
"""An address that leads nowhere: the name server of containers in networks without a way out, whose own engine would
otherwise ask for them."""
_COMPOSE = "com.docker.compose."
_LOG = {"driver": "json-file", "options": {"max-size": "4m", "max-file": "1"}}


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What a service may use that sets no limit of its own."""

    memory: int
    processes: int


def write_project(
    project: ComposeProject,
    images: Mapping[str, str],
    networks: Mapping[str, str],
    volumes: Mapping[str, str],
    labels: Mapping[str, str],
    limits: ServiceLimits,
    *,
    closed: bool,
) -> dict[str, Any]:
    """Return a compose file for the services beside ``main``, whose networks and volumes exist."""
    services: dict[str, Any] = {}
    for name, service in project.sidecars.items():
        settings = dict(service.settings)
        bounded = settings.get("mem_limit") or "memory" in limits_of(settings)
        if not bounded:
            settings["mem_limit"] = settings["memswap_limit"] = str(limits.memory)
        settings.setdefault("pids_limit", limits.processes)
        services[name] = {
            **settings,
            "image": images[name],
            "pull_policy": "never",
            "labels": {key: value.replace("$", "$$") for key, value in labels.items()},
            "logging": _LOG,
            "healthcheck": {"disable": True},  # See health.py.
            "networks": {each: {"aliases": list(names)} for each, names in service.networks.items()},
            "volumes": [
                {"type": "volume", "target": mount.target, "read_only": mount.read_only}
                | ({"source": mount.name} if mount.name is not None else {})
                for mount in service.volumes
            ],
            **({"dns": [NOWHERE]} if closed else {}),
        }
    return {
        "services": services,
        "networks": {name: {"external": True, "name": each} for name, each in networks.items()},
        "volumes": {name: {"external": True, "name": each} for name, each in volumes.items()},
    }


def create_by_compose(client: APIClient, name: str, model: Mapping[str, Any]) -> dict[str, str]:
    """Have ``docker compose`` make the containers of a file, and return their ids by service.

    Raises EnvironmentFault; what was made by then has its labels.
    """
    with scratch_directory("compose") as directory:
        # Given as its input: a session that is killed leaves no file with the task's secrets.
        arguments = ["--project-name", name, "--file", "-", "create", "--no-build", "--pull", "never"]
        done = run_compose(arguments, engine_variables(), Path(directory), json.dumps(model))
    if done.returncode != 0:
        raise EnvironmentFault(f"docker compose could not make the services: {done.stderr.strip()[-2000:]}")
    with faults("looking for services"):
        found = client.containers(all=True, filters={"label": f"{_COMPOSE}project={name}"})
    return {each["Labels"][f"{_COMPOSE}service"]: each["Id"] for each in found}


def create_alike(
    client: APIClient,
    template: Mapping[str, Any],
    service: Service,
    *,
    image: str,
    mounts: Sequence[Mapping[str, Any]],
    networks: Mapping[str, str],
    labels: Mapping[str, str],
    read_only: bool = False,
) -> str:
    """Make a container as another one is, with other files, volumes and networks, and return its id.

    Args:
        client: A client of the engine.
        template: The engine's description of the other one.
        service: What it is of.
        image: The image.
        mounts: Its volumes, as the engine takes them.
        networks: The engine's names of the project's networks.
        labels: Its labels.
        read_only: Whether nothing in it can be written but what is in memory.
    """
    host = dict(template["HostConfig"])
    others = [each for each in host.get("Mounts") or () if each["Type"] == "tmpfs"]
    host |= {"Binds": None, "Mounts": [*others, *mounts], "VolumesFrom": None, "PortBindings": {}}
    names = list(service.networks)
    host["NetworkMode"] = networks[names[0]] if names else "none"
    if read_only:
        # It is in the networks of several forks, which are not to reach one another through it.
        host |= {"ReadonlyRootfs": True, "Sysctls": {**(host.get("Sysctls") or {}), "net.ipv4.ip_forward": "0"}}
    config = {key: value for key, value in template["Config"].items() if key not in ("Hostname", "Domainname")}
    if "hostname" in service.settings:
        config["Hostname"] = service.settings["hostname"]
    config |= {"Image": image, "Labels": dict(labels), "ExposedPorts": {}, "HostConfig": host}
    if names:
        first = {"Aliases": list(service.networks[names[0]])}
        config["NetworkingConfig"] = {"EndpointsConfig": {networks[names[0]]: first}}
    with faults(f"making the service {service.name}"):
        container: str = client.create_container_from_config(config)["Id"]  # type: ignore[no-untyped-call]
        for name in names[1:]:
            client.connect_container_to_network(container, networks[name], aliases=list(service.networks[name]))
    return container


def copy_files(client: APIClient, container: str, copies: Sequence[CopiedFiles]) -> None:
    """Copy files of the task into a container that was not started yet."""
    for each in copies:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            name = posixpath.normpath(each.target).lstrip("/")
            for depth in range(1, len(name.split("/"))):
                pass_through = tarfile.TarInfo("/".join(name.split("/")[:depth]))
                pass_through.type, pass_through.mode = tarfile.DIRTYPE, 0o755
                if not _exists(client, container, f"/{pass_through.name}"):
                    archive.addfile(pass_through)
            if each.source is None:
                info = tarfile.TarInfo(name)
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                if not _exists(client, container, f"/{name}"):
                    archive.addfile(info)
            elif isinstance(each.source, bytes):
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(each.source), each.mode if each.mode is not None else 0o444
                archive.addfile(info, io.BytesIO(each.source))
            else:
                archive.add(each.source, name, filter=partial(_of_root, mode=each.mode))
        with faults(f"copying {each.target} into a service"):
            client.put_archive(container, "/", packed.getvalue())


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


def fill_volume(client: APIClient, container: str, path: str, contents: IO[bytes], *, read_only: bool) -> None:
    """Unpack what a volume held into that of a container that was not started yet.

    The archive has the volume's own directory. Where only volumes can be written, its entries go there one by one.
    """
    with faults("filling a volume"):
        if not read_only:
            client.put_archive(container, posixpath.dirname(path.rstrip("/")) or "/", contents)
            return
        with tempfile.TemporaryFile() as inside:
            with (
                tarfile.open(fileobj=contents) as source,
                tarfile.open(fileobj=inside, mode="w", format=tarfile.PAX_FORMAT) as archive,
            ):
                for info in source:
                    below = "./" + info.name.partition("/")[2]
                    link = "./" + info.linkname.partition("/")[2] if info.islnk() else info.linkname
                    here = info.replace(name=below, linkname=link, deep=False)
                    archive.addfile(here, source.extractfile(info) if info.isreg() else None)
            inside.seek(0)
            client.put_archive(container, path, inside)


def _of_root(info: tarfile.TarInfo, mode: int | None) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if mode is not None and info.isfile():
        info.mode = mode
    return info


def _exists(client: APIClient, container: str, path: str) -> bool:
    url = f"{client.base_url}/v{client.api_version}/containers/{container}/archive"
    return bool(client.head(url, params={"path": path}).status_code == 200)


def volume_mount(name: str, target: str, *, writable: bool, empty: bool) -> dict[str, Any]:
    """Return the mount of a volume as the engine takes it; ``empty`` keeps the image's files out of it."""
    options = {"NoCopy": empty}
    return {"Type": "volume", "Source": name, "Target": target, "ReadOnly": not writable, "VolumeOptions": options}


def limits_of(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the limits that a service sets by ``deploy``."""
    return ((settings.get("deploy") or {}).get("resources") or {}).get("limits") or {}
