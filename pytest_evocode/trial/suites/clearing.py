"""Does behind the records what nobody waits for: removes forks and snapshots."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from pytest_evocode.errors import Cancelled
from pytest_evocode.trial.context import Progress

logger = logging.getLogger(__name__)

MOST_FORKS = 4
"""How many forks of an attempt may wait to be removed; the next suite waits until there are fewer."""
NOTICEABLE = 2.0
"""Seconds of waiting at an attempt's end from which on somebody is told what is waited for."""
_THREADS = 2  # Removing files is the disk's work, which more threads do no faster.
_INTERVAL = 0.05  # seconds between two looks at whether the attempt is stopped


class Clearing:
    """What is left to be cleared up of one attempt, done by a few threads while the attempt goes on.

    A job that fails changes nothing: verdicts are told already, and the engine removes what is left when it closes.
    """

    def __init__(self, name: str) -> None:
        """Begin without threads; ``name`` is what messages call the attempt."""
        self._name = name
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="clearing")
        self._changed = threading.Condition()
        self._jobs: set[Future[None]] = set()
        self._forks = 0
        self._finished = False
        self._lags_since: float | None = None

    @property
    def progress(self) -> Progress | None:
        """What is shown of it, None unless somebody has waited for a noticeable time for its end."""
        since = self._lags_since
        return None if since is None else Progress("clearing up", since=since, forks=self._forks)

    def begin(self, job: Callable[[], object], *, fork: bool = False) -> Future[None]:
        """Have a job done; ``fork`` says that a fork waits to be removed until it is.

        After :meth:`finish` it is done before this returns.
        """
        with self._changed:
            self._forks += fork
            if not self._finished:
                future = self._pool.submit(self._do, job, fork)
                self._jobs.add(future)
                return future
        done: Future[None] = Future()
        self._do(job, fork)
        done.set_result(None)
        return done

    def wait_for_room(self, stopped: threading.Event) -> None:
        """Wait until another fork may be made; raises Cancelled once ``stopped`` is set."""
        with self._changed:
            while self._forks >= MOST_FORKS:
                if stopped.is_set():
                    raise Cancelled("stopped while forks of earlier rounds were removed")
                self._changed.wait(_INTERVAL)

    def finish(self) -> None:
        """Wait until everything is done, also what jobs themselves begin; may be called again."""
        begun = time.time()
        while left := self._left():
            seconds = begun + NOTICEABLE - time.time()
            if seconds <= 0 and self._lags_since is None:
                self._lags_since = begun
                logger.info("%s: clearing up: %d forks", self._name, self._forks)
            wait(left, seconds if seconds > 0 else None)
        self._lags_since = None
        self._pool.shutdown()

    def _left(self) -> set[Future[None]]:
        with self._changed:
            self._jobs = {job for job in self._jobs if not job.done()}
            self._finished = not self._jobs
            return set(self._jobs)

    def _do(self, job: Callable[[], object], fork: bool) -> None:
        with contextlib.suppress(Exception):
            try:
                job()
            except Exception as error:
                logger.info("%s: could not be cleared up: %s", self._name, error)
                raise
            finally:
                with self._changed:
                    self._forks -= fork
                    self._changed.notify_all()
