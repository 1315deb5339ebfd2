"""What GitHub Actions shows of a session: the summary of the job, and annotations of files of what did not pass."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_evocode.plugin.datasets import path_of
from pytest_evocode.plugin.github_refusals import heading
from pytest_evocode.plugin.report_files import measure
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.plugin.task_directories import is_in_task
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import plain
from pytest_evocode.results.records import RoundRecord

#: What xdist puts before a failure: who it happened to.
_WORKER = re.compile(r"\A\[gw\d+\] [^\n]*\n")
_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+): ")
_SHOWN_CHARACTERS = 4000  # of an annotation

_REASONS_SHOWN = 20
_REASON_CHARACTERS = 300
_NOTHING = "nothing that was reported tells why; the output of the session may"


@dataclass(frozen=True, slots=True)
class _Failure:
    """A report that makes pytest's exit status 1."""

    nodeid: str
    kind: str
    """In the singular, such as ``failed test``."""
    text: str
    is_told: bool
    """Whether the summary tells of it below, as of a round."""

    def line(self) -> str:
        """Return what failed, and why, in a line."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        said = [line.removeprefix("E ").strip() for line in lines if line.startswith("E  ")] or lines
        why, where = said[0] if said else self.kind, self.nodeid
        place = _PLACE.match(why)
        if place is not None and place["file"].endswith(self.nodeid):  # Once is enough.
            why, where = why[place.end() :], f"{self.nodeid}:{place['line']}"
        return f"{where}: {why}"


class GitHubActions:
    """Writes the job summary on GitHub Actions, and annotates files with what did not pass.

    The summary begins with all reasons of an exit status that is not 0. They come from the reports that pytest itself
    counts for it, so that no kind of failure is left out; a status without any such report is named, too.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._annotations: dict[str, str] = {}
        """Workflow commands by node id."""
        self._failures: dict[tuple[str, str | None], _Failure] = {}
        """By node id and phase."""
        self._ended_by: list[str] = []
        """What ended the session before its time."""
        self._early_status = pytest.ExitCode.OK
        """What a session exits with that ends before it has begun."""
        self._is_written = False
        self._unwritten = ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note and annotate what could not be collected."""
        if report.failed:
            self._failures[report.nodeid, None] = _Failure(
                report.nodeid, "error during collection", _said(report), is_told=False
            )
            self._annotate(report, report.nodeid, level="error", index=None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note and annotate what failed or ended in an error, but not the subtests that a round's cases may be."""
        if not report.failed or hasattr(report, "wasxfail"):  # As pytest counts.
            return
        record = self._session.rounds.record(report.nodeid)
        if record is not None and getattr(report, "context", None) is not None:
            return
        # With --evocode-fail-under, failed rounds do not fail the session.
        is_verdict = record is not None and report.when == "call"
        is_data = is_verdict and self._session.settings.fail_under is not None
        what = "test" if record is None else "round"
        kind = f"failed {what}" if report.when == "call" else f"error of a {what}"
        if not is_data:
            is_told = record is not None and record.outcome in ("failed", "error") and report.when != "teardown"
            failure = _Failure(report.nodeid, kind, _said(report), is_told)
            self._failures.setdefault((report.nodeid, report.when), failure)
        index = record.index if record is not None else None
        self._annotate(report, report.location[2], level="warning" if is_data else "error", index=index)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note what interrupts the session: Ctrl-C, ``pytest.exit``, ``-x`` or errors of collection."""
        self._ended_by.append(str(excinfo.value) or "interrupted")
        self._early_status = pytest.ExitCode.INTERRUPTED

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note an error of pytest or a plugin, also of a worker."""
        self._ended_by.append(f"internal error: {excinfo.exconly()}")
        self._early_status = pytest.ExitCode.INTERNAL_ERROR

    def _annotate(
        self, report: pytest.TestReport | pytest.CollectReport, title: str, *, level: str, index: int | None
    ) -> None:
        scrub = self._session.scrubber.text  # First of all: what is cut or escaped is not found any more.
        text = printable(scrub(_WORKER.sub("", report.longreprtext)))
        file, line = path_of(self._session.config, report.nodeid), 1
        place = _PLACE.match(text)
        if place is not None and Path(place["file"]).is_file():
            file, line, text = Path(place["file"]), int(place["line"]), text[place.end() :]
        elif index is not None:
            line = _line_of_round(file, index)
        elif not is_in_task(report.nodeid):
            line = _line_of_test(report, file)
        relative = os.path.relpath(file, os.environ.get("GITHUB_WORKSPACE") or self._session.config.rootpath)
        where = f"file={_escape_property(relative)},line={line},title={_escape_property(scrub(title))}"
        if file.is_file():
            command = scrub(f"::{level} {where}::{_escape(text[:_SHOWN_CHARACTERS])}")
            self._annotations.setdefault(report.nodeid, command)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Append the summary to that of the job."""
        if session.shouldfail:
            self._ended_by.append(str(session.shouldfail))
        self._write(int(session.exitstatus))

    def pytest_unconfigure(self) -> None:
        """Say what a session has not said that was refused before it began, or that prints no summary."""
        status = pytest.ExitCode.USAGE_ERROR if _usage_error() else self._early_status
        if status and not self._is_written:
            self._write(int(status))
        for line in self._output():
            print(line)

    def _write(self, status: int) -> None:
        self._is_written = True
        target = os.environ.get("GITHUB_STEP_SUMMARY")
        parts = [self._reasons(status)] if status else []
        parts += [self._summary()] if self._session.records else list(self._without_attempts())
        if not target or not parts:
            return
        try:
            with open(target, "a", encoding="utf-8", errors="replace") as file:
                file.write(self._session.scrubber.text("\n".join(parts)))
        except OSError as error:
            self._unwritten = f"evocode: no job summary: {target}: {error.strerror}"

    def _reasons(self, status: int) -> str:
        """Return why the exit status is what it is, as Markdown."""
        counts = Counter(failure.kind for failure in self._failures.values())
        counted = ", ".join(f"1 {kind}" if n == 1 else f"{n} {_plural(kind)}" for kind, n in counts.items())
        usage_error = _usage_error()
        notes = [*self._session.unmet, *self._ended_by, *([str(usage_error)] if usage_error else [])]
        items = [self._item(note) for note in dict.fromkeys(notes) if note != counted]
        listed = [self._item(failure.line()) for failure in self._failures.values() if not failure.is_told]
        items += listed[:_REASONS_SHOWN]
        if (more := len(listed) - _REASONS_SHOWN) > 0:
            items.append(f"- and {more} more")
        if not items and not counted and status != pytest.ExitCode.NO_TESTS_COLLECTED:
            items.append(f"- {_NOTHING}")
        return "\n\n".join([heading(status, counted), *(["\n".join(items)] if items else [])]) + "\n"

    def _without_attempts(self) -> Iterator[str]:
        """Yield that a shard had nothing to do, which is no mistake."""
        settings = self._session.settings
        if settings.shard is not None and self._session.selected:
            number, of = settings.shard
            gate = ", and nothing that --evocode-fail-under could be about" if settings.fail_under is not None else ""
            yield f"Shard {number} of {of} has no attempts to make{gate}.\n"

    def _item(self, text: str) -> str:
        return f"- {plain(self._session.scrubber.text(text)[:_REASON_CHARACTERS])}"

    def _summary(self) -> str:
        from pytest_evocode.metrics.spending import spending
        from pytest_evocode.report.markdown import session_summary

        mode = self._session.run_mode
        # The name tells the mode, because scores of different modes cannot be compared.
        measured = {mode.name(agent): each for agent, each in measure(self._session).items()}
        return session_summary(
            self._session.records,
            {name: each.scores for name, each in measured.items()},
            {name: spending(each.grid.records()) for name, each in measured.items()},
            {name: each.intervals for name, each in measured.items()},
            {name: each.faults for name, each in measured.items()},
            about=list(self._about()),
            flaky=self._session.flaky_rounds,
            describe=self._describe,
        )

    def _describe(self, record: RoundRecord) -> str:
        from pytest_evocode.report.failures import describe_failure

        return describe_failure(self._session.with_cases(record), self._session.output_of(record))

    def _about(self) -> Iterator[str]:
        from pytest_evocode.report.benchmark import describe_mode, partial_note

        run = self._session.run.record if self._session.run is not None else None
        if run is not None:
            yield f"Run {run.run}, environment {run.environment}"
            if description := describe_mode(self._session.run_mode):
                yield f"{self._session.settings.protocol}: {description}"
            if run.shard is not None:
                yield "Shard {} of {}: these are the scores of its attempts only".format(*run.shard)
        if note := partial_note(self._session.records, self._session.run_mode):
            yield note

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the annotations, errors first: GitHub shows ten of each level in a step."""
        for line in self._output():
            terminalreporter.write_line(line)

    def _output(self) -> list[str]:
        """Return what is to be printed and was not yet."""
        lines = sorted(self._annotations.values(), key=lambda command: not command.startswith("::error"))
        lines += [self._unwritten] if self._unwritten else []
        self._annotations, self._unwritten = {}, ""
        return lines


