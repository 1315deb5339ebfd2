"""The hooks of a session whose attempts are made on a cluster: an item is run as soon as its round has a record."""

from __future__ import annotations

import contextlib
import queue
from typing import TYPE_CHECKING, cast

import pytest

from pytest_evocode.plugin.attempts import Later, RoundItem

if TYPE_CHECKING:
    from pytest_evocode.plugin.cluster.driver import ClusterRun
    from pytest_evocode.plugin.cluster.units import AttemptUnit
    from pytest_evocode.plugin.session import EvocodeSession

_WAIT = 0.2
"""Seconds without news after which notes are printed; between two waits, a signal can end the session."""


class ClusterPlugin:
    """Runs a session's tests: those that are no rounds here, and the rounds in the order in which their records come.

    pytest takes one test's fixtures down with a view to the next test, which is not known here; so what rounds share is
    made anew for each, but for what lasts for the session.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Make the attempts, as pytest's own loop runs tests."""
        cluster = cast("ClusterRun | None", self._session.cluster)
        stops_for_errors = session.testsfailed and not session.config.option.continue_on_collection_errors
        if cluster is None or stops_for_errors or session.config.option.collectonly:
            return None  # pytest's own loop says so.
        cluster.begin(session.items)
        try:
            others = [item for item in session.items if not isinstance(item, RoundItem)]
            rounds = len(session.items) - len(others)
            for position, item in enumerate(others):
                last = _later(session) if rounds else None
                self._run(session, item, next(iter(others[position + 1 :]), last))
            self._run_rounds(session, cluster, rounds)
        finally:
            cluster.stop()
            self._tell(cluster)
        return True

    def _run_rounds(self, session: pytest.Session, cluster: ClusterRun, left: int) -> None:
        while left:
            self._tell(cluster)
            try:
                unit = cluster.changed.get(timeout=_WAIT)
            except queue.Empty:
                continue
            while unit.items and unit.trial.is_ready(unit.items[0].index, is_last=len(unit.items) == 1):
                item = unit.items.pop(0)
                unit.reported.append(item)
                left -= 1
                unit.trial.is_reported = not unit.items
                self._run(session, item, _later(session, goes_on=bool(unit.items)) if left else None)
                if not unit.items:
                    self._take_repeated(unit)
                    cluster.forget(unit)
            del unit  # It may be the last reference to one that is over.

    def _take_repeated(self, unit: AttemptUnit) -> None:
        """Count the rounds that were repeated after they were reported as the results directory has them."""
        for item in unit.reported:
            record = unit.trial.record_of(item.index)
            if record is not None and record != self._session.record_of(item.nodeid):
                self._session.add_record(item.nodeid, record)

    def _run(self, session: pytest.Session, item: pytest.Item, following: pytest.Item | None) -> None:
        """Run a test, and end the session where the test or whoever heard of it wants that."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def _tell(self, cluster: ClusterRun) -> None:
        terminal = self._session.config.pluginmanager.getplugin("terminalreporter")
        with contextlib.suppress(queue.Empty):
            while True:
                note = self._session.scrubber.text(cluster.notes.get_nowait())
                if terminal is not None:
                    terminal.ensure_newline()
                    terminal.write_line(f"evocode: {note}")


def _later(session: pytest.Session, *, goes_on: bool = False) -> Later:
    later: Later = Later.from_parent(session, name="later", goes_on=goes_on)
    return later
