"""An index of the reference states kept on this machine: which there are, of what size, and when each was used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from filelock import FileLock

from pytest_evocode.environments.kept_index import KeptIndex


@dataclass(frozen=True, slots=True)
class ReferenceState:
    """The state of a task after the reference solution of a round, which an engine keeps under ``key``."""

    key: str
    task: str
    round: str
    size: int
    """Bytes."""
    accepted: bool = True
    """Whether the round's suite has accepted it; without that no attempt begins there."""


class ReferenceIndex(KeptIndex[ReferenceState]):
    """The reference states that an engine keeps. Hold :meth:`locked` while using the other methods."""

    def __init__(self, engine: str) -> None:
        super().__init__("references", engine)

    def entry(self, found: dict[str, Any]) -> ReferenceState:
        """See :class:`~pytest_evocode.environments.kept_index.KeptIndex`."""
        return ReferenceState(**found)

    def making(self, task: str) -> FileLock:
        """Return a lock for running the reference solutions of a task of that name.

        Each call returns a new lock, which cannot be taken again by its holder.
        """
        return FileLock(self.directory / f"{task[:200]}.making")
