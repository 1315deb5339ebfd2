"""xdist's controller: an attempt is one unit of work, because its rounds share a container; or each round by itself."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling, Scheduling
from xdist.workermanage import WorkerController

from pytest_evocode.plugin.node_ids import is_in_task

#: How often an attempt whose worker was lost is given to another one.
RETRIES = 1


class AttemptScheduling(LoadScopeScheduling):
    """Gives each worker one attempt at a time; all other tests are left to the scheduler that ``--dist`` names.

    A worker runs a test only when it knows the one that follows. So that it need not be given a second attempt for the
    sake of the first one's last round, every attempt is followed by a pause: the number behind the last test's, for
    which workers have an item that does nothing (see :mod:`pytest_evocode.plugin.xdist.worker`).
    """

    def __init__(
        self,
        config: pytest.Config,
        others: Scheduling,
        *,
        unit_of: Callable[[str], str],
        expected_seconds: Callable[[str], float],
        is_reported: Callable[[str], bool],
        give_up: Callable[[Sequence[str], str], None],
    ) -> None:
        """Takes what it does not know itself.

        ``unit_of`` says which attempt a round belongs to, which is the round itself where it is run alone;
        ``expected_seconds`` is asked about attempts, ``is_reported`` whether the outcome of a round is known, and
        ``give_up`` is told which rounds will not be run, and why.
        """
        super().__init__(config)
        self.collection: list[str] | None = None
        self._others = others
        self._unit_of = unit_of
        self._expected_seconds = expected_seconds
        self._is_reported = is_reported
        self._give_up = give_up
        self._shares: dict[WorkerController, _Share] = {}
        self._numbers: dict[str, int] = {}
        """The tests' numbers, which all workers have in common, by node id."""
        self._other_tests: list[int] = []
        self._losses: Counter[str] = Counter()

    # What xdist asks.

    @property
    def has_pending(self) -> bool:
        """Whether there is something to do."""
        return bool(self.workqueue) or any(map(self._is_busy, self.nodes)) or self._others.has_pending

    @property
    def tests_finished(self) -> bool:
        """Whether there is nothing more to do; xdist then ends the workers, which until then take what others lose."""
        if not self.collection_is_completed or self.workqueue or any(map(self._is_busy, self.nodes)):
            return False
        return not self._other_tests or self._others.tests_finished

    def schedule(self) -> None:
        """Begin, or take in workers that were started in place of lost ones."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            collection = list(next(iter(self.registered_collections.values())))
            self.collection = collection
            self._divide(collection)
        if self._other_tests:
            for node in self.nodes:
                if node in self.registered_collections and node not in self._shares:
                    self._shares[node] = share = _Share(node, self._other_tests, self._pause)
                    self._others.add_node(share)
                    tests = [self.collection[index] for index in self._other_tests]
                    self._others.add_node_collection(share, tests)
            if self._others.collection_is_completed:
                self._others.schedule()
        self._go_on()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Take a test as run and give the worker more when it has nothing left."""
        if item_index == self._pause:
            return
        assert self.collection is not None
        nodeid = self.collection[item_index]
        if is_in_task(nodeid):
            self.assigned_work[node][self._split_scope(nodeid)][nodeid] = True
        else:
            share = self._shares[node]
            share.pending.discard(item_index)
            self._others.mark_test_complete(share, share.numbers[item_index], duration)
        self._go_on()

    def mark_test_pending(self, item: str) -> None:
        """Run a test once more, as plugins may ask for whose worker crashed; not for rounds, which see to it here."""
        if not is_in_task(item):
            self._others.mark_test_pending(item)

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """A worker has handed tests back that another one is to run."""
        share = self._shares[node]
        share.pending.difference_update(indices)
        returned = [share.numbers[index] for index in indices]
        self._others.remove_pending_tests_from_node(share, returned)
        self._go_on()

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker has ended; returns the test that it was lost in, unless that is a round, which is reported here."""
        crashed = None
        share = self._shares.pop(node, None)
        if share is not None and share in self._others.nodes:
            crashed = self._others.remove_node(share)
        for attempt, rounds in self.assigned_work.pop(node).items():
            if left := self._left_of(rounds):
                self._losses[attempt] += 1
                if self._losses[attempt] <= RETRIES:
                    self.workqueue[attempt] = rounds
                    self.workqueue.move_to_end(attempt, last=False)
                else:
                    self._give_up(left, f"worker {node.gateway.id} crashed, as another one had before")
        self._go_on()
        return crashed

    # What is done about it.

    @property
    def others_are_left(self) -> bool:
        """Whether tests that are no rounds have not been run."""
        return bool(self._other_tests) and not self._others.tests_finished

    def give_up_the_rest(self) -> bool:
        """Report the rounds that no worker has run, if any; to be called when there are no workers any more."""
        given_up = False
        rest = [*self.workqueue.values(), *(unit for work in self.assigned_work.values() for unit in work.values())]
        for rounds in rest:
            if left := self._left_of(rounds):
                self._give_up(left, "no worker is left")
                given_up = True
        return given_up

    def _left_of(self, rounds: dict[str, bool]) -> list[str]:
        """The rounds of an attempt without an outcome; a worker may be lost between reporting one and its next word."""
        for nodeid in rounds:
            rounds[nodeid] = rounds[nodeid] or self._is_reported(nodeid)
        return [nodeid for nodeid, completed in rounds.items() if not completed]

    @property
    def _pause(self) -> int:
        assert self.collection is not None
        return len(self.collection)

    def _split_scope(self, nodeid: str) -> str:
        return self._unit_of(nodeid)

    def _divide(self, collection: Sequence[str]) -> None:
        """Tell attempts, longest first, from other tests."""
        attempts: dict[str, dict[str, bool]] = {}
        self._numbers = {nodeid: index for index, nodeid in enumerate(collection)}
        for index, nodeid in enumerate(collection):
            if is_in_task(nodeid):
                attempts.setdefault(self._split_scope(nodeid), {})[nodeid] = False
            else:
                self._other_tests.append(index)
        order = list(attempts)
        if len(order) > len(self.nodes):  # Else all begin at once.
            order.sort(key=self._expected_seconds, reverse=True)
        self.workqueue.update((attempt, attempts[attempt]) for attempt in order)

    def _is_busy(self, node: WorkerController) -> bool:
        share = self._shares.get(node)
        return bool(self._pending_of(self.assigned_work[node])) or (share is not None and bool(share.pending))

    def _go_on(self) -> None:
        """Give attempts to all workers that have nothing left to do."""
        if self._other_tests and self._others.collection_is_completed and self._others.tests_finished:
            for each in self._shares.values():
                each.shutdown()  # It may wait for a test to follow its last one.
        for node in self.nodes:
            share = self._shares.get(node)
            free = share is None or share.shutting_down
            if node in self.registered_collections and free and not self._is_busy(node):
                self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and not node.shutting_down:
            attempt, rounds = self.workqueue.popitem(last=False)
            self.assigned_work[node] = {attempt: rounds}
            left = [self._numbers[nodeid] for nodeid, completed in rounds.items() if not completed]
            _send(node, [*left, self._pause])


class _Share:
    """A worker as the usual scheduler sees it, which knows only the tests that are no rounds."""

    def __init__(self, node: WorkerController, tests: list[int], pause: int) -> None:
        self.gateway = node.gateway
        self.tests = tests
        """The tests' numbers as workers know them, by the numbers that the usual scheduler has for them."""
        self.numbers = {number: index for index, number in enumerate(tests)}
        """The other way round."""
        self.pending: set[int] = set()
        self._node = node
        self._pause = pause
        self._ended = False

    @property
    def shutting_down(self) -> bool:
        """Whether the usual scheduler is done with this worker."""
        return self._ended or self._node.shutting_down

    def shutdown(self) -> None:
        """No other test is to come: the last one can be run, and then attempts."""
        if not self.shutting_down:
            self._ended = True
            _send(self._node, [self._pause])

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Run tests."""
        tests = [self.tests[index] for index in indices]
        self.pending.update(tests)
        _send(self._node, tests)

    def send_runtest_all(self) -> None:
        """Run all tests."""
        self.send_runtest_some(range(len(self.tests)))

    def send_steal(self, indices: Sequence[int]) -> None:
        """Ask for tests back."""
        self._node.send_steal([self.tests[index] for index in indices])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


def _send(node: WorkerController, indices: list[int]) -> None:
    with contextlib.suppress(OSError):  # It has just been lost; xdist will say so, and all it has goes to another one.
        node.send_runtest_some(indices)
