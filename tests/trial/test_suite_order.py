"""Which of an attempt's suites goes first where several wait."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_evocode.errors import Cancelled
from pytest_evocode.trial.suites.order import Rank, SuiteOrder, Take

LENGTHS = [Rank.of(index, awaited=False, begun=False) for index in (1, 2, 3)]
AWAITED = [Rank.of(index, awaited=True, begun=False) for index in (1, 2)]
BEGUN = Rank.of(1, awaited=False, begun=True)


def slots_of(lock: threading.Lock) -> Take:
    """One slot, which is taken as those of the machine are."""

    @contextlib.contextmanager
    def take(stopped: threading.Event) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            while not lock.acquire(timeout=0.001):
                if stopped.is_set():
                    raise Cancelled("stopped")
            held.callback(lock.release)
            if stopped.is_set():
                raise Cancelled("stopped")
            yield

    return take


class Waiting:
    """Suites that wait in threads, and the ranks of those that have run, in order."""

    def __init__(self, order: SuiteOrder, slot: threading.Lock) -> None:
        self.order = order
        self._take = slots_of(slot)
        self._threads: list[threading.Thread] = []
        self.stopped = threading.Event()
        self.ran: list[Rank] = []

    def join_in(self, rank: Rank) -> None:
        """Have one more wait, and return when it does."""
        self._threads.append(threading.Thread(target=self._run, args=(rank,), daemon=True))
        self._threads[-1].start()
        self.until(lambda order: not (order._places and order._without_place) and self._count() == len(self._threads))

    def until(self, condition: Callable[[SuiteOrder], object]) -> None:
        """Wait until something is true of the order."""
        deadline = time.monotonic() + 300
        while not condition(self.order) and time.monotonic() < deadline:
            time.sleep(0.001)

    def finish(self) -> list[Rank]:
        """Wait until all have run."""
        for thread in self._threads:
            thread.join(300)
        return self.ran

    def _run(self, rank: Rank) -> None:
        try:
            with self.order.place(rank, self.stopped) as turn, turn.slot(self._take):
                self.ran.append(rank)
        except Cancelled:
            pass

    def _count(self) -> int:
        return len(self.order._without_place) + len(self.order._without_slot)


@pytest.fixture
def slot() -> threading.Lock:
    """The one slot, which others have."""
    lock = threading.Lock()
    lock.acquire()
    return lock


@pytest.fixture
def waiting(slot: threading.Lock) -> Waiting:
    """Suites of an attempt that can run one at a time, while one more fork is made ready."""
    return Waiting(SuiteOrder(1), slot)


@pytest.mark.parametrize(
    ("come", "go"),
    [
        ([*LENGTHS[:2]], [LENGTHS[1], LENGTHS[0]]),
        ([LENGTHS[0], AWAITED[1]], [AWAITED[1], LENGTHS[0]]),
        ([AWAITED[1], AWAITED[0]], [AWAITED[0], AWAITED[1]]),
        ([LENGTHS[2], BEGUN], [BEGUN, LENGTHS[2]]),
    ],
    ids=["the longest", "an awaited one", "the first of the awaited", "one that is begun"],
)
def test_first_goes(waiting: Waiting, slot: threading.Lock, come: list[Rank], go: list[Rank]) -> None:
    for rank in come:
        waiting.join_in(rank)
    slot.release()
    assert waiting.finish() == go


def test_the_longest_of_those_without_a_place_is_made_ready(waiting: Waiting, slot: threading.Lock) -> None:
    with contextlib.ExitStack() as first, waiting.order.place(LENGTHS[0], waiting.stopped):
        first.enter_context(waiting.order.place(LENGTHS[0], waiting.stopped))
        for rank in LENGTHS:
            waiting.join_in(rank)
        first.close()
        waiting.until(lambda order: order._without_slot)
        assert [turn.rank for turn in waiting.order._without_slot] == [LENGTHS[2]]
    slot.release()
    assert sorted(waiting.finish()) == LENGTHS


def test_suites_that_are_stopped_wait_no_longer(waiting: Waiting) -> None:
    for rank in LENGTHS:
        waiting.join_in(rank)
    waiting.stopped.set()
    assert waiting.finish() == []
