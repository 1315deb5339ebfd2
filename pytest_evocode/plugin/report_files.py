"""What a session writes for others: the HTML report, a block in JSON reports, JUnit properties, GitHub's summary."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.plugin.datasets import path_of
from pytest_evocode.plugin.pytest_private import change_junit_reports
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.plugin.task_directories import is_in_task
from pytest_evocode.report.printable import printable, printable_line
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.scrubbing import scrubbed

if TYPE_CHECKING:
    from pytest_evocode.metrics.faults import Faults
    from pytest_evocode.metrics.grid import Grid
    from pytest_evocode.metrics.intervals import Interval
    from pytest_evocode.metrics.scores import Scores

#: What xdist puts before a failure: who it happened to.
_WORKER = re.compile(r"\A\[gw\d+\] [^\n]*\n")
_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+): ")
_SHOWN_CHARACTERS = 4000  # of an annotation


class ReportFiles:
    """Adds rounds and scores to the files of ``--json-report`` and ``--junitxml``."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        change_junit_reports(session.config, self._with_plain_properties)

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        """Add ``evocode``: the run, each agent's scores with intervals and tasks, and all rounds."""
        session = self._session
        if not session.records:
            return
        from pytest_evocode.report.score_lines import intervals_json
        from pytest_evocode.results.identity import identity_of

        run = session.run.record if session.run is not None else None
        identities = {each.id: identity_of(each.description, each.id).hash for each in session.roster.agents}
        agents = {}
        for agent, measured in _measure(session).items():
            without_faults = asdict(measured.faults) if measured.faults else None
            agents[agent] = {
                "identity": identities.get(agent),
                "scores": asdict(measured.scores),
                "without_faults": without_faults,
                **intervals_json(measured.intervals),
                "tasks": measured.tasks,
            }
        block = {
            "run": session.run_name,
            "results": str(session.settings.results),
            **(run.model_dump(mode="json", include={"environment", "mode", "from_round", "shard"}) if run else {}),
            "agents": agents,
            "flaky": [asdict(each) for each in session.flaky_rounds],
            "rounds": [record.without_cases().model_dump(mode="json") for record in session.records],
        }
        json_report["evocode"] = scrubbed(block, session.scrubber)

    def _with_plain_properties(self, report: pytest.TestReport) -> pytest.TestReport:
        """Return a report with plain values, which people and CI servers can read, in place of a round's record."""
        if (record := self._session.record_of(report.nodeid)) is None:
            return report
        others = [(name, value) for name, value in report.user_properties if not name.startswith("evocode")]
        # A copy, because others read the record from the same report.
        report = copy.copy(report)
        report.user_properties = [*_plain_properties(record), *others]
        return report