def _usage_error() -> pytest.UsageError | None:
    """Return the error that ends the session, while pytest still passes it on."""
    error = sys.exc_info()[1]
    return error if isinstance(error, pytest.UsageError) else None


def _said(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return what a failure comes down to: its message, else all of its text."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return printable(_WORKER.sub("", crash.message if crash is not None else report.longreprtext))


def _plural(kind: str) -> str:
    """Return the plural of a kind of failure.

    >>> _plural("failed test"), _plural("error of a round"), _plural("error during collection")
    ('failed tests', 'errors of rounds', 'errors during collection')
    """
    first, of, what = kind.partition(" of a ")
    if of:
        return f"{first}s of {what}s"
    return kind.replace("error", "errors") if kind.startswith("error") else f"{kind}s"


def _line_of_test(report: pytest.TestReport | pytest.CollectReport, file: Path) -> int:
    """Return the line, from 1, where a test failed in its own file, else the one where it begins."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and Path(crash.path).name == file.name:
        return int(crash.lineno)
    return (report.location[1] or 0) + 1 if isinstance(report, pytest.TestReport) else 1


def _line_of_round(file: Path, index: int) -> int:
    """Return the line of task.toml, from 1, where a round starts; ``index`` counts rounds from 1."""
    from pytest_evocode.tasks.config_text import find_line

    try:
        return find_line(file.read_text(encoding="utf-8"), ("steps", index - 1, "name"))
    except (OSError, UnicodeDecodeError):
        return 1


def _escape(text: str) -> str:
    r"""Return a text escaped as the data of a workflow command of GitHub.

    >>> _escape("50%\nmore")
    '50%25%0Amore'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
