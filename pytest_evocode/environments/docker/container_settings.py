"""What the containers of one task in one session have in common, such as how many GPUs of the engine's machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.networks import NetworkSettings
from pytest_evocode.environments.entry_points import EntryPoint
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Healthcheck, Task

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import DeviceRequest


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What a container and its forks have in common."""

    client: APIClient
    labels: Mapping[str, str]
    networks: NetworkSettings
    user: str = "0"
    """The user of commands that name none: the image's USER."""
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    memory: int | None = None
    """Bytes, swap included."""
    processes: int | None = None
    volumes: tuple[str, ...] = ()
    """What the image declares as VOLUME; the engine keeps it apart from the container's files, and no commit has it."""
    image: str = ""
    """The id of the task's image, with what an agent needs on top."""
    image_layers: int = 0
    """How many layers the task's image has."""
    gpus: int = 0
    """How many of the engine's GPUs it has."""
    entry_point: EntryPoint | None = None
    """The task's image's ENTRYPOINT, which no container has as its own: a snapshot's image has our PID 1 there."""
    healthcheck: Healthcheck | None = None
    """The task's image's HEALTHCHECK, which the engine does not run."""


def entry_point_of(config: Mapping[str, Any]) -> EntryPoint | None:
    """Return the ENTRYPOINT of an image, given its configuration as the engine describes it; None where it has none."""
    argv = config.get("Entrypoint")
    return EntryPoint(tuple(argv), config.get("WorkingDir") or "/") if argv else None


def has_gpus(info: Mapping[str, Any]) -> bool:
    """Tell whether an engine, as it describes itself, can give GPUs to containers: by a runtime, or by device names."""
    runtimes = info.get("Runtimes") or {}
    devices = info.get("DiscoveredDevices") or ()
    return "nvidia" in runtimes or any("gpu" in str(device.get("ID", "")) for device in devices)


def gpus_of(task: Task, engine: str, *, available: bool) -> int:
    """Return how many GPUs a container of a task gets.

    Args:
        task: The task.
        engine: What the engine is, for messages.
        available: What :func:`has_gpus` says of it.

    Raises:
        EnvironmentFault: The task asks for GPUs, and there are none.
    """
    wanted = task.config.environment.gpus
    if wanted and not available:
        raise EnvironmentFault(
            f"{task.file}: environment.gpus = {wanted}: Docker, {engine}, has no GPUs for containers. Install NVIDIA's "
            "container toolkit on its machine and configure the runtime nvidia, or name an engine that has it by "
            "DOCKER_HOST"
        )
    return wanted


def gpu_requests(gpus: int) -> list[DeviceRequest] | None:
    """Return what to ask the engine for, as ``docker run --gpus`` does; None where nothing is asked for."""
    from docker.types import DeviceRequest

    return [DeviceRequest(count=gpus, capabilities=[["gpu"]])] if gpus else None
