"""GPUs of the engine's machine, as many for each container as its task asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Task

if TYPE_CHECKING:
    from docker.types import DeviceRequest


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
