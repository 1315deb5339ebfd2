"""What the containers of one task in one session have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.networks import NetworkSettings
from pytest_evocode.environments.entry_points import EntryPoint

if TYPE_CHECKING:
    from docker import APIClient


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


def entry_point_of(config: Mapping[str, Any]) -> EntryPoint | None:
    """Return the ENTRYPOINT of an image, given its configuration as the engine describes it; None where it has none."""
    argv = config.get("Entrypoint")
    return EntryPoint(tuple(argv), config.get("WorkingDir") or "/") if argv else None
