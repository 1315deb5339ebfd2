"""The pytest session of a native suite, in the environment.

So it is written for the Python 3.10 that an image may have, and knows nothing of the package but its siblings.
"""

from __future__ import annotations

import faulthandler
import hashlib
import hmac
import json
import os
import sys
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import _pytest.assertion.rewrite
import _pytest.pathlib
import pytest
import pytest_jsonreport.plugin
import pytest_timeout

from pytest_evocode.verifier.in_container.items import Selection, place_of, shortened
from pytest_evocode.verifier.in_container.modules import OWN, TESTS, Memory, module_name, tests_in

PLAN = Path(OWN, "plan.json")
RUNNING = Path(OWN, "running.json")
REPORT = Path("/logs/verifier/report.json")
SEAL = Path("/logs/verifier/report.seal")
ENDED = (0, 1, 5)
"""pytest's exit codes of sessions that came to their end: all passed, some failed, nothing to run."""


class SessionMonitor:
    """Notes what goes wrong beside the tests' own failures, and ends what hangs."""

    def __init__(self, plan: dict[str, Any], workdir: str, modules: Memory) -> None:
        self.timeout_multiplier: float = plan["timeout_multiplier"]
        self.case_limit = plan["case_timeout"] * self.timeout_multiplier
        self.grace: float = plan["grace"]
        self.debugging = plan["key"] is None
        """Whether a person is at it, who may take as long as they like."""
        self.until_failure: bool = plan["until_failure"]
        self.workdir = workdir
        self.modules = modules
        self.stderr = os.dup(2)  # pytest captures the other.
        self.errors: list[dict[str, str]] = []
        self.report: dict[str, Any] = {}
        self.failed: set[str] = set()
        """Cases that failed by themselves."""
        self.ended: set[str] = set()
        self.running = ""
        """Where the case is written that is run."""
        self.limits: pytest_timeout.Settings | None = None

    def note(self, node: pytest.Item | pytest.Collector | None, when: str, error: BaseException) -> None:
        """Keep an error of a node, or of the session."""
        error = cause_of(error)
        id = node.nodeid if node and node.nodeid != "." else ""
        place = where(error) or (place_of(node) if id and node else self.running)
        self.errors.append({"id": id, "when": when, "where": place, "what": what(error)})

    def end_after(self, seconds: float) -> None:
        """End the process, unless this is put off: for a call of C that no signal ends, a test that catches all."""
        if not self.debugging:
            faulthandler.dump_traceback_later(seconds + self.grace, exit=True, file=self.stderr)

    # Collection.

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        # For tests that let another user into their tmp_path.
        session.config._tmp_path_factory.getbasetemp().chmod(0o711)  # type: ignore[attr-defined]

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self) -> Generator[None, None, None]:
        # pytest was started elsewhere, so that it shows tests by their names below there.
        os.chdir(self.workdir)
        self.end_after(self.case_limit)
        try:
            return (yield)
        except BaseException as error:
            self.note(None, "collect", error)
            raise

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.end_after(self.case_limit)  # Anew for each module.
        if report.skipped:
            assert isinstance(report.longrepr, tuple)
            path, line, reason = report.longrepr
            place = f"{os.path.relpath(path, TESTS)}:{line}"
            self.errors.append({"id": report.nodeid, "when": "skip", "where": place, "what": reason})

    def pytest_collection_finish(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        self.modules.complete = True

    # The tests.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.running = f"{location[0]}:{(location[1] or 0) + 1}"
        RUNNING.write_text(json.dumps({"id": nodeid, "where": self.running}))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.ended.add(nodeid)
        self.limits = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: pytest_timeout.Settings) -> object:
        self.limits = settings._replace(timeout=settings.timeout * self.timeout_multiplier)
        return self.limit(item)

    def limit(self, item: pytest.Item) -> object:
        """Start to count an item's time."""
        assert self.limits is not None
        self.end_after(self.limits.timeout)
        return pytest_timeout.pytest_timeout_set_timer(item, self.limits)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if self.limits is not None and not self.limits.func_only:
            self.limit(item)  # Anew: a failure stops the clock.

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_cancel_timer(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: Any
    ) -> None:
        if call.excinfo is not None:
            timed_out = any(entry.name == "timeout_sigalrm" for entry in call.excinfo.traceback)
            if call.when == "call" and not timed_out:
                self.failed.add(node.nodeid)
            elif node.nodeid not in self.failed:  # Then the end of its fixtures may well fail, too.
                self.note(node, "timeout" if timed_out else call.when, call.excinfo.value)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.note(None, "stop", excinfo.value)

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.note(None, "stop", excinfo.value)

    # The report.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.sections = [(name, shortened(text)) for name, text in report.sections]
        item._report_sections[:] = [(when, name, shortened(text)) for when, name, text in item._report_sections]
        return report

    def pytest_json_runtest_stage(self, report: pytest.TestReport) -> dict[str, Any]:
        return {"crash": {"message": shortened(reason_of(report))}}

    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        self.report = json_report

    def told(self, selection: Selection, status: int) -> dict[str, Any]:
        """All that the host is to know of a session that has ended with pytest's exit code ``status``."""
        left = [item for item in selection.wanted if item.nodeid not in self.ended and not self.until_failure]
        if (left or status not in ENDED) and not any(error["id"] == "" for error in self.errors):
            what = f"the session ended with exit code {status}" + (f" before {left[0].nodeid}" if left else "")
            self.errors.append({"id": "", "when": "stop", "where": place_of(left[0]) if left else "", "what": what})
        tests = [test for test in self.report.get("tests", []) if test["nodeid"] in self.ended]
        for test in tests:
            test.pop("user_properties", None)  # As long as the test likes; what counts of them is in the metadata.
        return {"tests": tests, "evocode": {"problems": selection.problems, "errors": self.errors}}


