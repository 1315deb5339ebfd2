"""Environments that are started for suites, and stopped at the latest when the attempt ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from pytest_evocode.environments import Environment
from pytest_evocode.errors import Cancelled, EnvironmentFault

EnvironmentT = TypeVar("EnvironmentT", bound=Environment)


class StartedEnvironments(Generic[EnvironmentT]):
    """A base class of what starts environments for the suites of one attempt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: set[EnvironmentT] = set()
        self._closed = False

    def close(self) -> None:
        """Stop all of them, also those in which a suite runs; none is started any more."""
        with self._lock:
            self._closed = True
            left = list(self._all)
        for environment in left:
            self._drop(environment)

    def _start_one(self, environment: EnvironmentT, prepare: Callable[[EnvironmentT], object]) -> None:
        """Start an environment and ``prepare`` it; it is stopped where that fails, or the attempt ends meanwhile."""
        with self._lock:
            if self._closed:
                raise Cancelled("the attempt has ended")
            self._all.add(environment)
        try:
            environment.start()
            prepare(environment)
        except BaseException:
            self._drop(environment)
            raise
        if self._closed:  # Since it was about to start.
            self._drop(environment)
            raise Cancelled("the attempt has ended")

    def _drop(self, environment: EnvironmentT) -> None:
        with self._lock:
            self._all.discard(environment)
        with contextlib.suppress(EnvironmentFault):
            environment.stop()


def start_beside(start: Callable[[], EnvironmentT], begun: Future[EnvironmentT], name: str) -> None:
    """Start an environment in a thread of its own, called ``name``; ``begun`` gets it, or what went wrong."""

    def run() -> None:
        try:
            begun.set_result(start())
        except BaseException as error:
            begun.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
