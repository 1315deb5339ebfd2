"""The pytest session of a native suite, in the environment.

It is written for the Python 3.10 that an image may have, and imports nothing of the package but its siblings.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import pytest
import pytest_jsonreport.plugin
import pytest_timeout

from pytest_evocode.verifier.in_container.memory import OWN, TESTS, Memory, tests_in
from pytest_evocode.verifier.in_container.monitor import SessionMonitor
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteReport
from pytest_evocode.verifier.in_container.pytest_private import import_tests_from
from pytest_evocode.verifier.in_container.selection import Selection

PLAN = Path(OWN, "plan.json")
REPORT = Path("/logs/verifier/report.json")
SEAL = Path("/logs/verifier/report.seal")


def take_plan() -> Plan:
    """Read the plan and remove its file, which has the key that the report is sealed with."""
    plan: Plan = json.loads(PLAN.read_text())
    PLAN.unlink()
    try:
        import ctypes
    except ImportError:  # A Python without it: there programs of the same user can read the key, see DESIGN.md.
        return plan
    # PR_SET_DUMPABLE: what the suite starts may not look into its memory, which from here on has the key.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    return plan


def close_tests() -> None:
    """Close the tests and the report to other users, as far as the suite's own user may do so.

    Tests may start the program under test as such a user.
    """
    for place in (*Path(TESTS).iterdir(), Path(TESTS), REPORT.parent):
        if not place.is_symlink() and place.stat().st_uid == os.getuid():
            # They may pass through to a tmp_path, where a test lets them.
            place.chmod(0o711 if place in (Path(TESTS), Path(OWN)) else 0o700)


def file_states() -> dict[str, tuple[int, ...]]:
    """Return for each of the tests' files, by relative path, what changes when somebody writes it.

    The time of the last change of status is among it, which no program can set back.
    """
    found: dict[str, tuple[int, ...]] = {}
    for directory, directories, files in os.walk(TESTS):
        directories[:] = (name for name in directories if os.path.join(directory, name) != OWN)
        for name in files:
            path = os.path.join(directory, name)
            state = os.lstat(path)
            found[os.path.relpath(path, TESTS)] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return found


def arguments(plan: Plan) -> list[str]:
    """Return the arguments that pytest is called with."""
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
    before = file_states()
    modules = Memory(dict(tests_in(TESTS, plan["all_rounds"])))
    sys.meta_path.insert(0, modules)
    import_tests_from(modules)
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
    if (key := plan["key"]) is not None:
        write_report(key, monitor.report_of(selection, status), before)
    try:
        sys.stdout.flush()
    finally:
        os._exit(status)


def write_report(key: str, report: SuiteReport, before: dict[str, tuple[int, ...]]) -> None:
    """Write the sealed report; ``before`` are the tests' files as they were at first."""
    after = file_states()
    if changed := sorted(path for path in before if after.get(path) != before[path]):
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        what = f"it was changed while the suite ran{more}; tests copy what they change to tmp_path"
        report["evocode"]["errors"].append({"id": "", "when": "changed", "where": changed[0], "what": what})
        report["tests"] = []  # They may have compared with what somebody else had written.
    contents = json.dumps(report).encode()
    REPORT.unlink(missing_ok=True)
    REPORT.write_bytes(contents)
    SEAL.write_text(hmac.new(key.encode(), contents, hashlib.sha256).hexdigest())
