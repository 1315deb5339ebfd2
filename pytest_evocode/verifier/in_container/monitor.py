"""What goes wrong in a native suite beside its tests' own failures: noted, and ended where it hangs."""

from __future__ import annotations

import faulthandler
import os
import time
import traceback
from collections.abc import Callable, Generator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout

from pytest_evocode.verifier.in_container.memory import OWN, TESTS, Memory
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteError, SuiteReport
from pytest_evocode.verifier.in_container.pytest_private import asked_for, let_others_pass, shorten_sections
from pytest_evocode.verifier.in_container.selection import Selection, place_of, shortened
from pytest_evocode.verifier.in_container.workspace import RemoteError

_MARGIN = 1.0  # seconds of a case's time that no call may take
_SHORTEST = 0.1  # seconds for a call when the time is up; then the case ends by its own limit
_FOR_EVER = 86400.0  # seconds
_KNOWN = 10  # fixtures to name
ENDED = (0, 1, 5)
"""pytest's exit codes of sessions that came to their end: all passed, some failed, nothing to run."""


class SessionMonitor:
    """Notes what goes wrong beside the tests' own failures, and ends what hangs."""

    def __init__(self, plan: Plan, workdir: str, modules: Memory, begin_case: Callable[[str, str], None]) -> None:
        """Watch over a session that is at ``workdir``; ``begin_case`` takes the id and the line of each case."""
        self.timeout_multiplier = plan["timeout_multiplier"]
        self.case_limit = plan["case_timeout"] * self.timeout_multiplier
        self.grace = plan["grace"]
        self.debugging = plan["debugging"]
        """Whether a person debugs the cases, who may take as long as they like."""
        self.until_failure = plan["until_failure"]
        self.workdir = workdir
        self.modules = modules
        self.stderr = os.dup(2)  # pytest captures the other.
        self.errors: list[SuiteError] = []
        self.json_report: dict[str, Any] = {}
        self.failed: set[str] = set()
        """Cases that failed by themselves."""
        self.ended: set[str] = set()
        self.running = ""
        """The file and line of the case that is run."""
        self.limits: pytest_timeout.Settings | None = None
        self.deadline = 0.0
        """When the time of the case that is run is up, by ``time.monotonic``."""
        self.begin_case = begin_case

    def note(self, node: pytest.Item | pytest.Collector | None, when: str, error: BaseException) -> None:
        """Note an error of a test or a module, or with no node one of the session."""
        error = cause_of(error)
        id = node.nodeid if node and node.nodeid != "." else ""
        place = where(error) or (place_of(node) if id and node else self.running)
        said = what(error)
        if isinstance(error, pytest.FixtureLookupError):
            when, said = "fixture", missing_fixture(error)
        self.errors.append({"id": id, "when": when, "where": place, "what": said})

    def end_after(self, seconds: float) -> None:
        """End the process in some seconds, unless this is called again or cancelled.

        For what an exception does not end: a call in C, or a test that catches everything.
        """
        if not self.debugging:
            faulthandler.dump_traceback_later(seconds + self.grace, exit=True, file=self.stderr)

    def remaining(self) -> float:
        """Return the seconds that a call of the running case may take, so that the case can still tell of it."""
        if self.debugging or self.limits is None:  # The suite has a limit as a whole, which the host watches.
            return _FOR_EVER
        return max(_SHORTEST, self.deadline - time.monotonic() - _MARGIN)

    # Collection.

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Let a test start programs as another user in its ``tmp_path``."""
        let_others_pass(session.config)

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self) -> Generator[None, None, None]:
        """Watch over the import of conftest files, and go to the working directory."""
        # pytest was started elsewhere, so that it shows tests by their names below there.
        os.chdir(self.workdir)
        self.end_after(self.case_limit)
        try:
            return (yield)
        except BaseException as error:
            self.note(None, "collect", error)
            raise

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note modules that skip themselves; each module has the time of a case."""
        self.end_after(self.case_limit)
        if report.skipped:
            assert isinstance(report.longrepr, tuple)
            path, line, reason = report.longrepr
            place = f"{os.path.relpath(path, TESTS)}:{line}"
            self.errors.append({"id": report.nodeid, "when": "skip", "where": place, "what": reason})

    def pytest_collection_finish(self) -> None:
        """Refuse from here on modules that were not there when the suite began."""
        faulthandler.cancel_dump_traceback_later()
        self.modules.complete = True

    # The tests.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Tell the host which case runs, for it to know where the process died."""
        self.running = f"{location[0]}:{(location[1] or 0) + 1}"
        self.begin_case(nodeid, self.running)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a case has come to its end."""
        self.ended.add(nodeid)
        self.limits = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: pytest_timeout.Settings) -> object:
        """Multiply the limit of a case that is about to run."""
        self.limits = settings._replace(timeout=settings.timeout * self.timeout_multiplier)
        return self.limit(item)

    def limit(self, item: pytest.Item) -> object:
        """Start to measure an item's time; pytest-timeout ends the item by an exception."""
        assert self.limits is not None
        self.deadline = time.monotonic() + self.limits.timeout
        self.end_after(self.limits.timeout)
        return pytest_timeout.pytest_timeout_set_timer(item, self.limits)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Start the clock anew, because a failure has stopped it."""
        if self.limits is not None and not self.limits.func_only:
            self.limit(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_cancel_timer(self) -> None:
        """Take back that the process is to end."""
        faulthandler.cancel_dump_traceback_later()

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: Any
    ) -> None:
        """Note errors and timeouts, and tell them from failures of the tests' own."""
        if call.excinfo is not None:
            timed_out = any(entry.name == "timeout_sigalrm" for entry in call.excinfo.traceback)
            by_program = caused_by_program(call.excinfo.value)
            is_missing = isinstance(call.excinfo.value, pytest.FixtureLookupError)  # As of request.getfixturevalue.
            if (call.when == "call" or by_program) and not timed_out and not is_missing:
                self.failed.add(node.nodeid)
            elif node.nodeid not in self.failed:  # Then the end of its fixtures may well fail, too.
                self.note(node, "timeout" if timed_out else call.when, call.excinfo.value)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note what ended the session."""
        self.note(None, "stop", excinfo.value)

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note what ended the session."""
        self.note(None, "stop", excinfo.value)

    # The report.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Shorten what a case has printed, and what pytest says of a fixture that there is not."""
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, pytest.FixtureLookupError):
            report.longrepr = missing_fixture(call.excinfo.value)
        report.sections = [(name, shortened(text)) for name, text in report.sections]
        shorten_sections(item, shortened)
        return report

    def pytest_json_runtest_stage(self, report: pytest.TestReport) -> dict[str, Any]:
        """Give each stage its reason alone, in place of tracebacks."""
        return {"crash": {"message": shortened(reason_of(report))}}

    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        """Keep the report for :meth:`report_of`."""
        self.json_report = json_report

    def report_of(self, selection: Selection, status: int) -> SuiteReport:
        """Return the report of a session that has ended with pytest's exit code ``status``."""
        left = [item for item in selection.wanted if item.nodeid not in self.ended and not self.until_failure]
        if (left or status not in ENDED) and not any(error["id"] == "" for error in self.errors):
            what = f"the session ended with exit code {status}" + (f" before {left[0].nodeid}" if left else "")
            self.errors.append({"id": "", "when": "stop", "where": place_of(left[0]) if left else "", "what": what})
        tests = [test for test in self.json_report.get("tests", []) if test["nodeid"] in self.ended]
        for test in tests:
            test.pop("user_properties", None)  # As long as the test likes; what counts of them is in the metadata.
        unlike = [] if selection.wanted else selection.unlike
        return {
            "tests": tests,
            "evocode": {"problems": selection.problems, "errors": self.errors, "unlike": unlike},
        }


