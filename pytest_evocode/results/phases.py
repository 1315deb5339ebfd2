"""Where the wall time of a round goes, and the stopwatch that finds out."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Literal

Phase = Literal["setup", "agent", "snapshot", "bookkeeping", "waiting", "fork", "suite", "reading"]
_DIGITS = 4  # of a second: tenths of a millisecond


@dataclass(frozen=True, slots=True)
class Phases:
    """The wall-clock seconds of one round by phase; None is a phase that did not happen, or that nobody measured.

    The first four follow one another where the agent works; the others follow one another where the suite runs, as a
    rule while the agent is at later rounds. Of a suite that was run several times they are the sums.
    """

    setup: float | None = None
    """The round's files were brought, ``setup.sh`` was run, and the healthcheck awaited."""
    agent: float | None = None
    """The agent's turn, as ``agent_seconds``."""
    snapshot: float | None = None
    """The snapshot that the suite needs was taken."""
    bookkeeping: float | None = None
    """Whatever else was done between the agent's turn and the next: the trajectory and the state to go on from were
    written.
    """
    waiting: float | None = None
    """The suite waited for its slots, because others ran."""
    fork: float | None = None
    """A fork of the snapshot was made ready and given the tests."""
    suite: float | None = None
    """The suite's own command."""
    reading: float | None = None
    """The verdict was read. What follows, such as removing the fork, happens behind the record and is not in it."""
    slot_seconds: float | None = None
    """The seconds that the suite held slots, times how many it held."""
    turn_began: float | None = field(default=None, compare=False)
    """The moment when the first of the phases where the agent works began, in seconds since 1970 by this machine's
    clock; None in records that do not say.
    """
    suite_began: float | None = field(default=None, compare=False)
    """The moment when the first of the others began; of a suite that was run several times that of the first run."""

    @property
    def known(self) -> dict[str, float]:
        """The seconds of the phases that are known, by name."""
        values = {name: getattr(self, name) for name in PHASES}
        return {name: seconds for name, seconds in values.items() if seconds is not None}

    @property
    def overhead_seconds(self) -> float | None:
        """What the round cost where the agent works beside setup and the agent's turn: snapshot and bookkeeping."""
        known = [seconds for seconds in (self.snapshot, self.bookkeeping) if seconds is not None]
        return round(sum(known), _DIGITS) if known else None


PHASES = tuple(each.name for each in fields(Phases) if each.compare)
"""The names of all that is known of the time of a round, in order; moments are not among them."""
_OF_TURN = ("setup", "agent", "snapshot", "bookkeeping")


def merged_phases(first: Phases | None, then: Phases | None) -> Phases | None:
    """Return the phases of two parts of a round; where both have one, that of the second.

    >>> merged_phases(Phases(agent=2.0, suite=9.0), Phases(suite=1.0)).known
    {'agent': 2.0, 'suite': 1.0}
    """
    if first is None or then is None:
        return first or then
    return replace(first, **then.known, **_moments([first]) | _moments([then]))


def summed_phases(parts: Iterable[Phases | None]) -> Phases | None:
    """Return the sums of several runs by phase.

    >>> summed_phases([Phases(suite=2.0), None, Phases(suite=1.0, fork=0.5)]).known
    {'fork': 0.5, 'suite': 3.0}
    """
    there = [part for part in parts if part is not None]
    if not there:
        return None
    known = [part.known for part in there]
    names = {name for part in known for name in part}
    sums = {name: round(sum(part.get(name, 0.0) for part in known), _DIGITS) for name in names}
    return Phases(**sums, **_moments(there))


def _moments(parts: Iterable[Phases]) -> dict[str, float]:
    """Return when the first of some parts began, as far as that is known."""
    found = {name: [getattr(part, name) for part in parts] for name in ("turn_began", "suite_began")}
    known = {name: [moment for moment in moments if moment is not None] for name, moments in found.items()}
    return {name: min(moments) for name, moments in known.items() if moments}


class Stopwatch:
    """Measures one phase after the other; any thread may go on with it.

    >>> moments = iter([0.0, 2.0, 5.0, 6.0])
    >>> stopwatch = Stopwatch(clock=lambda: next(moments))
    >>> stopwatch.begin("setup"); stopwatch.begin("agent"); stopwatch.begin("setup"); stopwatch.stop()
    >>> stopwatch.phases.known
    {'setup': 3.0, 'agent': 3.0}
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._phase: Phase | None = None
        self._since = 0.0
        self._holding: tuple[float, int] | None = None

    def begin(self, phase: Phase) -> None:
        """End the phase that is measured, if any, and measure this one from now on, added to what it already took."""
        self._switch(phase)

    def stop(self) -> None:
        """End the phase that is measured; until the next begins nothing is."""
        self._switch(None)

    @contextlib.contextmanager
    def holding(self, slots: int) -> Iterator[None]:
        """Measure for how long so many slots are held, whatever the phases are meanwhile."""
        with self._lock:
            self._holding = (self._clock(), slots)
        try:
            yield
        finally:
            with self._lock:
                self._charge_slots()
                self._holding = None

    @property
    def phases(self) -> Phases:
        """What was measured until now."""
        with self._lock:
            self._charge()
            self._charge_slots()
            seconds = {phase: round(seconds, _DIGITS) for phase, seconds in self._seconds.items()}
            return Phases(**seconds, **self._began)

    def _switch(self, phase: Phase | None) -> None:
        with self._lock:
            self._charge()
            if self._phase is None and phase is not None:
                self._since = self._clock()
            if phase is not None:
                moment = "turn_began" if phase in _OF_TURN else "suite_began"
                self._began.setdefault(moment, round(self._wall_clock(), _DIGITS))
            self._phase = phase

    def _charge_slots(self) -> None:
        if self._holding is not None:
            since, slots = self._holding
            now = self._clock()
            self._seconds["slot_seconds"] = self._seconds.get("slot_seconds", 0.0) + (now - since) * slots
            self._holding = (now, slots)

    def _charge(self) -> None:
        if self._phase is not None:
            now = self._clock()
            self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + now - self._since
            self._since = now
