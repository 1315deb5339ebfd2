"""The Docker engine: a session's containers, labelled so that a later session can remove those of a dead one."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.builds import Builds
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.docker.calls import Kind, discard, faults, remove
from pytest_evocode.environments.docker.container_settings import (
    ContainerSettings,
    gpus_of,
    has_gpus,
    health_of,
)
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.docker.images import DockerImages
from pytest_evocode.environments.docker.snapshots import (
    COMMENT,
    KEEP_FOR,
    REFERENCES,
    DockerSnapshot,
    drop_lists_without_image,
    export_image,
    import_image,
    is_kept,
    snapshot_labels,
)
from pytest_evocode.environments.engines import BuildWish, ExportedLayer, Installation
from pytest_evocode.environments.entry_points import EntryPoint
from pytest_evocode.environments.limits import ResourceLimits
from pytest_evocode.environments.owners import Owner, is_needed
from pytest_evocode.environments.protocol import Snapshot
from pytest_evocode.errors import EnvironmentFault, EnvironmentUnavailable
from pytest_evocode.tasks import Network, Task

if TYPE_CHECKING:
    from docker import APIClient

    from pytest_evocode.environments.docker.client import EngineClient
    from pytest_evocode.environments.egress.proxy import EgressProxy

# In a session of its own, out of reach for what kills a whole process group, and a child of nobody.
_PROGRAM = """
import os, sys
if os.fork():
    os._exit(0)
