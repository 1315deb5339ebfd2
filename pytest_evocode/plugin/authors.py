"""What authors of tasks ask of a session: shells and debuggers in forks, forks that are kept, pins, single cases."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_evocode.errors import EnvironmentFault, EvocodeError, PinRefused, RoundFailed
from pytest_evocode.plugin.attempts import RoundItem
from pytest_evocode.plugin.collection import InsideTask, TaskFile
from pytest_evocode.plugin.kept_rounds import PARTIAL
from pytest_evocode.plugin.pytest_private import show_failure
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.plugin.task_directories import task_directory
from pytest_evocode.report.printable import printable, printable_line
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.lockfile import Lock, content_hash, write_lock

if TYPE_CHECKING:
    from pytest_evocode.trial.suites.left_forks import HeldFork
    from pytest_evocode.trial.trial import Trial

_STDIN = 0
#: The user property with the command line that enters a kept fork, or why none is kept.
KEPT = "evocode_kept"


class RoundInspection:
    """Hooks for looking at what rounds left, those that failed above all.

    They take the place of pytest's own plugin for ``--pdb``, and pass on to it what is not the verdict of a round.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._settings = session.settings
        plugins = session.config.pluginmanager
        self._pdb: Any = plugins.unregister(name="pdbinvoke") if plugins.hasplugin("pdbinvoke") else None
        self._opens = self._settings.shell is not None or self._settings.debug
        self._always = self._settings.shell == "always"
        self._fault = ""
        """Why the fork of the current round could not be kept."""
        self._kept: list[tuple[str, str]] = []
        """Node ids of failed rounds, and how to enter what was kept of each."""

    # A terminal in the fork, right after the failure was reported.

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: pytest.TestReport
    ) -> None:
        """Open a shell or debugger in a failed round's fork; pytest's own debugger would show this plugin's code."""
        assert call.excinfo is not None
        error = call.excinfo.value
        if node.getparent(TaskFile) is not None or isinstance(node, InsideTask):
            if isinstance(error, KeyboardInterrupt):  # pytest catches it for --pdb.
                raise error
            if isinstance(node, RoundItem) and node.record is not None:
                failed, broke_down = isinstance(error, RoundFailed), node.record.outcome == "error"
                if (failed and self._opens) or (broke_down and self._always):
                    self._open(node, node.record, report)
            if isinstance(error, RoundFailed | pytest.fail.Exception) or not isinstance(node, RoundItem):
                return
        if self._pdb is not None:
            self._pdb.pytest_exception_interact(node, call, report)

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Leave internal errors to pytest's own plugin for ``--pdb``."""
        if self._pdb is not None:
            self._pdb.pytest_internalerror(excinfo)

    def _open(self, item: RoundItem, record: RoundRecord, report: pytest.TestReport | None = None) -> None:
        """Open a shell or debugger in a round's fork, after the ``report`` of its failure."""
        plugins = self._session.config.pluginmanager
        if (capture := plugins.getplugin("capturemanager")) is not None:
            capture.suspend_global_capture(in_=True)  # Until the next phase of a test; so does --pdb.
        reporter: pytest.TerminalReporter | None = plugins.getplugin("terminalreporter")
        assert reporter is not None
        reporter.ensure_newline()
        if (fork := _fork_of(item)) is None:
            return reporter.write_line(f"{item.nodeid}: there is nothing to enter: {_why_no_fork(item)}")
        if not os.isatty(_STDIN):
            return reporter.write_line(f"{item.nodeid}: standard input is no terminal to enter the fork from")
        reporter.write_sep(">", item.nodeid)
        if report is not None:
            show_failure(report, reporter)
        try:
            for what, run in self._commands(fork, record):
                reporter.write_sep(">", printable_line(what))
                reporter.flush()
                run()
        except EnvironmentFault as error:
            reporter.write_line(printable(self._session.scrubber.text(f"it ended: {error}")))
        reporter.write_sep(">", "the session goes on")

    def _commands(self, fork: HeldFork, record: RoundRecord) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield what to run on the terminal, each with a title."""
        failing = [case.id for case in record.verdict.cases if case.failing] if record.verdict is not None else []
        debugs = self._settings.debug and fork.can_debug and record.outcome == "failed"
        if debugs:
            yield (
                f"the failing cases of {record.round} again, with --pdb",
                lambda: fork.debug(failing, _STDIN),
            )
        if self._settings.shell or not debugs:
            apart = fork.round.verify_in == "separate"
            what = "what the agent made" if apart else "tests in /tests, the suite's files in /logs/verifier"
            place = "suite's own environment" if fork.round.suite_environment is not None else "fork"
            yield f"the {place} of {record.round}: {what}", lambda: fork.environment.interact(fork.shell, _STDIN)

    # Forks that are kept.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep the fork or drop it, unless it is about to be entered.

        This comes before the failure is reported: with ``-x`` and workers the report ends the attempt and its forks.
        """
        if isinstance(item, RoundItem) and call.when == "call" and not self._opens:
            self._keep_or_drop(item)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Keep or drop a fork that was entered; fail if a fork could not be kept."""
        if isinstance(item, RoundItem):
            if self._always and item.record is not None and item.record.passed:
                self._open(item, item.record)
            self._keep_or_drop(item)
        result = yield
        fault, self._fault = self._fault, ""
        if fault:
            pytest.fail(fault, pytrace=False)
        return result

    def _keep_or_drop(self, item: RoundItem) -> None:
        if (trial := _trial_of(item)) is None:
            return
        kept = any(name == KEPT for name, _ in item.user_properties)
        try:
            if self._settings.keep and not kept and item.record is not None and item.record.outcome == "failed":
                item.user_properties.append((KEPT, self._keep(item, item.record)))
        except EnvironmentFault as error:
            item.user_properties.append((KEPT, "not kept: the environment failed"))
            self._fault = f"the fork of {item.name} could not be kept: {error}"
        finally:
            trial.drop_fork(item.index)

    def _keep(self, item: RoundItem, record: RoundRecord) -> str:
        if (fork := _fork_of(item)) is None:
            return f"not kept: {_why_no_fork(item)}"
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{record.task}-{item.parent.name}-{record.round}")
        return fork.environment.keep(name, fork.shell, self._session.scrubber.text)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather the forks that were kept, by workers too."""
        if report.when == "teardown":
            self._kept += [(report.nodeid, str(value)) for name, value in report.user_properties if name == KEPT]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how to enter the forks that were kept."""
        if self._kept:
            terminalreporter.section("evocode: forks of failed rounds")
            for nodeid, line in self._kept:
                terminalreporter.write_line(nodeid)
                terminalreporter.write_line(f"  {self._session.scrubber.text(line)}")
            terminalreporter.write_line("remove all that is kept with: evocode clean --kept")


def _trial_of(item: RoundItem) -> Trial | None:
    # Forks are held by no session whose attempts are made elsewhere.
    return cast("Trial | None", item.parent.trial)


def _fork_of(item: RoundItem) -> HeldFork | None:
    trial = _trial_of(item)
    return trial.fork_of(item.index) if trial is not None else None


def _why_no_fork(item: RoundItem) -> str:
    if item.parent.task.in_place:
        return (
            'with verify_in = "in-place" the suite ran where the agent goes on working, and nothing of it is left there'
        )
    return "no suite of this round was run in this session, or its environment cannot be entered"


_SHOWN_ROUNDS = 3


@dataclass(slots=True)
class _Played:
    """The rounds of a task that the oracle has run so far."""

    task_hash: str
    rounds: dict[str, RoundRecord] = field(default_factory=dict)


class PinPlugin:
    """Hooks that gather the oracle's rounds and write the locks, in the process that reports."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._played: dict[Path, _Played] = {}
        self._messages: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather the rounds of each task."""
        record = self._session.rounds.record(report.nodeid)
        if report.when == "setup" and record is not None:
            directory = task_directory(report.nodeid, self._session.config)
            if directory not in self._played:
                self._played[directory] = _Played(content_hash(directory))
            self._played[directory].rounds[record.round] = record

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the locks; a session that leaves a task without one has failed."""
        for directory, played in sorted(self._played.items()):  # Workers report in any order.
            try:
                self._messages.append(self._pin(directory, played))
            except (EvocodeError, OSError) as error:
                self._messages.append(f"not pinned: {directory.name}: {error}")
                self._session.unmet.append(self._messages[-1])
                if session.exitstatus == pytest.ExitCode.OK:
                    session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _pin(self, directory: Path, played: _Played) -> str:
        """Write a task's lock, and return what to say of it; raises PinRefused, TaskError and OSError."""
        task = load_task(directory, unknown_keys="ignore")
        rounds: dict[str, dict[str, str]] = {}
        for round_ in task.rounds:
            record = played.rounds.get(round_.name)
            if record is None or not record.passed:
                why = "was not selected" if record is None else f"did not pass ({record.outcome})"
                raise PinRefused(f"{round_.name} {why}")
            cases = record.verdict.cases if record.verdict else ()
            rounds[round_.name] = {case.id: case.requirement for case in cases if case.status == "passed" and case.id}
        if empty := [name for name, pinned in rounds.items() if not pinned]:
            raise PinRefused(
                f"{join_first(empty, _SHOWN_ROUNDS)} passed without a case that passed, so there is nothing to pin: "
                "have test.sh print a line 'CASE_RESULT case_id=NAME status=success' for each case, or write "
                "ctrf.json, report.json or junit.xml to /logs/verifier"
            )
        if content_hash(directory) != played.task_hash:
            raise PinRefused("its files changed meanwhile; run it again")
        engine = self._session.engine
        lock = Lock(task_hash=played.task_hash, environment=engine.name, image=engine.image_key(task), rounds=rounds)
        path = write_lock(directory, lock)
        total = sum(map(len, rounds.values()))
        return f"pinned: {path}, {total} cases in {len(rounds)} of {len(task.rounds)} rounds"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print which locks were written, and which were not."""
        for line in self._messages:
            terminalreporter.write_line(printable(f"evocode: {line}"))


class SingleCases:
    """Hooks that gather what came of the cases, and say that it is no verdict. In the process that reports."""

    def __init__(self, session: EvocodeSession) -> None:
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what rounds say."""
        if report.when == "teardown":
            self._lines += [f"{report.nodeid}: {value}" for name, value in report.user_properties if name == PARTIAL]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print it, in place of a benchmark."""
        terminalreporter.section("evocode: single cases")
        for line in self._lines:
            terminalreporter.write_line(printable(line))
        terminalreporter.write_line("nothing was recorded; leave out --evocode-case for a verdict")
