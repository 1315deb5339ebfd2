"""Which of an attempt's suites goes first where several wait for a slot."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from pytest_evocode.errors import Cancelled

_AHEAD = 4
"""The most forks that are made ready while others' suites run: one for each of these, but never more than this."""
_INTERVAL = 0.05  # seconds between two looks at whether a suite is stopped


Take = Callable[[threading.Event], AbstractContextManager[None]]


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


class SuiteTurn:
    """A suite that waits, or has what it waited for."""

    def __init__(self, order: SuiteOrder, rank: Rank, stopped: threading.Event) -> None:
        self.rank = rank
        self.stopped = stopped
        """Set when the suite is not to run any more."""
        self._order = order

    def making(self) -> AbstractContextManager[None]:
        """Return a context in which the fork is made ready; entering raises Cancelled when told to stop."""
        return self._order.making(self)

    def slot(self, take: Take) -> AbstractContextManager[None]:
        """Return a context that waits for slots and holds them; entering raises Cancelled when told to stop.

        ``take`` waits for them until an event is set, as ``take_slots`` of the context does.
        """
        return self._order.slot(self, take)

    def refuse_when_stopped(self) -> None:
        """Raise :class:`~pytest_evocode.errors.Cancelled` where the suite is not to run any more."""
        if self.stopped.is_set():
            raise Cancelled("stopped while waiting for other suites")


class SuiteOrder:
    """Lets an attempt's suites have places for their forks, and then slots, the greatest rank first.

    There are places for as many forks as suites can run, and for one more for each: so a fork is ready when a slot is
    free, and no more memory and disk is taken than that. As many forks are made at the same time as suites can run:
    with more of them the first would be ready later, and slots stay empty until then.
    """

    def __init__(self, at_once: int) -> None:
        """Begin with no suite; ``at_once`` is how many can run at the same time."""
        self._changed = threading.Condition()
        self._places = at_once + min(at_once, _AHEAD)
        self._makers = at_once
        self._without_place: list[SuiteTurn] = []
        self._without_slot: list[SuiteTurn] = []

    @contextlib.contextmanager
    def place(self, rank: Rank, stopped: threading.Event) -> Iterator[SuiteTurn]:
        """Wait for a place in which a fork can be made ready, and hold it; raises Cancelled once ``stopped`` is set."""
        turn = SuiteTurn(self, rank, stopped)
        with self._changed, self._waiting(turn, self._without_place):
            while not (self._places and self.is_next(turn, self._without_place)):
                self._wait(turn)
            self._places -= 1
        try:
            yield turn
        finally:
            with self._changed:
                self._places += 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def making(self, turn: SuiteTurn) -> Iterator[None]:
        """Wait until a fork can be made, and let no more of them be made than at the same time are of use."""
        with self._changed:
            while not self._makers:
                self._wait(turn)
            self._makers -= 1
        try:
            yield
        finally:
            with self._changed:
                self._makers += 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def slot(self, turn: SuiteTurn, take: Take) -> Iterator[None]:
        """Wait for a slot and hold it; see :meth:`SuiteTurn.slot`."""
        with contextlib.ExitStack() as held:
            with self._waiting(turn, self._without_slot):
                while not self._takes_slot(turn, held, take):
                    pass
            yield

    def _takes_slot(self, turn: SuiteTurn, held: contextlib.ExitStack, take: Take) -> bool:
        """Wait for a slot, and return whether it is held: not where another suite came that goes first."""
        with self._changed:
            while not self.is_next(turn, self._without_slot):
                self._wait(turn)
        with contextlib.suppress(Cancelled):
            held.enter_context(take(_Unless(self, turn, self._without_slot)))
            return True
        turn.refuse_when_stopped()
        return False

    def is_next(self, turn: SuiteTurn, waiting: Sequence[SuiteTurn]) -> bool:
        """Return whether a suite goes first of those that wait; of equals the one that came first."""
        with self._changed:
            return turn is max(waiting, key=lambda each: each.rank, default=turn)

    def _wait(self, turn: SuiteTurn) -> None:
        turn.refuse_when_stopped()
        self._changed.wait(_INTERVAL)

    @contextlib.contextmanager
    def _waiting(self, turn: SuiteTurn, waiting: list[SuiteTurn]) -> Iterator[None]:
        with self._changed:
            waiting.append(turn)
        try:
            yield
        finally:
            with self._changed:
                waiting.remove(turn)
                self._changed.notify_all()


class _Unless(threading.Event):
    """Is set when a suite is to stop waiting for a slot: it is not to run any more, or another suite goes first."""

    def __init__(self, order: SuiteOrder, turn: SuiteTurn, waiting: Sequence[SuiteTurn]) -> None:
        super().__init__()
        self._order, self._turn, self._others = order, turn, waiting

    def is_set(self) -> bool:
        """See :class:`threading.Event`."""
        return self._turn.stopped.is_set() or not self._order.is_next(self._turn, self._others)

    def wait(self, timeout: float | None = None) -> bool:
        """See :class:`threading.Event`."""
        return self._turn.stopped.wait(timeout) or self.is_set()
