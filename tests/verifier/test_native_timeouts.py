"""What hangs ends: each case at its own limit, all else with the suite; and it is said where."""

from __future__ import annotations

import pytest

from pytest_evocode.results.records import Verdict
from pytest_evocode.verifier import SuiteRun
from tests.verifier.conftest import RunNative

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

TEST_A = "steps/round-1/tests/test_a.py"
CATCHES_ALL = """
import time

def test_x():
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
"""
IN_C = """
import collections
import itertools

def test_x():
    collections.deque(itertools.repeat(0), maxlen=0)
"""
PINNED = {"round-1/test_a.py::test_x": "x", "round-1/test_a.py::test_y": ""}


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases have half a second, and as much again to end by themselves."""
    monkeypatch.setattr("pytest_evocode.verifier.suite.CASE_TIMEOUT", 0.5)
    monkeypatch.setattr("pytest_evocode.verifier.suite.GRACE", 0.5)


def verdict(run: SuiteRun) -> Verdict:
    assert run.verdict is not None, run.fault
    return run.verdict


@pytest.mark.usefixtures("_short")
@pytest.mark.nightly
def test_cases_that_hang_end_and_the_others_run(native: RunNative, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.verifier.suite.GRACE", 60.0)  # All of them end by themselves.
    test = """
import subprocess
import time

import pytest

@pytest.fixture
def at_its_start():
    time.sleep(600)

@pytest.fixture
def at_its_end():
    yield
    time.sleep(600)

def test_sleeps():
    time.sleep(600)

def test_waits():
    subprocess.run(["sleep", "600"])

def test_catches_exceptions():
    while True:
        try:
            time.sleep(600)
        except Exception:
            pass

def test_fixture(at_its_start):
    pass

def test_end_of_a_fixture(at_its_end):
    pass

@pytest.mark.timeout(0.2)
def test_marked():
    time.sleep(600)

@pytest.mark.timeout(30)
def test_has_more_time():
    time.sleep(0.7)

def test_other():
    pass
"""
    run = native({"round-1/test_a.py": test})
    assert run.verdict is None
    *lines, _ = run.fault.splitlines()
    places = [line.partition(f"{TEST_A}:")[2].partition(": Failed: ")[0] for line in lines]
    assert places == [f"{line}: the case hangs" for line in (17, 20, 25, 9, 14, 37)]
    assert [line.rpartition(": ")[2] for line in lines][-1] == "Timeout (>0.2s) from pytest-timeout."
    assert run.output.count("PASSED") == 3  # The one whose fixture hangs at its end as well.


@pytest.mark.usefixtures("_short")
def test_with_pins_a_case_that_hangs_has_failed_and_the_others_count(native: RunNative) -> None:
    test = "import time\n\ndef test_x():\n    time.sleep(600)\n\ndef test_y():\n    pass\n"
    run = native({"round-1/test_a.py": test}, pinned=PINNED)
    found = verdict(run)
    assert [(case.id, case.status) for case in found.cases] == list(zip(PINNED, ["failed", "passed"], strict=True))
    assert found.pinned == (1, 2)
    assert not found.timed_out
    assert run.hang.startswith("round-1/test_a.py::test_x /"), "with the oracle this is what is said of the round"
    assert run.hang.endswith(f"/{TEST_A}:4: the case hangs: Failed: Timeout (>0.5s) from pytest-timeout.")


@pytest.mark.usefixtures("_short")
@pytest.mark.nightly
def test_a_failure_does_not_stop_the_clock_of_what_follows(native: RunNative) -> None:
    test = """
import time

import pytest

@pytest.fixture
def f():
    yield
    time.sleep(600)

def test_x(f):
    assert 0

def test_y():
    pass
"""
    run = native({"round-1/test_a.py": test}, timeout=300.0)
    assert [case.failing for case in verdict(run).cases] == [True, False]
    assert run.hang == "", "a case failed by itself"


def test_a_slower_machine_gives_cases_more_time(native: RunNative) -> None:
    test = "import time\nimport pytest\n\n@pytest.mark.timeout(0.01)\ndef test_x():\n    time.sleep(0.1)\n"
    assert verdict(native({"round-1/test_a.py": test}, timeout_multiplier=1000.0)).passed


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(
    ("test", "line"),
    [
        pytest.param(CATCHES_ALL, "7", id="catches all"),
        pytest.param(IN_C, "6", id="in C"),
        pytest.param("import time\ntime.sleep(600)\n\ndef test_x():\n    pass\n", "2", id="import"),
    ],
)
@pytest.mark.matrix
def test_what_no_exception_ends_ends_the_suite_and_names_its_line(native: RunNative, test: str, line: str) -> None:
    run = native({"round-1/test_a.py": test, "round-1/test_b.py": "def test_y():\n    pass\n"}, timeout=300.0)
    assert run.verdict is None
    assert f"{TEST_A}:{line}: the suite hangs" in run.fault
    assert f"{TEST_A}:{line}: the suite hangs" in run.hang


def test_a_suite_that_hangs_in_a_thread_ends_with_its_last_test(native: RunNative) -> None:
    test = "import threading, time\n\ndef test_x():\n    threading.Thread(target=time.sleep, args=(600,)).start()\n"
    assert verdict(native({"round-1/test_a.py": test}, timeout=300.0)).passed


@pytest.mark.parametrize("pinned", [None, PINNED])
@pytest.mark.matrix
def test_at_the_suites_limit_it_is_said_which_case_was_running(
    native: RunNative, pinned: dict[str, str] | None
) -> None:
    test = """
import time
import pytest

@pytest.mark.timeout(0)
def test_x():
    time.sleep(600)

def test_y():
    pass
"""
    run = native({"round-1/test_a.py": test}, timeout=1.5, pinned=pinned)
    said = f"{TEST_A}:5: the suite was stopped at its limit of 1.5 s in round-1/test_a.py::test_x; its last lines:"
    assert said in run.hang
    if pinned is None:
        assert run.verdict is None
        assert said in run.fault
    else:
        found = verdict(run)
        assert found.timed_out
        assert not found.passed
        assert [case.id for case in found.cases] == list(PINNED)
        assert all(said in case.reason for case in found.cases)


@pytest.mark.nightly
def test_no_case_has_more_than_half_of_the_suites_time(native: RunNative) -> None:
    test = "import time\n\ndef test_x():\n    time.sleep(600)\n"
    # Half of it is enough to start Python and pytest on a busy machine, too.
    run = native({"round-1/test_a.py": test}, timeout=20.0)
    assert "Timeout (>10.0s)" in run.fault