sys.stdin.read()
sys.path[:] = sys.argv[2:]
from pytest_evocode.environments.docker.engine import connect, remove_docker_leftovers
remove_docker_leftovers(connect(), sys.argv[1])
"""


@functools.cache
def watch_over(engine: str) -> int:
    """Have what an engine of this process leaves removed when the process has ended, and return what that closes."""
    awaited, held = os.pipe()
    argv = [sys.executable, "-c", _PROGRAM, engine, *map(os.path.abspath, sys.path)]
    silent = subprocess.DEVNULL
    with contextlib.suppress(OSError, subprocess.SubprocessError):  # The next session removes it.
        subprocess.run(argv, stdin=awaited, stdout=silent, stderr=silent, cwd="/", start_new_session=True, timeout=60)
    os.close(awaited)
    return held


logger = logging.getLogger(__name__)

OWNER = "evocode.owner"
ENGINE = "evocode.engine"
CACHE = "evocode.cache"
IMAGE_LAYERS = "evocode.image-layers"
_UNNAMED = "<none>:<none>"
_KNOCKING = 5  # seconds
_EACH_KIND = 2.0  # seconds in which the rest of a kind is removed, where one is stuck


class DockerEngine:
    """An :class:`~pytest_evocode.environments.engines.Engine` of Docker containers.

    Args:
        limits: The limits of a container whose task sets none.
        failed_builds: A directory for builds that failed, which are not begun again by whoever shares it.
    """

    name = "docker"
    without_effect: tuple[str, ...] = ("storage_mb", "storage", "gpu_types")

    def __init__(
        self,
        limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
        *,
        failed_builds: Path | None = None,
    ) -> None:
        self._client = connect()
        self._images = DockerImages(self._client, Builds(failed_builds))
        self._limits = limits
        with faults("asking the engine what it is"):
            info = self._client.info()
        self.description = f"engine {info['ServerVersion']}"
        # The kernel is that of the engine's machine, which may be another one.
        self.versions = {"Docker": str(info["ServerVersion"]), "kernel": str(info.get("KernelVersion", ""))}
        self.memory: int = info["MemTotal"]
        self._has_gpus = has_gpus(info)
        logger.info("Docker %s, %d MiB of memory", self.description, self.memory // 2**20)
        self._own = {
            OWNER: str(Owner.this()),
            ENGINE: uuid.uuid4().hex,  # A process may have two engines.
            CACHE: str(cache_directory()),
        }
        self._lock = threading.Lock()
        self._running: list[DockerEnvironment] = []
        self._network: str | None = None
        self._proxy: EgressProxy | None = None
        self._client.removals.background(partial(remove_docker_leftovers, self._client))

    def create(
        self,
        task: Task,
        *,
        env: Mapping[str, str],
        network: Network | None,
        snapshot: Snapshot | None = None,
        installation: Installation | None = None,
    ) -> DockerEnvironment:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        gpus = gpus_of(task, self.description, available=self._has_gpus)
        image = self._images.ensure(task, installation)
        config = image.get("Config") or {}
        wanted = task.config.environment
        argv = config.get("Entrypoint")
        assert snapshot is None or isinstance(snapshot, DockerSnapshot)
        settings = ContainerSettings(
            self._client,
            self._labels(task, image),
            self._public_network,
            self.egress_proxy,
            user=config.get("User") or "0",
            env=dict(env),
            cpus=wanted.cpus,
            memory=self._limits.memory(wanted.memory_mb, self.memory),
            processes=self._limits.processes,
            volumes=tuple(config.get("Volumes") or ()),
            image=image["Id"],
            image_layers=len(image["RootFS"]["Layers"]),
            entry_point=EntryPoint(tuple(argv), config.get("WorkingDir") or "/") if argv else None,
            healthcheck=health_of(None, image),
            gpus=gpus,
        )
        if task.compose is not None:
            from pytest_evocode.environments.docker.compose.making import compose_environment

            watch_over(self._own[ENGINE])
            memory = self._limits.memory(None, self.memory)
            environment: DockerEnvironment = compose_environment(
                self._images, task, settings, image, network=network, snapshot=snapshot, memory=memory
            )
        else:
            environment = DockerEnvironment(
                settings,
                snapshot.image if snapshot is not None else image["Id"],
                workdir=wanted.workdir or config.get("WorkingDir") or "/",
                network=network,
                volumes=snapshot.volumes if snapshot is not None else None,
            )
        with self._lock:
            self._running.append(environment)
        return environment

    def _public_network(self) -> str:
        """Return the session's own network, which is made when it is first needed.

        On the engine's default network containers can talk to one another: a fork to the agent, whose next turn has
        begun.
        """
        with self._lock, faults("making a network"):
            if self._network is None:
                created = self._client.create_network(
                    f"evocode-{self._own[ENGINE]}",
                    driver="bridge",
                    options={"com.docker.network.bridge.enable_icc": "false"},
                    labels=dict(self._own),
                )
                self._network = created["Id"]
            return self._network

    def egress_proxy(self) -> EgressProxy:
        """Return the proxy of all containers with an allowlist, which is made when it is first needed."""
        from pytest_evocode.environments.egress.proxy import EgressProxy

        with self._lock:
            self._proxy = self._proxy or EgressProxy()
            return self._proxy

    def find_snapshot(self, reference: str) -> Snapshot | None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        from docker.errors import ImageNotFound

        with faults("looking for a snapshot"):
            try:
                image = self._client.inspect_image(reference)  # type: ignore[no-untyped-call]
            except ImageNotFound:
                return None
        below = int(image["Config"]["Labels"].get(IMAGE_LAYERS, 0))
        return DockerSnapshot(self._client, reference, below)

    def export_snapshot(self, snapshot: Snapshot, known: Collection[str], target: Path) -> list[ExportedLayer]:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        assert isinstance(snapshot, DockerSnapshot)
        with faults("reading a snapshot"):
            image = self._client.inspect_image(snapshot.image)  # type: ignore[no-untyped-call]
        return export_image(self._client, image, snapshot.image_layers, known, target)

    def import_snapshot(
        self,
        task: Task,
        installation: Installation | None,
        reference: str,
        layers: Sequence[ExportedLayer],
        keep_for: Path,
    ) -> None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        base = self._images.ensure(task, installation)
        labels = {**self._labels(task, base), **snapshot_labels(keep_for, ())}
        import_image(self._client, base, reference, layers, labels)

    def _labels(self, task: Task, image: Mapping[str, Any]) -> dict[str, str]:
        """Return what says whose a container or snapshot is, of a task with this image."""
        return {**self._own, "evocode.task": task.name, IMAGE_LAYERS: str(len(image["RootFS"]["Layers"]))}

    @property
    def storage(self) -> Path:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        root = Path(str(self._client.info().get("DockerRootDir") or "/"))
        # Else the daemon is elsewhere, as in a container beside this one.
        return root if root.is_dir() else cache_directory()

    @property
    def image_tags(self) -> frozenset[str]:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return frozenset(tag for image in self._client.images() for tag in image.get("RepoTags") or ())

    def image_key(self, task: Task) -> str:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return str(self._images.ensure(task)["Id"])

    def build_seconds(self, task: Task) -> float | None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return self._images.build_seconds(task)

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        from pytest_evocode.environments.docker.compose.making import ensure_images

        made = self._images.build(task, installation, wish)
        return ensure_images(self._images, task, wish) or made

    def image_size(self, task: Task, installation: Installation | None) -> int:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return int(self._images.ensure(task, installation)["Size"])

    def keep_reference_state(self, key: str, snapshot: Snapshot) -> int:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        assert isinstance(snapshot, DockerSnapshot)
        if not snapshot.reference:
            raise EnvironmentFault("the task keeps files in volumes or services, which no image can hold")
        with faults("keeping a reference state"):
            self._client.tag(snapshot.image, REFERENCES, key)
            layers = self._client.history(snapshot.image)  # type: ignore[no-untyped-call]
        return sum(layer["Size"] for layer in layers if layer["Comment"] == COMMENT)

    def find_reference_state(self, key: str) -> Snapshot | None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return self.find_snapshot(f"{REFERENCES}:{key}")

    def drop_reference_state(self, key: str) -> None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        remove_reference_state(self._client, key)

    @property
    def left_behind(self) -> Sequence[str]:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return sorted(self._client.removals.left)

    def close(self) -> None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        with self._lock:
            running, self._running = self._running, []
        for environment in running:
            with contextlib.suppress(EnvironmentFault):
                environment.stop()
        self._client.removals.wait_again()
        self._client.removals.background(partial(remove_docker_leftovers, self._client, self._own[ENGINE]))
        if self._proxy is not None:
            self._proxy.close()
        self._client.close()


def connect() -> EngineClient:
    """Connect to the daemon that ``DOCKER_HOST``, the current context or the usual socket names.

    Raises:
        EnvironmentUnavailable: No daemon answers; this takes no time where none can be there.
    """
    host = os.environ.get("DOCKER_HOST", "")
    if not host and not Path("/var/run/docker.sock").exists() and not Path.home().joinpath(".docker/contexts").exists():
        raise EnvironmentUnavailable("there is no Docker socket at /var/run/docker.sock and DOCKER_HOST is not set")
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env
    from requests.exceptions import RequestException

    from pytest_evocode.environments.docker.client import EngineClient

    settings: dict[str, Any] = {**kwargs_from_env()}
    if not host:
        from docker.context import ContextAPI

        with contextlib.suppress(Exception):  # With a broken context file, the usual socket is tried.
            context = ContextAPI.get_current_context()
            if context is not None and context.Host:
                settings["base_url"] = context.Host
    try:
        _knock(settings.get("base_url") or "unix:///var/run/docker.sock")
        return EngineClient(**settings)
    except (DockerException, RequestException, OSError) as error:
        raise EnvironmentUnavailable(f"no Docker daemon answers at {host or 'its usual socket'}: {error}") from None


def _knock(url: str) -> None:
    """Connect to a Unix socket and hang up.

    Raises OSError where nobody answers, where the SDK would leave its own socket open.
    """
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(_KNOCKING)
            knocking.connect(url.removeprefix("unix://"))


def find_docker_leftovers(
    client: APIClient, *, needed_too: bool = False, engine: str = ""
) -> dict[Kind, list[dict[str, Any]]]:
    """Find the containers, networks, volumes and images of dead sessions.

    Args:
        client: A client of the engine.
        needed_too: Include snapshots that an attempt may still be resumed from, and kept containers.
        engine: Include those of an engine of a living session.

    Returns:
        The engine's descriptions of them, by their kind: ``container``, ``network``, ``volume`` or ``image``.
    """
    with faults("looking for leftovers"):
        labelled = {"label": OWNER}
        containers = client.containers(all=True, filters=labelled)
        networks = client.networks(filters=labelled)
        images = client.images(filters=labelled)
        volumes = client.volumes(filters=labelled)["Volumes"] or ()
    in_use = {entry["ImageID"] for entry in containers if is_kept(entry)}
    found: dict[Kind, list[dict[str, Any]]] = {
        "container": [entry for entry in containers if needed_too or not is_kept(entry)],
        "network": networks,
        "volume": [{**entry, "Id": entry["Name"]} for entry in volumes],
        "image": [
            entry
            for entry in images
            if (needed_too or not (_is_needed(entry) or entry["Id"] in in_use))
            and not all(map(_is_reference, entry.get("RepoTags") or [""]))
        ],
    }
    return {kind: [each for each in entries if _is_orphan(each, engine)] for kind, entries in found.items()}


def is_of_other_cache(entry: Mapping[str, Any]) -> bool:
    """Tell whether what was kept belongs to another cache than this process has, or to an unknown one."""
    return (entry.get("Labels") or {}).get(CACHE) != str(cache_directory())


def remove_docker_leftovers(client: EngineClient, engine: str = "") -> None:
    """Remove the containers, networks, volumes and snapshots of sessions that died on this machine; raises nothing.

    Args:
        client: A client of the engine.
        engine: An engine of a living session, whose things are removed as well.
    """
    found: dict[Kind, list[dict[str, Any]]] = {}
    removals = client.removals

    def find() -> None:
        found.update(find_docker_leftovers(client, engine=engine))
        removals.forget_failed()

    removals.attempt("what sessions left", find)
    for kind, entries in found.items():
        names = [name for entry in entries for name in names_of(kind, entry)]
        discard(client, kind, *names, wait=_EACH_KIND)
    with contextlib.suppress(EnvironmentFault), faults("looking for snapshots"):
        drop_lists_without_image(client)


def names_of(kind: Kind, entry: Mapping[str, Any]) -> Sequence[str]:
    """Return the names that something is to be removed by: all that an image has but those of reference states."""
    tags = entry.get("RepoTags") if kind == "image" else ()
    # By name where it has one, which no image on top of it prevents.
    return [entry["Id"] if tag == _UNNAMED else tag for tag in tags or [entry["Id"]] if not _is_reference(tag)]


def _is_reference(name: str) -> bool:
    return name.startswith(f"{REFERENCES}:")


def remove_reference_state(client: APIClient, key: str) -> None:
    """Remove the name of a reference state, and the image with it unless it is still a snapshot."""
    remove(client, "image", f"{REFERENCES}:{key}", force=False)


def _is_orphan(entry: Mapping[str, Any], engine: str) -> bool:
    labels = entry.get("Labels") or {}
    owner = Owner.from_label(labels.get(OWNER, ""))
    is_own = engine != "" and labels.get(ENGINE) == engine
    return is_own or (owner is not None and not owner.is_alive())


def _is_needed(entry: Mapping[str, Any]) -> bool:
    """Tell whether an image is a snapshot that an attempt needs."""
    keep_for = (entry.get("Labels") or {}).get(KEEP_FOR)
    tags = entry.get("RepoTags") or ()
    return keep_for is not None and any(is_needed(tag, Path(keep_for)) for tag in tags)
