"""What the services of an environment held at a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.docker.removal import discard

if TYPE_CHECKING:
    from docker import APIClient


@dataclass(frozen=True, slots=True)
class VolumeCopy:
    """What a volume held."""

    contents: IO[bytes]
    service: str
    """A service that has it."""
    path: str
    """Where, in that service."""


@dataclass(frozen=True, slots=True)
class ServicesSnapshot:
    """What the services of an environment held when a snapshot was taken of it."""

    client: APIClient
    templates: Mapping[str, Mapping[str, Any]]
    """The engine's description of the containers, by service."""
    images: Mapping[str, str]
    """The images of those whose files had changed, by service."""
    volumes: Mapping[str, VolumeCopy]
    """By the engine's names of the volumes."""
    main_volumes: Mapping[str, str]
    """The engine's names of the volumes that ``main`` shares, by their paths in ``main``."""

    def discard(self) -> None:
        """Free what it takes."""
        for volume in self.volumes.values():
            volume.contents.close()
        for image in self.images.values():
            discard(self.client, "image", image)
