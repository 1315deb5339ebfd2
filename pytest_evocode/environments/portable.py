"""Engines whose snapshots can be taken to another machine, where the task's image is built or found by its contents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pytest_evocode.environments.protocol import Engine, Installation, Snapshot
from pytest_evocode.tasks import Task


@dataclass(frozen=True, slots=True)
class ExportedLayer:
    """A layer of a snapshot over the task's image."""

    name: str
    """Says what is in it, to this engine: layers of the same name are the same."""
    archive: Path | None
    """A tar of it, with deleted files as the engine notes them; None where it was not asked for."""


@runtime_checkable
class PortableEngine(Engine, Protocol):
    """An engine whose snapshots can be taken to another machine."""

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
            keep_for: As for :meth:`~pytest_evocode.environments.protocol.Environment.snapshot`.

        Raises:
            BuildError: The image cannot be built.
            EnvironmentFault: The engine failed.
        """