def caused_by_program(error: BaseException) -> bool:
    """Return whether the workspace raised an error for what a program did or did not do, in a fixture as in a test."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised_there = bool(frames) and frames[-1].f_code.co_filename.startswith(f"{OWN}/")
    return raised_there and isinstance(error, OSError | EOFError | RemoteError)


def reason_of(report: pytest.TestReport) -> str:
    """Return why a test failed or was skipped, in a few words; empty where it passed."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message) if crash is not None else report.longreprtext


def cause_of(error: BaseException) -> BaseException:
    """Return the error that an import failed with, and not pytest's own that was raised of it."""
    while type(error).__module__.startswith("_pytest.") and error.__cause__ is not None:
        error = error.__cause__
    return error


def what(error: BaseException) -> str:
    """Return an exception in one line, in pytest's words where it is one of pytest's."""
    if isinstance(error, pytest.Collector.CollectError):
        return shortened(str(error).strip())
    first = (str(error).strip().splitlines() or [""])[0]
    return shortened(f"{type(error).__name__}: {first}" if first else type(error).__name__)


def missing_fixture(error: pytest.FixtureLookupError) -> str:
    """Return in one line which fixture a test asks for in vain, or through which other one, and those of the suite."""
    test, through, names = asked_for(error)
    user = f"{test} by its fixture {through!r}" if through else test
    near = get_close_matches(error.argname or "", names, _KNOWN) or names[:_KNOWN]
    if "workspace" in names and "workspace" not in near:  # What a test of a program most likely lacks.
        near = [*near, "workspace"]
    problem = error.formatrepr().errorstring.strip().splitlines()[0]
    return shortened(f"{problem}, used by {user}; known: {', '.join(near)}")


def where(error: BaseException) -> str:
    """Return the innermost line of the tests that an exception went through, as ``path:line``."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(TESTS):
        return f"{Path(error.filename).relative_to(TESTS)}:{error.lineno}"
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if isinstance(parametrised := frame.f_locals.get("self"), pytest.Metafunc):
            code = parametrised.function.__code__
            line = code.co_firstlineno
        path = Path(code.co_filename)
        if path.is_relative_to(TESTS) and not path.is_relative_to(OWN):
            found = f"{path.relative_to(TESTS)}:{line}"
    return found
