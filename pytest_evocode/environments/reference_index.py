"""An index of the reference states kept on this machine: which there are, of what size, and when each was used."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
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

    @contextlib.contextmanager
    def used(self, key: str) -> Iterator[None]:
        """Have a state seen as in use; any number of sessions may use one, and a killed one uses none."""
        with self._use(key).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def is_used(self, key: str) -> bool:
        """Return whether any session uses a state."""
        try:
            with self._use(key).open("r") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def forget(self, key: str) -> None:
        """See :class:`~pytest_evocode.environments.kept_index.KeptIndex`."""
        super().forget(key)
        self._use(key).unlink(missing_ok=True)

    def _use(self, key: str) -> Path:
        return self.directory / f"{key}.use"
