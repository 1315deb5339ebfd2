"""``--evocode-jobs``: several attempts at once in this process, each reported as soon as it has ended."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.plugin.attempts import (
    AttemptCollector,
    RoundItem,
    items_by_attempt,
    later,
    name_for_people,
    run_item,
    run_others,
    stops_before_tests,
)
from pytest_evocode.plugin.warming import AHEAD

if TYPE_CHECKING:
    from pytest_evocode.plugin.session import EvocodeSession
    from pytest_evocode.trial.context import Progress
    from pytest_evocode.trial.trial import Trial

_LOOK = 0.05
"""Seconds between two looks at which attempts have ended; a signal can end the session between them."""


@dataclass(slots=True, eq=False)
class Job:
    """An attempt that this process makes, or a round that is run by itself."""

    attempt: AttemptCollector
    alone: RoundItem | None
    items: list[RoundItem]
    trial: Trial | None = None
    error: BaseException | None = None
    """What kept the attempt from beginning, which its first item tells."""

    def begin(self) -> None:
        """Start the trial, which runs in threads of its own."""
        try:
            self.trial = self.attempt.make_trial(self.alone).__enter__()
        except (Exception, pytest.fail.Exception) as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        """Whether all of the attempt that will be run has been run."""
        return self.trial is None or self.trial.is_over

    def close(self) -> None:
        """End the attempt now; a later session can go on with it."""
        if self.trial is not None:
            with contextlib.suppress(EnvironmentFault):
                self.trial.close()


class JobsPlugin:
    """Runs a session's tests: those that are no rounds first, then the rounds of each attempt when that has ended.

    An attempt's rounds are run one after the other, with all fixtures, as they are without this plugin. Until then they
    need nothing of pytest, so that there may be as many attempts at once as the machine can take.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._most = session.settings.jobs
        self._under_way: list[Job] = []
        self._reported: Job | None = None
        session.elsewhere = self

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Make the attempts, and run tests as pytest's own loop does."""
        jobs = [Job(*made, items) for made, items in items_by_attempt(session.items).items()]
        if not jobs or stops_before_tests(session):
            return None
        images = session.config.pluginmanager.getplugin(AHEAD)
        if images is not None:
            images.begin_with(session)
        try:
            run_others(session)
            self._make_attempts(session, jobs)
        finally:
            self._close()
        return True

    def _make_attempts(self, session: pytest.Session, waiting: list[Job]) -> None:
        waiting.reverse()
        self._begin_more(waiting)
        while self._under_way:
            ended = next((job for job in self._under_way if job.is_over), None)
            if ended is None:
                time.sleep(_LOOK)
                continue
            self._under_way.remove(ended)
            self._begin_more(waiting)  # Before the report, which takes the ended one's environment down.
            self._report(session, ended, is_last=not self._under_way)

    def _begin_more(self, waiting: list[Job]) -> None:
        while waiting and len(self._under_way) < self._most:
            job = waiting.pop()
            self._under_way.append(job)
            job.begin()

    def _report(self, session: pytest.Session, job: Job, *, is_last: bool) -> None:
        self._reported = job
        try:
            for position, item in enumerate(job.items):
                after = next(iter(job.items[position + 1 :]), None if is_last else later(session))
                run_item(session, item, after)
        finally:
            self._reported = None

    def _close(self) -> None:
        """End what is under way, all at the same time."""
        left, self._under_way = self._under_way, []
        if left:
            with ThreadPoolExecutor(len(left), thread_name_prefix="ending") as pool:
                list(pool.map(Job.close, left))

    # For the session.

    def trial_of(self, attempt: pytest.Collector, alone: pytest.Item | None) -> Trial:
        """Return the trial of the attempt whose rounds are being run; raises what kept it from beginning."""
        job = self._reported
        assert job is not None
        assert (job.attempt, job.alone) == (attempt, alone)
        if job.trial is None:
            assert job.error is not None
            raise job.error
        return job.trial

    @property
    def progress(self) -> dict[str, Progress]:
        """The progress of the attempts that run, by name."""
        running = {name_for_people((job.attempt, job.alone)): job.trial for job in list(self._under_way)}
        return {
            name: found
            for name, trial in running.items()
            if trial is not None and (found := trial.progress) is not None
        }