def reason_of(report: pytest.TestReport) -> str:
    """Why a test failed or was skipped, in a few words; empty where it passed."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message) if crash is not None else report.longreprtext


def cause_of(error: BaseException) -> BaseException:
    """What an import failed of, without pytest's words for it."""
    while type(error).__module__.startswith("_pytest.") and error.__cause__ is not None:
        error = error.__cause__
    return error


def what(error: BaseException) -> str:
    """An exception in one line; in pytest's own words where it is one of pytest's."""
    if isinstance(error, pytest.FixtureLookupError):
        return f"there is no fixture {error.argname!r}"
    if isinstance(error, pytest.Collector.CollectError):
        return shortened(str(error).strip())
    first = (str(error).strip().splitlines() or [""])[0]
    return shortened(f"{type(error).__name__}: {first}" if first else type(error).__name__)


def where(error: BaseException) -> str:
    """The innermost line of the tests that an exception went through."""
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


def take_plan() -> dict[str, Any]:
    """Read the plan and remove it: it has the key that the report is sealed with."""
    plan: dict[str, Any] = json.loads(PLAN.read_text())
    PLAN.unlink()
    try:
        import ctypes
    except ImportError:  # A Python without it; what is here to protect is then one more thing that root can read.
        return plan
    # PR_SET_DUMPABLE: what the suite starts may not look into its memory, which from here on has the key.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    return plan


def close_tests() -> None:
    """Where the suite's user may do so, keep others, that a test starts programs as, from its tests and its report."""
    for place in (*Path(TESTS).iterdir(), Path(TESTS), REPORT.parent):
        if not place.is_symlink() and place.stat().st_uid == os.getuid():
            # They may pass through to a tmp_path, where a test lets them.
            place.chmod(0o711 if place in (Path(TESTS), Path(OWN)) else 0o700)


def states() -> dict[str, tuple[int, ...]]:
    """What changes when somebody writes one of the tests' files, whatever time it is given; by relative path."""
    found: dict[str, tuple[int, ...]] = {}
    for directory, directories, files in os.walk(TESTS):
        directories[:] = (name for name in directories if os.path.join(directory, name) != OWN)
        for name in files:
            path = os.path.join(directory, name)
            state = os.lstat(path)
            found[os.path.relpath(path, TESTS)] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return found


def arguments(plan: dict[str, Any]) -> list[str]:
    options = {
        "python_files": "test_*.py",
        "norecursedirs": Path(OWN).name,
        "strict_parametrization_ids": "true",
        "xfail_strict": "true",
        "verbosity_subtests": "0",
        "markers": "requirement(id, kind, retired): what the test requires",
    }
    omitted = ("collectors", "log", "traceback", "streams", "warnings", "keywords")
    return [
        TESTS,
        f"--rootdir={TESTS}",
        f"--confcutdir={TESTS}",
        f"--config-file={os.devnull}",
        f"--basetemp={OWN}/tmp",
        "--import-mode=importlib",
        "--disable-plugin-autoload",
        "--continue-on-collection-errors",
        "-pno:cacheprovider",
        *(f"--override-ini={name}={value}" for name, value in options.items()),
        f"--timeout={plan['case_timeout']}",
        "--timeout-method=signal",
        "--json-report",
        "--json-report-file=none",
        "--json-report-verbosity=0",
        f"--json-report-omit={','.join(omitted)}",
        *(["--exitfirst"] if plan["until_failure"] else []),
        "--verbose",
        "--no-header",  # It asks for the versions of what is installed, and what runs here is not.
        "--tb=short",
        "--color=no",
    ]


def main() -> NoReturn:
    """Run the suite, write its report and end the process, whatever else still runs in it."""
    plan = take_plan()
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]
    close_tests()
    before = states()
    modules = Memory(dict(tests_in(TESTS, plan["all_rounds"])))
    sys.meta_path.insert(0, modules)
    _pytest.pathlib.resolve_pkg_root_and_module_name = lambda path, **_: (Path(TESTS), module_name(str(path)))
    _pytest.assertion.rewrite.AssertionRewritingHook._find_spec = modules.find_source  # type: ignore[assignment]
    selection = Selection(plan)
    monitor = SessionMonitor(plan, os.getcwd(), modules)
    os.chdir(TESTS)
    print(f"Python {sys.version.split()[0]} ({sys.executable}), pytest {pytest.__version__}", flush=True)
    plugins = [pytest_jsonreport.plugin, pytest_timeout, selection, monitor]
    try:
        status = int(pytest.main([*arguments(plan), *sys.argv[1:]], plugins=plugins))
    except BaseException as error:  # Of a hook that runs when the session is over.
        traceback.print_exc()
        monitor.note(None, "stop", error)
        status = int(pytest.ExitCode.INTERNAL_ERROR)
    if not monitor.debugging:
        report(plan, monitor.told(selection, status), before)
    try:
        sys.stdout.flush()
    finally:
        os._exit(status)


def report(plan: dict[str, Any], told: dict[str, Any], before: dict[str, tuple[int, ...]]) -> None:
    """Write the sealed report; ``before`` are the tests' files as they were at first."""
    after = states()
    if changed := sorted(path for path in before if after.get(path) != before[path]):
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        what = f"it was changed while the suite ran{more}; tests copy what they change to tmp_path"
        told["evocode"]["errors"].append({"id": "", "when": "changed", "where": changed[0], "what": what})
        told["tests"] = []  # Who knows what they compared with.
    contents = json.dumps(told).encode()
    REPORT.unlink(missing_ok=True)
    REPORT.write_bytes(contents)
    SEAL.write_text(hmac.new(plan["key"].encode(), contents, hashlib.sha256).hexdigest())
