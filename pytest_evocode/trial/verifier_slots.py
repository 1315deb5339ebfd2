"""How many suites run at once on this machine, whichever session, worker or attempt they belong to."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory, try_lock
from pytest_evocode.errors import Cancelled
from pytest_evocode.results.phases import Stopwatch

_INTERVAL = 0.02  # seconds
_STOPPED = "stopped while waiting for other suites"
_next_in_line = threading.Lock()
"""Held by the one waiting thread of this process that looks for a free slot: with many cores a look costs too much."""


class VerifierSlots:
    """So many slots, each a locked file of the cache; a process that dies frees its own.

    Suites are timed: more of them than cores would make one another late. None takes as many slots as there are cores.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1

    @contextlib.contextmanager
    def take(self, cancelled: threading.Event, stopwatch: Stopwatch | None = None) -> Iterator[None]:
        """Wait for a slot and hold it; raises :class:`~pytest_evocode.errors.Cancelled` when told to stop waiting.

        The stopwatch, if any, measures the waiting, and from then on what a fork takes.
        """
        stopwatch = stopwatch or Stopwatch()
        stopwatch.begin("waiting")
        directory = cache_directory() / "verifiers"
        directory.mkdir(exist_ok=True)
        while not _next_in_line.acquire(timeout=_INTERVAL):
            if cancelled.is_set():
                raise Cancelled(_STOPPED)
        try:
            while (lock := self._free_one(directory)) is None:
                if cancelled.wait(_INTERVAL):
                    raise Cancelled(_STOPPED)
        finally:
            _next_in_line.release()
        stopwatch.begin("fork")
        try:
            yield
        finally:
            lock.release()

    def _free_one(self, directory: Path) -> FileLock | None:
        for number in range(self.count):
            if (lock := try_lock(directory / f"slot-{number}.lock")) is not None:
                return lock
        return None
