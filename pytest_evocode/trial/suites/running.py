"""What runs for the suites of an attempt, by round, so that it can be killed."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from pytest_evocode.environments import Environment
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.trial.context import StopEvent

logger = logging.getLogger(__name__)


class RunningSuites:
    """The environments in which the suites of an attempt and the programs under test run at the moment.

    ``cancelled`` is set when the attempt is to end.
    """

    def __init__(self, cancelled: StopEvent) -> None:
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._environments: dict[Environment, int] = {}
        self._events: dict[int, StopEvent] = {}
        self._dropped_after: int | None = None

    def stopped(self, index: int) -> StopEvent:
        """Return the event that is set when no suite of a round is to run any more."""
        with self._lock:
            event = self._events.setdefault(index, self._cancelled.part())
            if self._dropped_after is not None and index > self._dropped_after:
                event.set()
        return event

    @contextlib.contextmanager
    def noted(self, environment: Environment, index: int) -> Iterator[None]:
        """Have an environment killed with the suites of a round, while this context lasts.

        Raises :class:`~pytest_evocode.errors.Cancelled` where no suite of the round is to run any more.
        """
        with self._lock:
            self._environments[environment] = index
        try:
            if self.stopped(index).is_set():
                raise Cancelled(STOPPED)
            yield
        finally:
            with self._lock:
                self._environments.pop(environment, None)

    def kill(self, *, after: int = 0) -> None:
        """Kill the suites of all rounds after one, and start no more of them.

        To be called again until they have ended: what was just about to start is killed by the next call.
        """
        with self._lock:
            self._dropped_after = after if self._dropped_after is None else min(after, self._dropped_after)
            events = [event for index, event in self._events.items() if index > after]
            found = [environment for environment, index in self._environments.items() if index > after]
        for event in events:
            event.set()
        for environment in found:
            logger.info("killing a suite that still runs")
            with contextlib.suppress(EnvironmentFault):
                environment.stop()
