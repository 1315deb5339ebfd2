"""The Docker engine: containers of a session, labelled so that a later one can clear what a dead one left."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.environment import ContainerSettings, DockerEnvironment
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.images import ensure_image
from pytest_evocode.environments.limits import Limits
from pytest_evocode.errors import EnvironmentFault, EnvironmentUnavailable
from pytest_evocode.tasks import Network, Task

if TYPE_CHECKING:
    from docker import APIClient

OWNER = "evocode.owner"
ENGINE = "evocode.engine"
_PING_TIMEOUT = 5  # seconds
_API_TIMEOUT = 120  # seconds for one answer; a commit of a large workspace takes a few


class DockerEngine:
    """Makes containers; raises :class:`EnvironmentUnavailable` where no daemon answers."""

    name = "docker"
    without_effect: tuple[str, ...] = ("storage_mb", "storage")

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        self._client = connect()
        self._limits = limits
        with faults("asking the engine what it is"):
            info = self._client.info()
        self.description = f"engine {info['ServerVersion']}"
        self._memory: int = info["MemTotal"]
        self._own = {OWNER: owner_of(os.getpid()), ENGINE: uuid.uuid4().hex}  # A process may have two engines.
        self._lock = threading.Lock()
        self._running: list[DockerEnvironment] = []
        remove_leftovers(self._client)

    def create(self, task: Task, *, env: Mapping[str, str], network: Network | None) -> DockerEnvironment:
        """See :class:`~pytest_evocode.environments.base.Engine`."""
        image = ensure_image(self._client, task)
        config = image.get("Config") or {}
        wanted = task.config.environment
        labels = {**self._own, "evocode.task": task.name}
        environment = DockerEnvironment(
            ContainerSettings(
                self._client,
                labels,
                config.get("User") or "0",
                dict(env),
                wanted.cpus,
                self._limits.memory(wanted.memory_mb, self._memory),
                self._limits.processes,
                tuple(config.get("Volumes") or ()),
            ),
            image["Id"],
            workdir=wanted.workdir or config.get("WorkingDir") or "/",
            network=network,
        )
        with self._lock:
            self._running.append(environment)
        return environment

    def close(self) -> None:
        """See :class:`~pytest_evocode.environments.base.Engine`."""
        with self._lock:
            running, self._running = self._running, []
        for environment in running:
            with contextlib.suppress(EnvironmentFault):
                environment.stop()
        with contextlib.suppress(EnvironmentFault):
            remove_labelled(self._client, f"{ENGINE}={self._own[ENGINE]}")
        self._client.close()


def connect() -> APIClient:
    """A client of the daemon that ``DOCKER_HOST``, the current context or the usual socket names.

    Raises :class:`EnvironmentUnavailable`, quickly where no daemon can be there.
    """
    host = os.environ.get("DOCKER_HOST", "")
    if not host and not Path("/var/run/docker.sock").exists() and not Path.home().joinpath(".docker/contexts").exists():
        raise EnvironmentUnavailable("there is no Docker socket at /var/run/docker.sock and DOCKER_HOST is not set")
    from docker import APIClient
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env
    from requests.exceptions import RequestException

    settings: dict[str, Any] = {**kwargs_from_env()}
    if not host:
        from docker.context import ContextAPI

        with contextlib.suppress(Exception):  # A broken context file: the usual socket is tried.
            context = ContextAPI.get_current_context()
            if context is not None and context.Host:
                settings["base_url"] = context.Host
    try:
        _knock(settings.get("base_url") or "unix:///var/run/docker.sock")
        client = APIClient(version="auto", timeout=_PING_TIMEOUT, num_pools=32, **settings)
    except (DockerException, RequestException, OSError) as error:
        raise EnvironmentUnavailable(f"no Docker daemon answers at {host or 'its usual socket'}: {error}") from None
    client.timeout = _API_TIMEOUT
    return client


def _knock(url: str) -> None:
    """Connect to a socket file and hang up: where that fails, the SDK would leave its own socket open."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(_PING_TIMEOUT)
            knocking.connect(url.removeprefix("unix://"))


def owner_of(pid: int) -> str:
    """A label that names a process on this machine and nothing else, even after its number is used again."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        started = file.read().rpartition(b")")[2].split()[19].decode()
    return f"{socket.gethostname()}/{pid}/{started}"


def remove_leftovers(client: APIClient) -> None:
    """Remove containers and snapshots of sessions that died on this machine, never those of a living one."""
    with faults("looking for leftovers"):
        labelled = [
            *client.containers(all=True, filters={"label": OWNER}),
            *client.images(filters={"label": OWNER}),
        ]
    owners = {entry["Labels"][OWNER] for entry in labelled if entry.get("Labels")}
    for owner in owners:
        host, pid, started = [*owner.split("/"), "", ""][:3]
        if host != socket.gethostname() or not pid.isdigit():
            continue
        with contextlib.suppress(OSError):
            if owner_of(int(pid)) == f"{host}/{pid}/{started}":
                continue
        with contextlib.suppress(EnvironmentFault):  # Another session may be removing the same.
            remove_labelled(client, f"{OWNER}={owner}")


def remove_labelled(client: APIClient, label: str) -> None:
    """Remove the containers and then the images that carry a label."""
    with faults("removing containers and snapshots"):
        for container in client.containers(all=True, filters={"label": label}):
            client.remove_container(container["Id"], v=True, force=True)
        for image in client.images(filters={"label": label}):
            client.remove_image(image["Id"], force=True)
