"""What is done for several tasks, such as their checks, at the same time in one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from pytest_evocode.trial.context import VerifierSlots


class TaskRunner(Protocol):
    """Does something for one task."""

    def run(self) -> None:
        """Do it; returns when it is done, and raises nothing."""

    def cancel(self) -> None:
        """Have it end soon."""

    def close(self) -> None:
        """End it, and wait for that; may be called from any thread, and more than once."""


class SideBySide:
    """Runs what is to be done for as many tasks at once as suites may run at once, and for two at least.

    A task leaves gaps while its rounds are played; what runs in the gaps of one task are suites of the others.
    """

    def __init__(self, verifiers: int | None) -> None:
        """Take how many suites may run at once; None for the default."""
        tasks = max(2, VerifierSlots(verifiers).count)
        self._pool = ThreadPoolExecutor(tasks, thread_name_prefix="task")
        self._runners: list[TaskRunner] = []

    def begin(self, runner: TaskRunner) -> None:
        """Run it for one more task, after those that were begun before."""
        self._runners.append(runner)
        self._pool.submit(runner.run)

    def close(self) -> None:
        """End what still runs; may be called from any thread, and more than once."""
        runners = list(self._runners)
        for runner in runners:
            runner.cancel()
        for runner in runners:
            runner.close()
        self._pool.shutdown()
