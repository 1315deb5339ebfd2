"""What an engine can do, the maker of environments of one kind, and how it is asked for it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pytest_evocode.environments.protocol import Environment, Snapshot
from pytest_evocode.tasks import Network, Task


@dataclass(frozen=True, slots=True)
class Installation:
    """Software that an agent needs on top of a task's image; installed once per content of image and script."""

    name: str
    """What is installed, for messages."""
    script: str
    """Run by ``bash -c`` as root, with a network and, in the usual variables, the machine's proxies and certificates.

    ``$EVOCODE_ENGINE`` is the engine's name, ``docker`` or ``sandbox``. In a sandbox the system is the host's.
    """
    ca: Path | None = None
    """File of certificates to trust while the script runs, beside those that this machine's variables name."""


@dataclass(frozen=True, slots=True)
class BuildWish:
    """How a build is asked for."""

    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the build is not wanted any more: it is ended, and whoever waits for it gets Cancelled."""
    ahead: bool = False
    """Whether nobody waits for the image yet: then the build waits while too many others run on this machine."""


@dataclass(frozen=True, slots=True)
class ExportedLayer:
    """A layer of a snapshot over the task's image."""

    name: str
    """Says what is in it, to this engine: layers of the same name are the same."""
    archive: Path | None
    """A tar of it, with deleted files as the engine notes them; None where it was not asked for."""


class Engine(Protocol):
    """A maker of environments of one kind."""

    name: str
    """``docker`` or ``sandbox``."""

    description: str
    """What the engine is on this machine, for the header."""

    memory: int
    """Bytes of the machine that environments run on, which they share."""

    without_effect: tuple[str, ...]
    """Keys below ``[environment]`` of ``task.toml`` that have no effect here."""

    @property
    def storage(self) -> Path:
        """Where on this machine it keeps images and what attempts write."""

    @property
    def image_tags(self) -> frozenset[str]:
        """The names of the images that it has, where they have names."""

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of what the engine is made of, by name, for the record of a run."""

    def create(
        self,
        task: Task,
        *,
        env: Mapping[str, str],
        network: Network | None,
        snapshot: Snapshot | None = None,
        installation: Installation | None = None,
    ) -> Environment:
        """Return a new environment of a task, not started; its image is built first unless one of its content exists.

        Args:
            task: The task.
            env: The task's variables, with everything resolved.
            network: As in ``task.toml``; None for the engine's default.
            snapshot: Its files are there in place of the image's; taken of an environment of the same task and
                installation.
            installation: Software to be on top of the image.

        Raises:
            BuildError: The image or the installation cannot be built; the message has the last lines of the build.
        """

    def find_snapshot(self, reference: str) -> Snapshot | None:
        """Return a snapshot that this session or an earlier one has kept, None where it is gone."""

    def image_key(self, task: Task) -> str:
        """Return a key of the contents of the task's image, which is built first when there is none.

        Raises:
            BuildError: It cannot be built.
        """

    def build_seconds(self, task: Task) -> float | None:
        """Return how long it took to build the task's image, which is built first when there is none.

        None is for a task that names a finished image.

        Raises:
            BuildError: It cannot be built.
        """

    def export_snapshot(self, snapshot: Snapshot, known: Collection[str], target: Path) -> list[ExportedLayer]:
        """Write what a snapshot has on top of its image to files, and return the layers, the lowest first.

        Args:
            snapshot: One that has a reference and is made.
            known: Names of layers that are not wanted, because somebody has them.
            target: An empty directory for the files.

        Raises:
            EnvironmentFault: The engine failed, or the snapshot is gone.
        """

    def import_snapshot(
        self,
        task: Task,
        installation: Installation | None,
        reference: str,
        layers: Sequence[ExportedLayer],
        keep_for: Path,
    ) -> None:
        """Have :meth:`find_snapshot` find a snapshot that another machine exported.

        Args:
            task: The task, whose image is built first unless one of its content exists.
            installation: What is on top of the image.
            reference: The snapshot's, on both machines.
            layers: What was exported, the lowest layer first, all with their archives.
            keep_for: As for :meth:`Environment.snapshot`.

        Raises:
            BuildError: The image cannot be built.
            EnvironmentFault: The engine failed.
        """

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
        """Build what :meth:`create` starts from, unless it is there; return whether it was built now.

        Raises:
            BuildError: It cannot be built; the message has the last lines of the build.
            Cancelled: It is not wanted any more.
        """

    def image_size(self, task: Task, installation: Installation | None) -> int:
        """Return the bytes of an image, which is built first when there is none; raises BuildError.

        In Docker all that it is built on counts; in a sandbox, where that is the host's system, it does not.
        """

    def keep_reference_state(self, key: str, snapshot: Snapshot) -> int:
        """Keep a copy of a snapshot beyond the session under a name, and return how many bytes it takes."""

    def find_reference_state(self, key: str) -> Snapshot | None:
        """Return the copy of that name, for :meth:`create`; None where there is none."""

    def drop_reference_state(self, key: str) -> None:
        """Remove the copy of that name, if there is one."""

    def close(self) -> None:
        """Stop every environment that still runs, and remove what no attempt needs any more."""

    @property
    def left_behind(self) -> Sequence[str]:
        """What could not be removed so far, of this session and of dead ones."""
