"""The protocol of engines that can be asked for an image before anybody needs an environment of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pytest_evocode.environments.protocol import Engine, Installation
from pytest_evocode.tasks import Task


@dataclass(frozen=True, slots=True)
class BuildWish:
    """How a build is asked for."""

    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the build is not wanted any more: it is ended, and whoever waits for it gets Cancelled."""
    ahead: bool = False
    """Whether nobody waits for the image yet: then the build waits while too many others run on this machine."""


@runtime_checkable
class BuildingEngine(Engine, Protocol):
    """An engine that builds images ahead of their use, and ends a build that nobody wants any more."""

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
        """Build what :meth:`Engine.create` starts from, unless it is there; return whether it was built now.

        Raises:
            BuildError: It cannot be built; the message has the last lines of the build.
            Cancelled: It is not wanted any more.
        """

    def image_size(self, task: Task, installation: Installation | None) -> int:
        """Return the bytes of an image, which is built first when there is none; raises BuildError.

        In Docker all that it is built on counts; in a sandbox, where that is the host's system, it does not.
        """
