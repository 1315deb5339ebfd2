"""Which of an attempt's suites goes first where several wait: for a place for their fork, or to run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

from pytest_evocode.errors import Cancelled

_INTERVAL = 0.05  # seconds between two looks at whether a suite is stopped


class Rank(NamedTuple):
    """What decides which suite goes first: the greatest."""

    awaited: bool
    """Whether the chain of rounds goes on only with this verdict."""
    begun: bool
    """Whether an earlier run of the same suite has left a fork, which is there until all its runs are done."""
    length: int
    """How long the suite is likely to take, against others of the attempt."""

    @classmethod
    def of(cls, index: int, *, awaited: bool, begun: bool) -> Rank:
        """Return the rank of a round's suite.

        Suites are cumulative, so the latest takes the longest, and what is begun last should be short: then no slot is
        empty for long while the last suite runs. Of those that the chain waits for, the earliest decides first.
        """
        return cls(awaited, begun, -index if awaited else index)


class Places:
    """A number of places, which suites that wait for one get by their rank; of equals the one that came first."""

    def __init__(self, count: int) -> None:
        self._changed = threading.Condition()
        self._free = count
        self.waiting: list[tuple[Rank, object]] = []

    @contextlib.contextmanager
    def held(self, rank: Rank, stopped: threading.Event) -> Iterator[None]:
        """Wait for a place and hold it; raises Cancelled once ``stopped`` is set."""
        turn = (rank, object())
        with self._changed:
            self.waiting.append(turn)
            try:
                while not (self._free and turn is max(self.waiting, key=lambda each: each[0])):
                    if stopped.is_set():
                        raise Cancelled("stopped while waiting for other suites")
                    self._changed.wait(_INTERVAL)
                self._free -= 1
            finally:
                self.waiting.remove(turn)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()
