"""The pytest session of a native suite, apart from the program under test or in its environment.

It is written for the Python 3.10 that an image may have, and imports nothing of the package but its siblings.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
import pytest_jsonreport.plugin
import pytest_timeout

from pytest_evocode.verifier.in_container.comparisons import explain
from pytest_evocode.verifier.in_container.door_client import DOOR, DoorClient
from pytest_evocode.verifier.in_container.memory import OWN, TESTS, Memory, tests_in
from pytest_evocode.verifier.in_container.monitor import SessionMonitor
from pytest_evocode.verifier.in_container.protocol import Plan
from pytest_evocode.verifier.in_container.pytest_private import explain_comparisons, import_tests_from
from pytest_evocode.verifier.in_container.sealed_files import SealedFiles
from pytest_evocode.verifier.in_container.selection import Selection
from pytest_evocode.verifier.in_container.workspace import WorkspaceFixtures


@dataclass(frozen=True)
class VerifiedRound:
    """The round whose suite runs; tests of earlier rounds run in it as well."""

    name: str
    """As in task.toml."""
    index: int
    """Its place in the order of rounds, from 1."""


class RoundFixture:
    """A plugin of every native suite."""

    def __init__(self, plan: Plan) -> None:
        self._round = VerifiedRound(plan["rounds"][-1], len(plan["rounds"]))

    @pytest.fixture(scope="session")
    def evocode_round(self) -> VerifiedRound:
        """Return the name and the index of the round that is verified."""
        return self._round


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


def keep_variables(declared: list[str] | None) -> None:
    """Remove the environment variables that a suite is not given, and all that are for another pytest.

    In a session beside the program under test, which has no list of what is ``declared``, all others stay: programs
    that the tests start need those of the image.
    """
    for name in list(os.environ):
        is_given = declared is None or name in declared or name in OF_EVERY_SYSTEM or name.startswith("LC_")
        if not is_given or name.startswith("PYTEST_"):
            del os.environ[name]


def main() -> NoReturn:
    """Run the suite, tell its report and end the process, whatever else still runs in it."""
    given = sys.argv[1:]
    door = next((argument for argument in given if argument.startswith(DOOR)), None)
    host = SealedFiles() if door is None else DoorClient.open(door)
    plan = host.plan()
    keep_variables(plan["variables"])
    modules = Memory(dict(tests_in(TESTS, plan["all_rounds"])))
    sys.meta_path.insert(0, modules)
    import_tests_from(modules)
    explain_comparisons(explain)
    selection = Selection(plan)
    monitor = SessionMonitor(plan, os.getcwd(), modules, host.begin_case)
    os.chdir(TESTS)
    print(f"Python {sys.version.split()[0]} ({sys.executable}), pytest {pytest.__version__}", flush=True)
    plugins = [pytest_jsonreport.plugin, pytest_timeout, selection, monitor, RoundFixture(plan)]
    if isinstance(host, DoorClient):
        plugins.append(WorkspaceFixtures(host, plan, monitor))
    try:
        others = [argument for argument in given if argument != door]
        status = int(pytest.main([*arguments(plan), *others], plugins=plugins))
    except BaseException as error:  # Of a hook that runs when the session is over.
        traceback.print_exc()
        monitor.note(None, "stop", error)
        status = int(pytest.ExitCode.INTERNAL_ERROR)
    host.finish(monitor.report_of(selection, status))
    try:
        sys.stdout.flush()
    finally:
        os._exit(status)
