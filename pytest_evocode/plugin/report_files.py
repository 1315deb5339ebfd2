"""What a session writes for others: the HTML report, a block in JSON reports, JUnit properties."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.plugin.pytest_private import change_junit_reports
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.report.printable import printable, printable_line
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.scrubbing import scrubbed

if TYPE_CHECKING:
    from pytest_evocode.metrics.faults import Faults
    from pytest_evocode.metrics.grid import Grid
    from pytest_evocode.metrics.intervals import Interval
    from pytest_evocode.metrics.scores import Scores


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
        for agent, measured in measure(session).items():
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
        if (record := self._session.rounds.record(report.nodeid)) is None:
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


def measure(session: EvocodeSession) -> dict[str, _Measured]:
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
        if self._session.rounds.record(report.nodeid) is not None:
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
        evocode.write_run(int(session.exitstatus))
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
