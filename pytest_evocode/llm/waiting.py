"""The time in a turn in which the agent could not work because of its model's provider, by cause.

It counts neither against the turn's timeout nor against the budget's minutes.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Literal

from pytest_evocode.errors import ModelFault
from pytest_evocode.results.records import Waits

WaitCause = Literal["rate limit", "provider", "network", "connections"]
LONGEST = 3600.0
"""Seconds that a turn may wait in all, unless the session says otherwise."""


class Waiting:
    """What one turn has waited for; any thread may ask while another one waits."""

    def __init__(self, limit: float = LONGEST, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._seconds: dict[WaitCause, float] = {}
        self._retries = 0
        self._since: float | None = None
        self._until = -math.inf
        """Up to when time is counted."""
        self._under_way: dict[object, WaitCause] = {}
        """The waits under way, of which the first one's time counts."""
        self._at_work: set[object] = set()
        """Requests that are with the model: as long as there are any, whoever asks is not kept from going on."""

    @property
    def seconds(self) -> float:
        """Seconds so far, those of the wait under way included."""
        with self._lock:
            running = 0.0 if self._since is None else self._clock() - self._since
            return sum(self._seconds.values()) + running

    @property
    def waits(self) -> Waits | None:
        """What was waited for, for the record; None where nothing was."""
        with self._lock:
            if not self._seconds and not self._retries:
                return None
            return Waits(
                retries=self._retries, seconds={cause: round(each, 3) for cause, each in self._seconds.items()}
            )

    def retry(self, cause: WaitCause, seconds: float) -> None:
        """Count a request that failed after so many seconds and is sent again; no time counts twice."""
        with self._lock:
            self._retries += 1
            now = self._clock()
            until = now if self._since is None else self._since  # The waits that are under way count what is later.
            if not self._at_work:
                seconds = max(0.0, until - max(self._until, now - seconds))
                self._seconds[cause] = self._seconds.get(cause, 0.0) + seconds
                self._until = until

    @contextlib.contextmanager
    def pausing(self, seconds: float, cause: WaitCause) -> Iterator[None]:
        """Count the time of a block, which is going to take so many seconds.

        Where several wait at once their time counts once, from when the first begins until the last has ended. While
        another request is with the model none counts; see :meth:`working`.

        Raises:
            ModelFault: With these the turn would have waited longer than it may.
        """
        if self.seconds + seconds > self.limit:
            by_cause = ", ".join(f"{name} {each:.0f} s" for name, each in self._seconds.items() if each >= 0.5)
            waited = f"{self.seconds:.0f} s" + (f" ({by_cause})" if by_cause else "")
            raise ModelFault(
                f"the turn may wait {self.limit / 60:.3g} minutes for its model's provider (setting "
                f"evocode_waiting_minutes); it has waited {waited} and "
                f"would have to wait {seconds:.0f} s more ({cause}); go on with --evocode-resume"
            )
        own = object()
        with self._changing():
            self._under_way[own] = cause
        try:
            yield
        finally:
            with self._changing():
                del self._under_way[own]

    @contextlib.contextmanager
    def working(self) -> Iterator[Callable[[], None]]:
        """Let the clock go on in a block in which a request is with the model, whatever else waits.

        Who calls what is yielded, or leaves the block by an error, says that nothing came of it: :meth:`retry` may then
        take the time off the clock.
        """
        own = object()

        def end() -> None:
            with self._changing():
                self._at_work.discard(own)

        with self._changing():
            self._at_work.add(own)
        try:
            yield end
            with self._lock:
                if own in self._at_work:
                    self._until = self._clock()
        finally:
            end()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Count up to now, and let the clock stand or go on by what is under way after the block."""
        with self._lock:
            now = self._clock()
            if self._since is not None:
                cause = next(iter(self._under_way.values()))
                self._seconds[cause] = self._seconds.get(cause, 0.0) + now - self._since
                self._until = now
            yield
            self._since = now if self._under_way and not self._at_work else None


_of_turn: ContextVar[Waiting | None] = ContextVar("evocode_waiting", default=None)


def waiting_of_turn() -> Waiting:
    """Return where the turn counts its waits whose thread this is; outside of turns one that nobody reads."""
    return _of_turn.get() or Waiting(float("inf"))


@contextlib.contextmanager
def counted_in(waiting: Waiting) -> Iterator[None]:
    """Count what clients wait for in the block, and in threads that are started with a copy of its context."""
    token = _of_turn.set(waiting)
    try:
        yield
    finally:
        _of_turn.reset(token)
