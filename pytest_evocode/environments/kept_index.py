"""Indexes of what is kept on this machine beyond sessions: one small file for each key, shared by all sessions."""

from __future__ import annotations

import contextlib
import json
import os
from abc import ABC, abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.tasks.atomic_write import write_atomically


class KeptThing(Protocol):
    """What an index tells of one thing; a dataclass."""

    @property
    def key(self) -> str:
        """The key under which the thing is found."""


Entry = TypeVar("Entry", bound=KeptThing)


class KeptIndex(ABC, Generic[Entry]):
    """An index of what is kept for one engine.

    A file's modification time is when its thing was last used. What is damaged counts as not there.
    """

    def __init__(self, kind: str, engine: str) -> None:
        """Make the directory of all things of a kind, if there is none; nobody but the user can read it."""
        self.directory = cache_directory() / kind / engine
        """Has the index, and may have other files without the suffix ``.json``."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = FileLock(self.directory / "lock")

    @abstractmethod
    def entry(self, found: dict[str, Any]) -> Entry:
        """Return an entry of what was read from its file; raises KeyError and TypeError where that is none."""

    def locked(self) -> FileLock:
        """Return the lock that all sessions share; a thread that holds it may take it again."""
        return self._lock

    def read(self, key: str) -> Entry | None:
        """Return what is known of a thing; None where it is not kept."""
        try:
            return self.entry(json.loads(self._file(key).read_bytes()))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, entry: Entry) -> None:
        """Add an entry, or replace it."""
        write_atomically(self._file(entry.key), json.dumps(asdict(entry)))  # type: ignore[call-overload]

    def touch(self, key: str) -> None:
        """Record that a thing is used now."""
        with contextlib.suppress(OSError):
            os.utime(self._file(key))

    def forget(self, key: str) -> None:
        """Remove a thing from the index."""
        self._file(key).unlink(missing_ok=True)

    def oldest_first(self) -> list[Entry]:
        """Return all entries, the least recently used first."""
        with self._lock:
            files = sorted(self.directory.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            return [entry for path in files if (entry := self.read(path.stem)) is not None]

    def _file(self, key: str) -> Path:
        return self.directory / f"{key}.json"