@dataclass(frozen=True, slots=True)
class _Measured:
    """An agent's rounds, and what is computed from them."""

    grid: Grid
    scores: Scores
    faults: Faults | None
    intervals: dict[str, Interval | str]
    """Or why there is none."""

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The scores by task, ready for JSON."""
        from pytest_evocode.metrics.breakdown import breakdown

        groups = breakdown(self.grid, "task", single_rounds=self.scores.sr is not None)
        return {task: asdict(group) for task, group in groups.items()}


def _measure(session: EvocodeSession) -> dict[str, _Measured]:
    """Return the scores and intervals by agent, in the mode of the run."""
    from pytest_evocode.metrics.faults import faults
    from pytest_evocode.metrics.grid import by_agent, scored, suite_facts
    from pytest_evocode.metrics.intervals import intervals_or_reasons
    from pytest_evocode.metrics.scores import scores

    mode, suites = session.run_mode, suite_facts(session.records)
    measured = {}
    for agent, records in by_agent(scored(session.records)).items():
        chain, single = mode.grids(records, suites)
        measured[agent] = _Measured(
            chain if chain.tasks else single,
            scores(chain, single),
            faults(chain, single),
            intervals_or_reasons(chain, single),
        )
    return measured


def _plain_properties(record: RoundRecord) -> list[tuple[str, object]]:
    """Return a round as names and plain values, without the values that are not known."""
    from pytest_evocode.report.export import round_values

    values = round_values(record)
    if not values["cases"]:
        values |= {"cases_passed": None, "cases": None}
    shown = {name: round(value, 3) if name.endswith("_seconds") and value else value for name, value in values.items()}
    return [
        (name, printable_line(value) if isinstance(value, str) else value)
        for name, value in shown.items()
        if value is not None
    ]


class GitHubActions:
    """Writes the job summary on GitHub Actions, and annotates the files of tasks with what did not pass."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._annotations: dict[str, str] = {}
        """Workflow commands by node id."""
        self._unwritten = ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Annotate a task that could not be collected."""
        if report.failed and report.nodeid.endswith(TASK_FILE):
            self._annotate(report.nodeid, report.longreprtext, title=report.nodeid, level="error", index=None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Annotate a round or a check that failed or ended in an error, but not the subtests that its cases may be."""
        if not report.failed or not is_in_task(report.nodeid) or getattr(report, "context", None) is not None:
            return
        record = self._session.record_of(report.nodeid)
        index = record.index if record is not None else None
        # With --evocode-fail-under, failed rounds do not fail the session.
        is_data = report.when == "call" and self._session.settings.fail_under is not None
        level = "warning" if is_data else "error"
        self._annotate(report.nodeid, report.longreprtext, title=report.location[2], level=level, index=index)

    def _annotate(self, nodeid: str, text: str, *, title: str, level: str, index: int | None) -> None:
        text = printable(_WORKER.sub("", text))
        place = _PLACE.match(text)
        file, line = path_of(self._session.config, nodeid), 1
        if place is not None and Path(place["file"]).is_file():
            file, line, text = Path(place["file"]), int(place["line"]), text[place.end() :]
        elif index is not None:
            line = _line_of_round(file, index)
        relative = os.path.relpath(file, os.environ.get("GITHUB_WORKSPACE") or self._session.config.rootpath)
        where = f"file={_escape_property(relative)},line={line},title={_escape_property(title)}"
        scrub = self._session.scrubber.text
        self._annotations.setdefault(nodeid, scrub(f"::{level} {where}::{_escape(text[:_SHOWN_CHARACTERS])}"))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Append the summary to that of the job."""
        target = os.environ.get("GITHUB_STEP_SUMMARY")
        if not target or not self._session.records:
            return
        try:
            with open(target, "a", encoding="utf-8", errors="replace") as file:
                file.write(self._session.scrubber.text(self._summary()))
        except OSError as error:
            self._unwritten = f"evocode: no job summary: {target}: {error.strerror}"

    def _summary(self) -> str:
        from pytest_evocode.metrics.spending import spending
        from pytest_evocode.report.markdown import session_summary

        mode = self._session.run_mode
        # The name tells the mode, because scores of different modes cannot be compared.
        measured = {mode.name(agent): each for agent, each in _measure(self._session).items()}
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
        for command in sorted(self._annotations.values(), key=lambda command: not command.startswith("::error")):
            terminalreporter.write_line(command)
        if self._unwritten:
            terminalreporter.write_line(self._unwritten)


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


FIRST_PAUSE = 5.0  # seconds
PAUSE = 30.0
_LOOK = 0.1
#: A report takes so much of a session's time at most.
_SHARE = 1 / 20
#: The paths are ours, because a session may import us from where no other process does.
_CHILD = "import sys; sys.path[:] = {paths!r}; from pytest_evocode.report.html.writing import main; main()"


class HtmlReportPlugin:
    """Hooks that have the report written by another process, of the session or of xdist's controller.

    It is a process and not a thread, because reading thousands of records would keep this one from its rounds.
    """

    def __init__(self, session: EvocodeSession) -> None:
        assert session.settings.report is not None
        self._session = session
        self._out = session.settings.report
        self._page = self._out / "index.html"
        self._changed = threading.Event()
        self._message = ""

    def pytest_sessionstart(self) -> None:
        """Refuse a directory that holds something else before anything is done."""
        from pytest_evocode.report.html.folder import claimed

        try:
            with claimed(self._out):
                pass
        except UsageError as error:
            raise pytest.UsageError(f"--evocode-report: {error}") from None

    def pytest_report_header(self) -> str:
        """Return where the report is."""
        return self._session.scrubber.text(
            f"evocode: report {self._session.shown(self._page)}, written again while rounds end"
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that there is something new."""
        if self._session.record_of(report.nodeid) is not None:
            self._changed.set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Write the report now and then in a thread that waits for the process, until the tests have ended."""
        ended = threading.Event()
        thread = threading.Thread(target=self._write_until, args=(ended,), name="evocode-report", daemon=True)
        thread.start()
        try:
            return (yield)
        finally:
            ended.set()
            thread.join()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report one last time, with the run's record as it is going to be."""
        evocode = self._session
        if evocode.run is None or not evocode.selected:
            return
        status, interrupted = int(session.exitstatus), evocode.interrupted or evocode.snapshots_elsewhere > 0
        evocode.run.write(evocode.records, evocode.begun, status, interrupted=interrupted)
        process = self._begin(under_way=False)
        _, told = process.communicate()
        lines = told.strip().splitlines()
        if process.returncode:
            why = lines[-1] if lines else f"its process ended with {process.returncode}"
            results = self._session.shown(evocode.settings.results)
            self._message = f"evocode: no report: {why}; write it with: evocode report {results}"
        else:
            self._message = f"evocode report: {self._session.shown(self._page)}"

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print where the report is, or why there is none."""
        if self._message:
            terminalreporter.write_line(printable(self._session.scrubber.text(self._message)))

    def _write_until(self, ended: threading.Event) -> None:
        pause = FIRST_PAUSE
        while not ended.wait(pause):
            if self._changed.is_set():
                self._changed.clear()
                pause = max(PAUSE, self._write_meanwhile(ended) / _SHARE)

    def _write_meanwhile(self, ended: threading.Event) -> float:
        """Have the report written, unless the tests end before it is; return how many seconds that took."""
        started = time.monotonic()
        process = self._begin(under_way=True)
        while process.poll() is None:
            if ended.wait(_LOOK):
                process.kill()
        process.communicate()
        return time.monotonic() - started

    def _begin(self, *, under_way: bool) -> subprocess.Popen[str]:
        session = self._session
        order = {
            "results": str(session.settings.results),
            "out": str(self._out),
            "under_way": session.run_name if under_way else "",
            "tasks": {name: str(place) for name, place in session.collected.items()},
        }
        process = subprocess.Popen(
            [sys.executable, "-c", _CHILD.format(paths=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(order))
            process.stdin.close()
        except BrokenPipeError:
            pass  # Its exit status tells.
        process.stdin = None
        return process
