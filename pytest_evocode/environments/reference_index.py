"""An index of the reference states kept on this machine: which there are, of what size, and when each was used."""

from __future__ import annotations

import contextlib
import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory, is_used, sign_of, used
from pytest_evocode.tasks.atomic_write import write_atomically


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


class ReferenceIndex:
    """The reference states that an engine keeps: one small file for each key, shared by all sessions.

    A file's modification time is when its state was last used. What is damaged counts as not there. Hold
    :meth:`locked` while using the other methods.
    """

    def __init__(self, engine: str) -> None:
        """Make the directory of an engine's states, if there is none; nobody but the user can read it."""
        self.directory = cache_directory() / "references" / engine
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = FileLock(self.directory / "lock")

    def locked(self) -> FileLock:
        """Return the lock that all sessions share; a thread that holds it may take it again."""
        return self._lock

    def read(self, key: str) -> ReferenceState | None:
        """Return what is known of a state; None where it is not kept."""
        try:
            return ReferenceState(**json.loads(self._file(key).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, state: ReferenceState) -> None:
        """Add a state, or replace it."""
        write_atomically(self._file(state.key), json.dumps(asdict(state)))

    def touch(self, key: str) -> None:
        """Record that a state is used now."""
        with contextlib.suppress(OSError):
            os.utime(self._file(key))

    def forget(self, key: str) -> None:
        """Remove a state from the index."""
        self._file(key).unlink(missing_ok=True)
        sign_of(self._file(key)).unlink(missing_ok=True)

    def oldest_first(self) -> list[ReferenceState]:
        """Return all states, the least recently used first."""
        with self._lock:
            files = sorted(self.directory.glob("[!.]*.json"), key=lambda path: path.stat().st_mtime_ns)
            return [state for path in files if (state := self.read(path.stem)) is not None]

    def making(self, task: str) -> FileLock:
        """Return a lock for running the reference solutions of a task of that name.

        Each call returns a new lock, which cannot be taken again by its holder.
        """
        return FileLock(self.directory / f"{task[:200]}.making")

    def used(self, key: str) -> AbstractContextManager[None]:
        """Have a state seen as in use meanwhile."""
        return used(self._file(key))

    def is_used(self, key: str) -> bool:
        """Return whether any session uses a state."""
        return is_used(self._file(key))

    def _file(self, key: str) -> Path:
        return self.directory / f"{key}.json"
