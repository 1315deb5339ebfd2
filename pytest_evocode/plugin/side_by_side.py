"""What is done for several tasks at the same time and without an agent, such as their checks, as pytest sees it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import CheckFailed, RoundFailed
from pytest_evocode.plugin.pytest_private import make_failure
from pytest_evocode.plugin.session import EvocodeSession, session_of

if TYPE_CHECKING:
    from pytest_evocode.checks.runner import CheckRunner
    from pytest_evocode.trial.context import TrialOptions
    from pytest_evocode.trial.warming import TaskWarming


class SideBySide:
    """Runs what is to be done for as many tasks at once as suites may run at once, and for two at least.

    A task leaves gaps while its rounds are played; what runs in the gaps of one task are suites of the others.
    """

    def __init__(self, verifiers: int | None) -> None:
        """Take how many suites may run at once; None for the default."""
        from pytest_evocode.trial.context import VerifierSlots

        tasks = max(2, VerifierSlots(verifiers).count)
        self._pool = ThreadPoolExecutor(tasks, thread_name_prefix="task")
        self._runners: list[CheckRunner | TaskWarming] = []

    def begin(self, runner: CheckRunner | TaskWarming) -> None:
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


_SIDE_BY_SIDE = pytest.StashKey[SideBySide]()


class TaskCollector(pytest.Collector):
    """What is done for one task; the items that are selected share what is started for them."""

    _runner: CheckRunner | TaskWarming | None = None

    def setup(self) -> None:
        """Start what the selected items need, and those of the tasks that come after it."""
        session = session_of(self.config)
        if not session.plays:
            return
        collectors = dict.fromkeys(item.parent for item in self.session.items if isinstance(item, TaskItem))
        # A worker does not know which of them it will be given.
        for collector in collectors if session.worker_input is None else [self]:
            collector.begin(session)

    def begin(self, session: EvocodeSession) -> None:
        """Start what the selected items need, unless that was done."""
        from pytest_evocode.trial.context import TrialOptions

        if self._runner is not None:
            return
        settings = session.settings
        options = TrialOptions(
            timeout_multiplier=settings.timeout_multiplier,
            verifiers=settings.verifiers,
            verify_times=settings.verify_times,
        )
        anew = bool(self.config.getoption("cacheclear", False))
        self._runner = runner = self.make_runner(session, options, anew=anew)
        if runner is not None:
            if _SIDE_BY_SIDE not in (stash := self.config.stash):
                session.running = stash[_SIDE_BY_SIDE] = SideBySide(settings.verifiers)
                self.config.add_cleanup(session.running.close)  # Before the engine's, which was added before.
            stash[_SIDE_BY_SIDE].begin(runner)

    def make_runner(
        self, session: EvocodeSession, options: TrialOptions, *, anew: bool
    ) -> CheckRunner | TaskWarming | None:
        """Return what does what the selected items need, None where that is nothing.

        ``anew`` is whether to do, too, what an earlier session did. To be called once the session has its engine.
        """
        raise NotImplementedError

    @property
    def selected(self) -> list[TaskItem]:
        """The items of this task that the session runs."""
        return [item for item in self.session.items if isinstance(item, TaskItem) and item.parent is self]

    def teardown(self) -> None:
        """End it, finished or not."""
        if self._runner is not None:
            self._runner.close()


class TaskItem(pytest.Item):
    """One thing that is done for a task."""

    parent: TaskCollector

    def setup(self) -> None:
        """Wait for it, here because pytest calls what goes wrong in set-up an error and no failure."""
        if session_of(self.config).plays:
            self.wait()

    def wait(self) -> None:
        """Wait for what was begun, and note what came of it."""
        raise NotImplementedError

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return what is wrong, in place of a traceback."""
        # A filter can make a warning an error.
        if isinstance(excinfo.value, CheckFailed | RoundFailed | pytest.PytestWarning):
            return make_failure(self, str(excinfo.value))
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where reports say that it is."""
        return self.path, 0, f"{self.path.parent.name} {self.name}"


def keep_together(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the items with those of every task together, where the first of them was: they share one runner."""
    first: dict[pytest.Item | TaskCollector, int] = {}
    for position, item in enumerate(items):
        first.setdefault(item.parent if isinstance(item, TaskItem) else item, position)
    return sorted(items, key=lambda item: first[item.parent if isinstance(item, TaskItem) else item])
