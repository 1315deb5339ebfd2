"""Which states of reference solutions are kept on this machine; the engines keep the states themselves."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory


@dataclass(frozen=True, slots=True)
class ReferenceState:
    """The state of a task after a round, which an engine keeps under ``key``."""

    key: str
    task: str
    round: str
    size: int
    """Bytes."""


class ReferenceIndex:
    """What an engine keeps: a small file each, whose time is when the state was last used. To be used when locked."""

    def __init__(self, engine: str) -> None:
        self._directory = cache_directory() / "references" / engine
        self._directory.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self._directory / "lock")

    def locked(self) -> FileLock:
        """The lock that all sessions share; a thread may take it again while it has it."""
        return self._lock

    def making(self, task: str) -> FileLock:
        """The lock of whoever plays the solutions of a task of that name; a new one, which knows nothing of others."""
        return FileLock(self._directory / f"{task[:200]}.making")

    def read(self, key: str) -> ReferenceState | None:
        """What is known of a state; None where it is not kept."""
        try:
            return ReferenceState(**json.loads(self._file(key).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, state: ReferenceState) -> None:
        """Note a state."""
        self._file(state.key).write_text(json.dumps(asdict(state)))

    def touch(self, key: str) -> None:
        """Note that a state is used now."""
        os.utime(self._file(key))

    def forget(self, key: str) -> None:
        """Strike a state off."""
        self._file(key).unlink(missing_ok=True)

    def oldest_first(self) -> list[ReferenceState]:
        """All states, those first that were not used for longest."""
        files = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return [state for path in files if (state := self.read(path.stem)) is not None]

    def _file(self, key: str) -> Path:
        return self._directory / f"{key}.json"
