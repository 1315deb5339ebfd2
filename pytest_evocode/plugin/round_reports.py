"""The reports of rounds: their durations, the records that they bring, and the removal of the host's secrets."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import pytest

from pytest_evocode.names import attempt_name
from pytest_evocode.plugin.attempts import RoundItem
from pytest_evocode.plugin.kept_rounds import KeptProperties, compress_properties, read_record
from pytest_evocode.plugin.pytest_private import change_captured_sections, change_json_report, list_in_short_summary
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.plugin.task_directories import is_in_task
from pytest_evocode.report.printable import printable, printable_line
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.scrubbing import scrubbed

#: What the formatter of pytest's logging puts around the names of levels, and whatever else has colours.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_SHOWN_NOTES, _SHOWN_CHARACTERS = 20, 300

#: What pytest counts undecided rounds as, and the letter and the word that it shows for one.
_UNDECIDED = ("undecided", "u", "UNDECIDED")


class RoundReports:
    """Hooks that shape the reports of rounds, and read each round's record from them once for all other plugins.

    Registered in every process of a session. Records come without secrets from the trial; everything else that a report
    shows has them taken out here, and is made printable, because most of it was written by programs and agents.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._reports: dict[str, list[pytest.TestReport]] = defaultdict(list)
        """The reports of rounds that are being reported, by node id."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Drop the record of a round's item when its reports are made."""
        result = yield
        if isinstance(item, RoundItem):
            item.forget()
        return result

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
            self._session.rounds.add(report.nodeid, record)
        if report.failed and (report.when != "call" or self._session.rounds.record(report.nodeid) is None):
            self._session.errors += 1
        if self._session.rounds.kept(report.nodeid) is not None:
            self._reports[report.nodeid].append(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> Generator[None, None, None]:
        """Compress what a round's reports say when its test is over: pytest keeps them until the session ends."""
        yield
        kept = self._session.rounds.kept(nodeid)
        for report in self._reports.pop(nodeid, ()):
            if kept is not None:
                compress_properties(report, kept)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
        """Give plain values of a report whose properties are compressed."""
        values = yield
        if values is not None and isinstance(values.get("user_properties"), KeptProperties):
            values["user_properties"] = list(values["user_properties"])
        return values

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count undecided rounds as such: they have neither passed nor failed, and were run, unlike what is skipped."""
        if report.when != "call" or not report.skipped:
            return None
        record = self._session.rounds.record(report.nodeid)
        is_round = record is not None and record.outcome == "undecided" and not hasattr(report, "context")
        return _UNDECIDED if is_round else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the flags of rounds that passed, which no failure's report shows."""
        counted_as, letter, word = _UNDECIDED
        reports = terminalreporter.stats.get(counted_as, [])
        list_in_short_summary(terminalreporter, letter, word, {each: self._cause(each.nodeid) for each in reports})
        self._print(terminalreporter, "evocode undecided rounds", self._lines(_undecided))
        notes = self._lines(lambda record: record.notes if record.passed else ())
        self._print(terminalreporter, "evocode notes on passed rounds", notes)

    def _cause(self, nodeid: str) -> str:
        record = self._session.rounds.record(nodeid)
        return printable_line(record.cause) if record is not None else ""

    def _lines(self, said: Callable[[RoundRecord], Sequence[str]]) -> list[str]:
        """Return what is to be said of rounds, each line once for all rounds of an attempt that it is of."""
        found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for record in self._session.records:
            for line in said(record):
                found[record.task, attempt_name(record.agent, record.attempt), line].append(record.round)
        return [f"{task}, {who}, {join_first(rounds)}: {line}" for (task, who, line), rounds in found.items()]

    def _print(self, reporter: pytest.TerminalReporter, title: str, notes: Sequence[str]) -> None:
        if not notes:
            return
        reporter.section(title, yellow=True)
        shown = len(notes) if self._session.shows_all else _SHOWN_NOTES
        for line in notes[:shown]:
            cut = "" if self._session.shows_all or len(line) <= _SHOWN_CHARACTERS else "..."
            reporter.write_line(printable_line(line[:_SHOWN_CHARACTERS] + cut if cut else line))
        if len(notes) > shown:
            reporter.write_line(f"... and {len(notes) - shown} more, use '-vv' to show")

    def _scrub(self, report: pytest.TestReport) -> None:
        """Take secrets out of what a report shows besides the record: exceptions of fixtures, captured output.

        What is shown to people is made printable, too; pytest's own colours are lost in that.
        """
        scrub = self._session.scrubber.text
        report.sections = [(title, printable(scrub(_COLOUR.sub("", text)))) for title, text in report.sections]
        change_json_report(report, partial(scrubbed, scrubber=self._session.scrubber))
        if report.longrepr is not None:
            report.longrepr = _change_failure(report.longrepr, lambda text: printable(scrub(text)))


def _undecided(record: RoundRecord) -> tuple[str, ...]:
    return (record.cause, *record.notes) if record.outcome == "undecided" else ()


def _shape(report: pytest.TestReport, item: RoundItem) -> None:
    """Give a round's report the duration of its own work, and a skip the place of the task."""
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path), 1, report.longrepr[2])
    if report.when == "call" and item.record is not None:
        # What pytest measured is how long it waited, which is less where rounds overlap and all of it in set-up.
        report.duration = (item.record.agent_seconds or 0.0) + (item.record.verifier_seconds or 0.0)


def _change_failure(shown: Any, change: Callable[[str], str]) -> Any:
    """Change one of pytest's representations: a text, or dataclasses of texts all the way down, changed in place."""
    if isinstance(shown, str):
        return change(shown)
    if isinstance(shown, list | tuple):
        return type(shown)(_change_failure(part, change) for part in shown)
    if dataclasses.is_dataclass(shown):
        for name, value in vars(shown).items():
            setattr(shown, name, _change_failure(value, change))
    return shown
