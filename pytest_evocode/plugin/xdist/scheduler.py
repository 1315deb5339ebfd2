"""xdist's scheduler of attempts: the rounds of an attempt share a container, so one worker gets all of them.

Parts of xdist that its documentation does not have were seen to work with pytest-xdist 3.6 to 3.8; the tox environment
``pytestmain`` tries the newest pre-release. Besides what is imported, the pause of
:mod:`pytest_evocode.plugin.xdist.worker` relies on how a worker goes through its tests: it is sent their numbers in
``session.items``, and runs one as soon as it knows the next.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from xdist.report import report_collection_diff

try:
    from xdist.workermanage import parse_tx_spec_config
except ImportError:  # pytest-xdist 3.6
    from xdist.workermanage import parse_spec_config as parse_tx_spec_config

from pytest_evocode.plugin.task_directories import is_in_task

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

#: How often an attempt whose worker was lost is given to another one.
RETRIES = 1

_Rounds = dict[str, bool]
"""Whether each round of an attempt is over, by node id, in order."""

logger = logging.getLogger(__name__)


class AttemptScheduling:
    """Gives each worker one attempt at a time; all other tests are left to the scheduler that ``--dist`` names.

    It has the interface of :class:`xdist.scheduler.Scheduling`, and none of xdist's schedulers as a base: those begin a
    unit of work that was lost with the test after the one that crashed, and an attempt has to be made as a whole.

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
        begin: Callable[[Sequence[str]], None],
        is_reported: Callable[[str], bool],
        give_up: Callable[[Sequence[str], str], None],
    ) -> None:
        """Take the scheduler for other tests, and answers to what only the session knows.

        Args:
            config: The controller's configuration.
            others: The scheduler for tests that are no rounds.
            unit_of: Names the attempt that a round belongs to, by node ids; the round itself where it is run alone.
            expected_seconds: Tells how long an attempt will take.
            begin: Takes all attempts, in the order in which workers get them, before the first does.
            is_reported: Tells whether the outcome of a round is known.
            give_up: Takes the rounds of an attempt that will not be run, and the reason.
        """
        self._config = config
        self._others = others
        self._unit_of = unit_of
        self._expected_seconds = expected_seconds
        self._begin = begin
        self._is_reported = is_reported
        self._give_up = give_up
        # A scheduler is asked whether all have collected before it has been told of all of them.
        self._worker_count = len(parse_tx_spec_config(config))
        self._collections: dict[WorkerController, Sequence[str]] = {}
        """What each worker has collected."""
        self._collection: Sequence[str] | None = None
        """What all workers have collected, once they agree."""
        self._numbers: dict[str, int] = {}
        """The tests' numbers, which all workers have in common, by node id."""
        self._queue: deque[_Rounds] = deque()
        """Attempts that no worker has, the next one first."""
        self._assigned: dict[WorkerController, _Rounds] = {}
        """The last attempt of each worker that is there; empty before its first."""
        self._other_nodes: dict[WorkerController, _OtherTestsNode] = {}
        self._other_tests: list[int] = []
        self._losses: Counter[str] = Counter()
        """How many workers each attempt has lost."""

    # What xdist asks.

    @property
    def nodes(self) -> list[WorkerController]:
        """The workers that are there."""
        return list(self._assigned)

    @property
    def collection_is_completed(self) -> bool:
        """Whether as many workers have collected as the session began with."""
        return len(self._collections) >= self._worker_count

    def add_node(self, node: WorkerController) -> None:
        """Take a worker that is about to collect."""
        self._assigned[node] = {}

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take what a worker has collected; one that comes late and has something else gets no work."""
        if self._collection is None or list(collection) == list(self._collection):
            self._collections[node] = list(collection)
        else:
            logger.warning("worker %s has collected other tests than the first ones had", node.gateway.id)

    @property
    def has_pending(self) -> bool:
        """Whether there is something to do."""
        return bool(self._queue) or any(map(self._is_busy, self.nodes)) or self._others.has_pending

    @property
    def tests_finished(self) -> bool:
        """Whether there is nothing more to do; xdist then ends the workers, which until then take what others lose."""
        if not self.collection_is_completed or self._queue or any(map(self._is_busy, self.nodes)):
            return False
        return not self._other_tests or self._others.tests_finished

    def schedule(self) -> None:
        """Begin, or take in workers that were started in place of lost ones."""
        if self._collection is None:
            if not self._collections_are_equal():
                return
            self._collection = next(iter(self._collections.values()))
            self._sort_tests(self._collection)
        if self._other_tests:
            for node in self.nodes:
                if node in self._collections and node not in self._other_nodes:
                    self._other_nodes[node] = other = _OtherTestsNode(node, self._other_tests, self._pause)
                    self._others.add_node(other)
                    tests = [self._collection[index] for index in self._other_tests]
                    self._others.add_node_collection(other, tests)
            if self._others.collection_is_completed:
                self._others.schedule()
        self._assign_attempts()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Take a test as run and give the worker more when it has nothing left."""
        if item_index == self._pause:
            return
        assert self._collection is not None
        nodeid = self._collection[item_index]
        if is_in_task(nodeid):
            self._assigned[node][nodeid] = True
        else:
            other = self._other_nodes[node]
            other.pending.discard(item_index)
            self._others.mark_test_complete(other, other.numbers[item_index], duration)
        self._assign_attempts()

    def mark_test_pending(self, item: str) -> None:
        """Run a test once more, which plugins may ask for whose worker crashed; rounds are seen to here."""
        if not is_in_task(item):
            self._others.mark_test_pending(item)

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Take tests back that a worker has returned, for another one to run."""
        other = self._other_nodes[node]
        other.pending.difference_update(indices)
        returned = [other.numbers[index] for index in indices]
        self._others.remove_pending_tests_from_node(other, returned)
        self._assign_attempts()

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker that has ended, and return the test that it was lost in; None for a round, reported here."""
        crashed = None
        other = self._other_nodes.pop(node, None)
        if other is not None and other in self._others.nodes:
            crashed = self._others.remove_node(other)
        rounds = self._assigned.pop(node)
        if left := self._unreported(rounds):
            attempt = self._unit_of(left[0])
            self._losses[attempt] += 1
            logger.warning(
                "worker %s was lost in %s, for the %d. time", node.gateway.id, attempt, self._losses[attempt]
            )
            if self._losses[attempt] <= RETRIES:
                self._queue.appendleft(rounds)
            else:
                self._give_up(left, f"worker {node.gateway.id} crashed, as another one had before")
        self._assign_attempts()
        return crashed

    # How attempts are handed out.

    @property
    def others_are_left(self) -> bool:
        """Whether tests that are no rounds have not been run."""
        return bool(self._other_tests) and not self._others.tests_finished

    def give_up_the_rest(self) -> bool:
        """Report the rounds that no worker has run, if any; to be called when there are no workers any more."""
        given_up = False
        for rounds in [*self._queue, *self._assigned.values()]:
            if left := self._unreported(rounds):
                logger.warning("no worker is left for %s", self._unit_of(left[0]))
                self._give_up(left, "no worker is left")
                given_up = True
        return given_up

    def _unreported(self, rounds: _Rounds) -> list[str]:
        """Return the rounds of an attempt without an outcome.

        A worker may be lost after it reported a round, and before it said that it was done with it.
        """
        for nodeid in rounds:
            rounds[nodeid] = rounds[nodeid] or self._is_reported(nodeid)
        return [nodeid for nodeid, completed in rounds.items() if not completed]

    @property
    def _pause(self) -> int:
        """The number by which workers know the item that does nothing."""
        assert self._collection is not None
        return len(self._collection)

    def _collections_are_equal(self) -> bool:
        """Tell whether all workers have collected the same tests, and report as errors which have not."""
        (first, expected), *rest = self._collections.items()
        equal = True
        for node, collection in rest:
            # The message that people know from xdist's own schedulers, with its advice.
            difference = report_collection_diff(expected, collection, first.gateway.id, node.gateway.id)
            if difference is not None:
                equal = False
                report = pytest.CollectReport(node.gateway.id, outcome="failed", longrepr=difference, result=[])
                self._config.hook.pytest_collectreport(report=report)
        return equal

    def _sort_tests(self, collection: Sequence[str]) -> None:
        """Tell attempts from other tests, and queue them, the longest first."""
        attempts: dict[str, _Rounds] = {}
        self._numbers = {nodeid: index for index, nodeid in enumerate(collection)}
        for index, nodeid in enumerate(collection):
            if is_in_task(nodeid):
                attempts.setdefault(self._unit_of(nodeid), {})[nodeid] = False
            else:
                self._other_tests.append(index)
        order = list(attempts)
        if len(order) > len(self.nodes):  # Else all begin at once.
            order.sort(key=self._expected_seconds, reverse=True)
        self._queue.extend(attempts[attempt] for attempt in order)
        self._begin(order)

    def _is_busy(self, node: WorkerController) -> bool:
        other = self._other_nodes.get(node)
        return not all(self._assigned[node].values()) or (other is not None and bool(other.pending))

    def _assign_attempts(self) -> None:
        """Give attempts to all workers that have nothing left to do."""
        if self._other_tests and self._others.collection_is_completed and self._others.tests_finished:
            for each in self._other_nodes.values():
                each.shutdown()  # It may wait for a test to follow its last one.
        for node in self.nodes:
            other = self._other_nodes.get(node)
            free = other is None or other.shutting_down
            if self._queue and node in self._collections and free and not (self._is_busy(node) or node.shutting_down):
                self._assigned[node] = rounds = self._queue.popleft()
                left = [nodeid for nodeid, completed in rounds.items() if not completed]
                logger.info("worker %s gets %s", node.gateway.id, self._unit_of(left[0]))
                _send(node, [*(self._numbers[nodeid] for nodeid in left), self._pause])


