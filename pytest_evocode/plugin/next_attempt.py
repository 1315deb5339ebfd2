"""Begins an attempt that costs nothing, such as the oracle's, while the one before it waits for its last verdict.

Else only one suite would run at that time, and nothing for a task of one round but its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem, is_last_of_attempt

if TYPE_CHECKING:
    from pytest_evocode.plugin.session import EvocodeSession


class NextAttempt:
    """Hooks that know which attempt comes next, in a process that makes one after the other."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._ahead: AttemptCollector | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Have the last round of an attempt begin the attempt that follows before it waits for its verdict."""
        if not (isinstance(item, RoundItem) and isinstance(nextitem, RoundItem) and is_last_of_attempt(item, nextitem)):
            return
        attempt = nextitem.parent
        if item.parent.is_chain and attempt.is_chain and attempt.agent.id in self._session.roster.deterministic:
            item.before_verdict = attempt.begin_ahead
            self._ahead = attempt

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End an attempt whose rounds are not asked for any more, because the session was ended."""
        try:
            return (yield)
        finally:
            if self._ahead is not None:
                with contextlib.suppress(EnvironmentFault):
                    self._ahead.drop_ahead()


def next_attempt(session: EvocodeSession) -> NextAttempt | None:
    """Return the hooks; None where the session may end with any failure, or keeps what a round leaves for people."""
    stops = session.config.getoption("maxfail", 0) or session.config.getoption("stepwise", False)
    looks = session.settings.holds_forks or session.config.getoption("usepdb", False)
    return None if stops or looks else NextAttempt(session)
