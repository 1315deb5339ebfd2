"""How many suites run at once on this machine, whichever session, worker or attempt they belong to."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory, try_lock
from pytest_evocode.errors import Cancelled
from pytest_evocode.results.phases import Stopwatch
from pytest_evocode.tasks import Round, Task

_INTERVAL = 0.02  # seconds
_MORE = 0.001
"""Seconds more between two looks for each slot: to try one costs some 0.2 ms of a core's time."""
_NOTICE = 0.1  # seconds until a thread that does not look notices that it is to stop
_BEAT = 1.0  # seconds after which the first in a line shows that it lives
_PATIENCE = 15.0
"""Seconds without that after which it counts as halted."""
_SLACK = 0.1
"""Of a slot's memory: what is sold as 8 GB has less, and two suites of 4 GB are to run on it together."""
_STOPPED = "stopped while waiting for other suites"
_next_in_line = threading.Lock()
"""Held by the one waiting thread of this process that is in the line of processes."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What suites share."""

    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    memory: int | None = None
    """Bytes; None where that is not known, and then no suite takes more slots because of its memory."""


def suite_resources(task: Task, round_: Round) -> tuple[float | None, int | None]:
    """Return the CPUs and bytes of memory that a round's suite may use, as far as the task declares them.

    A suite that runs apart may use what the larger of its two environments may: one waits while the other works.
    """
    if round_.suite_environment is not None:
        own = round_.suite_environment.config
        return own.cpus, own.memory_mb * 2**20 if own.memory_mb is not None else None
    apart = task.config.verifier.environment if round_.verify_in == "separate" else None
    used = [each for each in (task.config.environment, apart) if each is not None]
    cpus = [each.cpus for each in used if each.cpus is not None]
    memory = [each.memory_mb * 2**20 for each in used if each.memory_mb is not None]
    return max(cpus, default=None), max(memory, default=None)


class VerifierSlots:
    """So many slots, each a locked file of the cache; a process that dies frees its own.

    Suites are timed: more of them than cores would make one another late. None takes as many slots as there are cores.
    Each slot is an equal share of the machine, at least one core.
    """

    def __init__(self, count: int | None = None, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()
        self.count = count or self._machine.cores

    def needed(self, cpus: float | None = None, memory: int | None = None) -> int:
        """Return how many slots a suite takes that declares so many CPUs and bytes of memory; None is not declared.

        One that declares more than the machine has takes all slots, and so runs alone.

        >>> slots = VerifierSlots(machine=Machine(cores=64, memory=256 * 2**30))
        >>> slots.needed(), slots.needed(cpus=8), slots.needed(cpus=0.5), slots.needed(cpus=2, memory=32 * 2**30)
        (1, 8, 1, 8)
        >>> slots.needed(cpus=96)
        64
        """
        # Whoever asks for more slots than cores wants suites to share cores.
        shares = min(self.count, self._machine.cores)
        wanted = [1]
        if cpus is not None:
            wanted.append(math.ceil(cpus * shares / self._machine.cores))
        if memory is not None and self._machine.memory:
            wanted.append(math.ceil(memory * shares / self._machine.memory - _SLACK))
        return max(wanted) if max(wanted) <= shares else self.count

    @contextlib.contextmanager
    def take(self, cancelled: threading.Event, stopwatch: Stopwatch | None = None, *, slots: int = 1) -> Iterator[None]:
        """Wait for slots and hold them; raises :class:`~pytest_evocode.errors.Cancelled` when told to stop waiting.

        The stopwatch, if any, measures the waiting, then what a fork takes, and how long the slots were held.
        """
        stopwatch = stopwatch or Stopwatch()
        stopwatch.begin("waiting")
        with contextlib.ExitStack() as held:
            for lock in _Wait(cache_directory() / "verifiers", self.count, cancelled).take(slots):
                held.callback(lock.release)
            stopwatch.begin("fork")
            with stopwatch.holding(slots):
                yield


class _Wait:
    """One thread's wait for slots.

    Processes with the same number of slots stand in one line, by a lock, and only the first of them looks for slots. So
    one that needs several is not passed by those behind it, and a look is paid once on the machine. It takes all that
    it needs in one look or nothing: two of sessions with other numbers of slots might wait for each other. The first
    in a line shows that it lives. One that was halted, such as by Ctrl-Z, is passed by the others.
    """

    def __init__(self, directory: Path, count: int, cancelled: threading.Event) -> None:
        directory.mkdir(exist_ok=True)
        self._cancelled = cancelled
        self._line = directory / f"line-{count}.lock"
        self._pulse = directory / f"line-{count}.pulse"
        self._slots = [directory / f"slot-{number}.lock" for number in range(count)]
        self._last_beat = 0.0

    def take(self, slots: int) -> list[FileLock]:
        with contextlib.ExitStack() as standing:
            while not _next_in_line.acquire(timeout=_NOTICE):
                self._go_on()
            standing.callback(_next_in_line.release)
            is_first = self._stand_in_line(standing)
            while not (found := self._look(slots)):
                if is_first and time.monotonic() - self._last_beat > _BEAT:
                    self._last_beat = time.monotonic()
                    self._pulse.touch()
                self._go_on(_INTERVAL + _MORE * len(self._slots))
            return found

    def _stand_in_line(self, standing: contextlib.ExitStack) -> bool:
        """Wait to be the first; False where the one that is was halted."""
        beat, since = _changed(self._pulse), time.monotonic()
        while (lock := try_lock(self._line)) is None:
            if (now := _changed(self._pulse)) != beat:
                beat, since = now, time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                return False
            self._go_on(_INTERVAL)
        standing.callback(lock.release)
        return True

    def _look(self, wanted: int) -> list[FileLock]:
        """Take so many slots, if they are free; else none."""
        found: list[FileLock] = []
        for path in self._slots:
            if (lock := try_lock(path)) is not None:
                found.append(lock)
                if len(found) == wanted:
                    return found
        for lock in found:
            lock.release()
        return []

    def _go_on(self, after: float = 0.0) -> None:
        if self._cancelled.wait(after):
            raise Cancelled(_STOPPED)


def _changed(path: Path) -> int:
    """Return when a file was last changed, in nanoseconds; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