class _OtherTestsNode:
    """A worker in the eyes of the scheduler for other tests, which knows only the tests that are no rounds."""

    def __init__(self, node: WorkerController, tests: list[int], pause: int) -> None:
        self.gateway = node.gateway
        self.tests = tests
        """The numbers by which workers know the tests, by those that the other scheduler has for them."""
        self.numbers = {number: index for index, number in enumerate(tests)}
        """The numbers that the other scheduler has for the tests, by those by which workers know them."""
        self.pending: set[int] = set()
        self._node = node
        self._pause = pause
        self._ended = False

    @property
    def shutting_down(self) -> bool:
        """Whether the other scheduler is done with this worker."""
        return self._ended or self._node.shutting_down

    def shutdown(self) -> None:
        """Let the worker run its last test, which nothing of its kind will follow, and be free for attempts."""
        if not self.shutting_down:
            self._ended = True
            _send(self._node, [self._pause])

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Have the worker run tests."""
        tests = [self.tests[index] for index in indices]
        self.pending.update(tests)
        _send(self._node, tests)

    def send_runtest_all(self) -> None:
        """Have the worker run all tests."""
        self.send_runtest_some(range(len(self.tests)))

    def send_steal(self, indices: Sequence[int]) -> None:
        """Ask the worker to return tests."""
        self._node.send_steal([self.tests[index] for index in indices])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


def _send(node: WorkerController, indices: list[int]) -> None:
    with contextlib.suppress(OSError):  # It has just been lost; xdist will say so, and all it has goes to another one.
        node.send_runtest_some(indices)
