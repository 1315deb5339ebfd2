"""The pytest session of a native suite, apart from the program under test or in its environment.

It is written for the Python 3.10 that an image may have, and imports nothing of the package but its siblings.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
import pytest_jsonreport.plugin
import pytest_timeout

from pytest_evocode.verifier.in_container import workspace
from pytest_evocode.verifier.in_container.comparisons import explain
from pytest_evocode.verifier.in_container.door_client import DOOR, DoorClient
from pytest_evocode.verifier.in_container.memory import OWN, TESTS, Memory, tests_in
from pytest_evocode.verifier.in_container.monitor import SessionMonitor
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteReport
from pytest_evocode.verifier.in_container.pytest_private import explain_comparisons, import_tests_from
from pytest_evocode.verifier.in_container.selection import Selection


@dataclass(frozen=True)
class VerifiedRound:
    """The round whose suite runs; tests of earlier rounds run in it as well."""

    name: str
    """As in task.toml."""
    index: int
    """Its place in the order of rounds, from 1."""


_ROUND = pytest.StashKey[VerifiedRound]()


@pytest.fixture(scope="session")
def evocode_round(request: pytest.FixtureRequest) -> VerifiedRound:
    """Return the name and the index of the round that is verified."""
    return request.config.stash[_ROUND]


class RoundSetup:
    """A plugin of every native suite."""

    def __init__(self, plan: Plan) -> None:
        self._round = VerifiedRound(plan["rounds"][-1], len(plan["rounds"]))

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep the round for its fixture."""
        config.stash[_ROUND] = self._round


LOGS = Path("/logs/verifier")
_CACHE = "__pycache__"


class GuardedTests:
    """The tests' files where the program under test runs beside the session."""

    def __init__(self) -> None:
        """Close them to other users, and note what they are like."""
        close_tests()
        make_cache_directories()
        self._before = file_states()

    def note_changes(self, report: SuiteReport) -> None:
        """Note in a report which of them were changed meanwhile; then no test counts."""
        after = file_states()
        changed = [path for path in self._before if after.get(path) != self._before[path]]
        # What is above a changed file has changed, too: the file is what the author looks for.
        changed = sorted(path for path in changed if not any(other.startswith(f"{path}/") for other in changed))
        changed = [path for path in changed if path != "."] or changed
        if changed:
            more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
            what = f"it was changed while the suite ran{more}; tests copy what they change to tmp_path"
            report["evocode"]["errors"].append({"id": "", "when": "changed", "where": changed[0], "what": what})
            report["tests"] = []  # They may have compared with what somebody else had written.


def hide_process() -> None:
    """Let no other process of this user look into this one, into its memory or at its end of the door."""
    try:
        import ctypes
    except ImportError:  # A Python without it: there programs of the same user can do so, see DESIGN.md.
        return
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def close_tests() -> None:
    """Close the tests and the report to other users, as far as the suite's own user may do so.

    Tests may start the program under test as such a user.
    """
    for place in (*Path(TESTS).iterdir(), Path(TESTS), LOGS):
        if not place.is_symlink() and place.stat().st_uid == os.getuid():
            # They may pass through to a tmp_path, where a test lets them.
            place.chmod(0o711 if place in (Path(TESTS), Path(OWN)) else 0o700)


def make_cache_directories() -> None:
    """Make Python's directories for caches, or a process that imports a helper of the tests would change theirs."""
    for directory, directories, _ in os.walk(TESTS):
        directories[:] = (name for name in directories if os.path.join(directory, name) != OWN and name != _CACHE)
        with contextlib.suppress(OSError):  # The suite's user may have no right to, and then its processes have none.
            os.mkdir(os.path.join(directory, _CACHE))


def file_states() -> dict[str, tuple[int, ...]]:
    """Return for each of the tests' files and directories, by relative path, what changes when somebody writes there.

    The time of the last change of status is among it, which no program can set back. Of a directory it tells that it
    was renamed, too: other files may have been in its place for a while.
    """
    found: dict[str, tuple[int, ...]] = {}
    for directory, directories, files in os.walk(TESTS):
        directories[:] = (name for name in directories if os.path.join(directory, name) != OWN and name != _CACHE)
        for path in (directory, *(os.path.join(directory, name) for name in files)):
            state = os.lstat(path)
            found[os.path.relpath(path, TESTS)] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return found


OF_EVERY_SYSTEM = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "HOSTNAME"}
    | {"LD_LIBRARY_PATH"}  # Without it the Python of some images cannot be started a second time.
)


def arguments(plan: Plan) -> list[str]:
    """Return the arguments that pytest is called with."""
    options = {
        "python_files": "test_*.py",
        "norecursedirs": Path(OWN).name,
        "strict_parametrization_ids": "true",
        "xfail_strict": "true",
        "verbosity_subtests": "0",
        "truncation_limit_lines": "0",  # Diffs are printed whole; those that would be too long are bounded by us.
        "truncation_limit_chars": "0",
        "markers": "requirement(id, kind, retired): what is required\nworkspace(user, env, cwd, timeout): its defaults",
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


def keep_variables(plan: Plan) -> None:
    """Remove the environment variables that a suite is not given, and all that are for another pytest.

    In a session beside the program under test all others stay: programs that the tests start need those of the image.
    """
    for name in list(os.environ):
        is_given = not plan["apart"] or name in plan["variables"] or name in OF_EVERY_SYSTEM or name.startswith("LC_")
        if not is_given or name.startswith("PYTEST_"):
            del os.environ[name]


def main() -> NoReturn:
    """Run the suite, tell its report and end the process, whatever else still runs in it."""
    [argument] = (given for given in sys.argv[1:] if given.startswith(DOOR))
    others = [given for given in sys.argv[1:] if given != argument]
    door = DoorClient.open(argument)
    plan = door.plan()
    guarded = None
    if not plan["apart"]:
        hide_process()
        guarded = GuardedTests()
    keep_variables(plan)
    modules = Memory(dict(tests_in(TESTS, plan["all_rounds"])))
    sys.meta_path.insert(0, modules)
    import_tests_from(modules)
    explain_comparisons(explain)
    selection = Selection(plan)
    monitor = SessionMonitor(plan, os.getcwd(), modules, door.begin_case)
    os.chdir(TESTS)
    print(f"Python {sys.version.split()[0]} ({sys.executable}), pytest {pytest.__version__}", flush=True)
    plugins = [pytest_jsonreport.plugin, pytest_timeout, selection, monitor, RoundSetup(plan), sys.modules[__name__]]
    if plan["apart"]:
        plugins += [workspace, workspace.WorkspaceReports(door, plan, monitor.remaining)]
    try:
        status = int(pytest.main([*arguments(plan), *others], plugins=plugins))
    except BaseException as error:  # Of a hook that runs when the session is over.
        traceback.print_exc()
        monitor.note(None, "stop", error)
        status = int(pytest.ExitCode.INTERNAL_ERROR)
    report = monitor.report_of(selection, status)
    if guarded is not None:
        guarded.note_changes(report)
    door.finish(report)
    try:
        sys.stdout.flush()
    finally:
        os._exit(status)
