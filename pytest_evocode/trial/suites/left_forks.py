"""A fork as a suite has left it, until its artifacts are collected and it is removed."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from pathlib import Path

from pytest_evocode.environments import Environment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.directory import SUITE_LOGS
from pytest_evocode.results.scrubbing import scrub_tree
from pytest_evocode.tasks import Round
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.verifier import SuiteRun, SuiteSettings, collect_artifacts, collect_logs

_FULL = os.strerror(errno.ENOSPC)
logger = logging.getLogger(__name__)


class LeftFork:
    """A fork in which a suite has run, and what is still to be had of it.

    Whoever gets one has to see to it that it is stopped, by :meth:`stop`, which any thread may call, and again.
    """

    def __init__(self, context: TrialContext, fork: Environment, round_: Round, settings: SuiteSettings) -> None:
        self.environment = fork
        self.round = round_
        self.settings = settings
        """How the suite was run."""
        self.keep_caches: Callable[[SuiteRun], object] = lambda suite: None
        """Keeps the package caches for later suites where the run of this one is of trust; fails without an error."""
        self.caches_kept: Future[None] | None = None
        """When that is under way; the fork is not removed before it is done."""
        self.more_logs = False
        """Whether the suite left something in ``/logs/verifier`` that is collected."""
        self._context = context
        self._life = contextlib.ExitStack()

    def until_stopped(self, context: AbstractContextManager[object]) -> None:
        """Enter a context that lasts until the fork is stopped."""
        self._life.enter_context(context)

    def silence(self) -> None:
        """End what the suite left running: nothing of it is to take the next suite's time or change an artifact."""
        try:
            self.environment.kill_processes()
        except EnvironmentFault as error:
            logger.info("%s, %s: a fork is removed at once: %s", self._context.task.name, self.round.name, error)
            self.stop()

    def collect(self) -> tuple[str, ...]:
        """Collect the artifacts where the attempt has a directory, and return what is to be said of those left out.

        With them comes what the suite left of logs. They are in their place at once and without secrets, or not at all.
        """
        directory = self._context.directory
        if directory is None:
            return ()
        # Beside their place, because the round's record may be written meanwhile, which rewrites what is in it.
        beside, name = directory.gathered_artifacts(self.round.name), self.round.name
        said = self._gather("artifact", beside, directory.artifacts(name), self._artifacts)
        if self.more_logs:
            said += self._gather("suite log", beside, directory.verifier_output(name).with_name(SUITE_LOGS), self._logs)
        return said

    def _artifacts(self, target: Path) -> tuple[str, ...]:
        return collect_artifacts(self.environment, self.round, target)

    def _logs(self, target: Path) -> tuple[str, ...]:
        return collect_logs(self.environment, target)

    def _gather(
        self, what: str, beside: Path, place: Path, collect: Callable[[Path], tuple[str, ...]]
    ) -> tuple[str, ...]:
        try:
            _remove_tree(beside)
            left_out = collect(beside)
            if any(reason.endswith(_FULL) for reason in left_out):
                raise OSError(errno.ENOSPC, _FULL)  # What is there already must not take the room of records.
            scrub_tree(beside, self._context.scrubber)
            _remove_tree(place)
            if beside.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                beside.rename(place)
        except (EnvironmentFault, OSError) as error:
            with contextlib.suppress(OSError):
                _remove_tree(beside)
            return (f"{what}s not collected: {error}",)
        return tuple(f"{what} left out: {reason}" for reason in left_out)

    def stop(self) -> None:
        """Remove the fork; a failure is passed over, because the engine removes what is left when it closes."""
        if self.caches_kept is not None:
            wait([self.caches_kept])
        with self._life.pop_all(), contextlib.suppress(EnvironmentFault):
            self.environment.stop()


def _remove_tree(directory: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(directory)
