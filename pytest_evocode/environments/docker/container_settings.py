"""What the containers of one task in one session have in common, such as GPUs, and when one of them is healthy.

Health checks of images and compose files are run by us and never by the engine, each until it passes, and not any more.
The engine would go on with it for ever, and a container that is paused in the middle of one stays so until the timeout
of the check, for which a snapshot would have to wait.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.execs import EngineCommand, run_by_engine
from pytest_evocode.environments.entry_points import EntryPoint
from pytest_evocode.environments.programs import CappedOutput
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Healthcheck, Task
from pytest_evocode.tasks.compose_file import parse_seconds

if TYPE_CHECKING:
    from docker import APIClient

    from pytest_evocode.environments.egress.proxy import EgressProxy


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What a container and its forks have in common."""

    client: APIClient
    labels: Mapping[str, str]
    public_network: Callable[[], str]
    """Finds or makes the network for containers that may reach the internet, but never one another."""
    proxy: Callable[[], EgressProxy]
    """Finds or makes the proxy of containers with an allowlist."""
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


_SHORTEST = 0.2  # seconds between two tries: nobody has to wait for the interval of a service that is ready
_SHOWN = 1000  # characters of what the last try printed


def health_of(said: Mapping[str, Any] | None, image: Mapping[str, Any]) -> Healthcheck | None:
    """Return the health check of an image, as the engine describes it, with what a compose file says; None for none."""
    built = (image.get("Config") or {}).get("Healthcheck") or {}
    said = said or {}
    if said.get("disable"):
        return None

    def seconds(name: str, built_as: str) -> float:
        return parse_seconds(str(said[name])) if name in said else built.get(built_as, 0) / 1e9

    return Healthcheck.of_engine(
        [str(word).replace("$$", "$") for word in said["test"]] if "test" in said else built.get("Test") or (),
        interval=seconds("interval", "Interval"),
        timeout=seconds("timeout", "Timeout"),
        start_period=seconds("start_period", "StartPeriod"),
        retries=int(said.get("retries") or built.get("Retries") or 0),
    )


def wait_until_healthy(client: APIClient, container: str, check: Healthcheck, ended: Callable[[], bool]) -> str:
    """Try until a service is ready, or its container has ``ended``; return why it never will be, empty where it is."""
    begun = time.monotonic()
    # After so long, one that never answered has failed as often as it may.
    patience = check.start_period_sec + check.retries * (check.interval_sec + check.timeout_sec)
    failures, shown = 0, ""
    while time.monotonic() - begun < patience:
        output = CappedOutput()
        argv = tuple(shlex.split(check.command))
        command = EngineCommand(argv, "", {}, "", time.monotonic() + check.timeout_sec)
        try:
            code, timed_out = run_by_engine(client, container, command, output, lambda: None)
        except EnvironmentFault:
            if ended():
                return "has ended"
            raise
        if code == 0 and not timed_out:
            return ""
        shown = output.text()[-_SHOWN:]
        # More tries than the engine would make, but the same time.
        failures += 1
        if ended():
            return "has ended"
        time.sleep(min(check.interval_sec, _SHORTEST * 2 ** min(failures, 6)))
    return f"is unhealthy: {shown.strip()}" if shown.strip() else "is unhealthy"
