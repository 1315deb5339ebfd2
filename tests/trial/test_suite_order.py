"""Which of an attempt's suites goes first where several wait."""

from __future__ import annotations

import threading

import pytest

from pytest_evocode.errors import Cancelled
from pytest_evocode.trial.suites.runner import Places, Rank
from tests.waiting import wait_until

LENGTHS = [Rank.of(index, awaited=False, begun=False) for index in (1, 2, 3)]
AWAITED = [Rank.of(index, awaited=True, begun=False) for index in (1, 2)]
BEGUN = Rank.of(1, awaited=False, begun=True)


class Waiting:
    """Suites that wait in threads for the one place, and the ranks of those that have had it, in order."""

    def __init__(self) -> None:
        self.places = Places(1)
        self.stopped = threading.Event()
        self.ran: list[Rank] = []
        self._threads: list[threading.Thread] = []

    def join_in(self, rank: Rank) -> None:
        """Have one more wait, and return when it does."""
        self._threads.append(threading.Thread(target=self._run, args=(rank,), daemon=True))
        self._threads[-1].start()
        wait_until(lambda: len(self.places.waiting) == len(self._threads))

    def finish(self) -> list[Rank]:
        """Wait until all have run."""
        for thread in self._threads:
            thread.join(300)
        return self.ran

    def _run(self, rank: Rank) -> None:
        try:
            with self.places.held(rank, self.stopped):
                self.ran.append(rank)
        except Cancelled:
            pass


@pytest.fixture
def waiting() -> Waiting:
    """Suites of an attempt that can run one at a time."""
    return Waiting()


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
def test_first_goes(waiting: Waiting, come: list[Rank], go: list[Rank]) -> None:
    with waiting.places.held(LENGTHS[0], threading.Event()):
        for rank in come:
            waiting.join_in(rank)
    assert waiting.finish() == go


def test_suites_that_are_stopped_wait_no_longer(waiting: Waiting) -> None:
    with waiting.places.held(LENGTHS[0], threading.Event()):
        for rank in LENGTHS:
            waiting.join_in(rank)
        waiting.stopped.set()
        assert waiting.finish() == []
