"""The reports of rounds: their durations, the records that they bring, and the removal of the host's secrets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest

from pytest_evocode.plugin.attempts import RoundItem
from pytest_evocode.plugin.node_ids import is_in_task
from pytest_evocode.plugin.pytest_private import change_captured_sections, change_json_report
from pytest_evocode.plugin.report_properties import read_record
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.results.scrubbing import scrubbed


class RoundReports:
    """Hooks that shape the reports of rounds, and read each round's record from them once for all other plugins.

    Registered in every process of a session. Records come without secrets from the trial; everything else that a report
    shows has them taken out here.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Shape the reports of rounds."""
        if isinstance(item, RoundItem):
            change_captured_sections(item, partial(scrubbed, scrubber=self._session.scrubber))
        report = yield
        if isinstance(item, RoundItem):
            _shape(report, item)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Scrub a report, a subtest's too, before any other plugin sees it; read the record of its round.

        Here and not where it is made, because reports also come from xdist's workers. Counts what is no verdict.
        """
        if is_in_task(report.nodeid):
            self._scrub(report)
        if report.when == "setup" and (record := read_record(report)) is not None:
            self._session.add_record(report.nodeid, record)
        if report.failed and (report.when != "call" or self._session.record_of(report.nodeid) is None):
            self._session.errors += 1

    def _scrub(self, report: pytest.TestReport) -> None:
        """Take secrets out of what a report shows besides the record: exceptions of fixtures, captured output."""
        scrub = partial(scrubbed, scrubber=self._session.scrubber)
        report.sections = scrub(report.sections)
        change_json_report(report, scrub)
        if report.longrepr is not None:
            report.longrepr = _scrub_failure(report.longrepr, self._session.scrubber.text)


def _shape(report: pytest.TestReport, item: RoundItem) -> None:
    """Give a round's report the duration of its own work, and a skip the place of the task."""
    if report.skipped and report.when == "setup" and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path), 1, report.longrepr[2])
    if report.when == "call" and item.record is not None:
        # What pytest measured is how long it waited, which is less where rounds overlap and all of it in set-up.
        report.duration = (item.record.agent_seconds or 0.0) + (item.record.verifier_seconds or 0.0)


def _scrub_failure(shown: Any, scrub: Callable[[str], str]) -> Any:
    """Scrub one of pytest's representations: a text, or dataclasses of texts all the way down, changed in place."""
    if isinstance(shown, str):
        return scrub(shown)
    if isinstance(shown, list | tuple):
        return type(shown)(_scrub_failure(part, scrub) for part in shown)
    if dataclasses.is_dataclass(shown):
        for name, value in vars(shown).items():
            setattr(shown, name, _scrub_failure(value, scrub))
    return shown
