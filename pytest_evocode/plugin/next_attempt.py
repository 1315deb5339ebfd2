"""Begins an attempt that costs nothing, such as the oracle's, while the one before it waits for its last verdict.

Else only one suite would run at that time, and nothing for a task of one round but its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem, is_last_of_attempt

if TYPE_CHECKING:
    from pytest_evocode.plugin.session import EvocodeSession
    from pytest_evocode.trial.trial import Trial


_MAY_NOT_RUN = ("skip", "skipif", "xfail")
"""Marks with which pytest may not run a test."""


class NextAttempt:
    """Hooks that know which attempt comes next, in a process that makes one after the other."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._begun: list[AttemptCollector] = []
        """Attempts that were begun ahead, or are to be, until their last round."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Have the last round of an attempt begin the attempt that follows before it waits for its verdict."""
        if not (isinstance(item, RoundItem) and is_last_of_attempt(item, nextitem)):
            return (yield)
        if isinstance(nextitem, RoundItem) and item.parent.is_chain and self._may_begin(nextitem):
            item.before_verdict = partial(self._begin, item.parent, nextitem.parent)
            self._begun.append(nextitem.parent)
        result = yield
        if item.parent in self._begun:
            self._begun.remove(item.parent)
            _drop(item.parent)  # Its rounds may have been skipped before they were set up.
        return result

    def _may_begin(self, item: RoundItem) -> bool:
        attempt = item.parent
        is_run = not any(item.get_closest_marker(name) for name in _MAY_NOT_RUN)
        return is_run and attempt.is_chain and attempt.agent.id in self._session.roster.deterministic

    def _begin(self, attempt: AttemptCollector, following: AttemptCollector) -> None:
        # No attempt is made elsewhere here. Turns have limits of time, and the one that follows would slow them down.
        cast("Trial", attempt.trial).wait_turns()
        following.begin_ahead()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End an attempt whose rounds are not asked for any more; here, where no signal interrupts it."""
        for attempt in self._begun:
            _drop(attempt)


def _drop(attempt: AttemptCollector) -> None:
    with contextlib.suppress(EnvironmentFault):
        attempt.drop_ahead()


def next_attempt(session: EvocodeSession) -> NextAttempt | None:
    """Return the hooks; None where the session may end with any failure, or keeps what a round leaves for people."""
    stops = session.config.getoption("maxfail", 0) or session.config.getoption("stepwise", False)
    looks = session.settings.holds_forks or session.config.getoption("usepdb", False)
    return None if stops or looks else NextAttempt(session)
