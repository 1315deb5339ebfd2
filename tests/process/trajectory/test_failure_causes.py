"""Outcomes of test runs and whose fault a failure is, from what programs print."""

from __future__ import annotations

import pytest

from pytest_evocode.process.trajectory.failure_causes import crashed, failure_cause
from pytest_evocode.process.trajectory.outputs import read_runner_output


@pytest.mark.parametrize(
    ("output", "tests"),
    [
        (
            "a.py::test_x PASSED [ 50%]\na.py::test_y[1-2] FAILED [100%]",
            {"a.py::test_x": True, "a.py::test_y[1-2]": False},
        ),
        ("FAILED a.py::test_y - assert 1\nERROR b.py - SyntaxError", {"a.py::test_y": False, "b.py": False}),
        (
            "test_x (m.C.test_x) ... ok\ntest_y (m.C.test_y) ... FAIL",
            {"test_x (m.C.test_x)": True, "test_y (m.C.test_y)": False},
        ),
        ("--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)", {"TestA": True, "TestA/b": False}),
        ("test a::b ... ok\ntest a::c ... FAILED", {"a::b": True, "a::c": False}),
        ("  \u2713 adds (3 ms)\n  \u2715 subtracts", {"adds": True, "subtracts": False}),
    ],
)
def test_the_tests_that_an_output_names(output: str, tests: dict[str, bool]) -> None:
    assert read_runner_output(output).tests == tests


_SETUP = "___ ERROR at setup of test_a ___\ntests/conftest.py:9:\n"
_ELSEWHERE = "/usr/lib/python3.12/json/decoder.py:355: in raw_decode\n"


@pytest.mark.parametrize(
    "beside",
    [
        "tests/test_a.py:9: PytestCollectionWarning: cannot collect test class 'TestData'\n",
        "---- Captured stdout call ----\nThe docker daemon is not installed\n",
        "No fixture named rooms\n",
        "E     AssertionError: assert 'redis is not installed' == 'redis: missing'\n",
    ],
)
def test_an_assertion_that_fails_is_the_products_whatever_else_is_printed(beside: str) -> None:
    output = f">   assert total() == 2\nE   assert 1 == 2\ntests/test_a.py:5: AssertionError\n{beside}"
    cause = failure_cause(output, exit_code=1, has_run=True, is_ours=lambda module: module == "app")
    assert cause == "product"


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("---- Captured stdout call ----\nNo space left on device\n==== 1 failed in 0.1s ====", "product"),
        ("tests/test_a.py:9: PytestCollectionWarning: cannot collect test class 'TestData'", "product"),
        ("E   pytest.PytestUnknownMarkWarning: Unknown pytest.mark.slow", "test"),
    ],
)
def test_what_a_test_prints_and_warnings_explain_no_error(says: str, expected: str) -> None:
    output = f"app/a.py:5: in total\n    return rows[7]\nE   IndexError: list index out of range\n{says}\n"
    assert failure_cause(output, exit_code=1, has_run=True, is_ours=lambda module: module == "app") == expected


@pytest.mark.parametrize(
    "shown",
    [
        "    a_test.go:12: Sum() = 1, want 2",
        "assertion `left == right` failed\n  left: 1\n right: 2",
        "expect(received).toBe(expected)\n\nExpected: 3\nReceived: 2",
        "AssertionError: 1 != 2",
    ],
)
def test_what_a_test_has_compared_is_the_products_in_any_language(shown: str) -> None:
    output = f"No fixture named rooms\nThe docker daemon is not installed\n{shown}\n"
    assert failure_cause(output, exit_code=1, has_run=True, is_ours=lambda module: False) == "product"


def test_an_obsolete_snapshot_fails_no_test() -> None:
    output = "Expected: 3\nReceived: 2\n\n  at Object.<anonymous> (src/a.test.js:4:20)\n\n > 1 snapshot obsolete.\n"
    assert failure_cause(output, exit_code=1, has_run=True, is_ours=lambda module: False) == "product"


@pytest.mark.parametrize(
    "output", ["Date: 2024-01-01\nThe account is overdrawn.", "Sort: by name", "date: 2024-01-01", "Error: nearly full"]
)
def test_a_report_with_the_name_of_a_tool_is_no_crash(output: str) -> None:
    assert not crashed(output, 1)
    assert crashed("date: invalid date 'x'", 1)


@pytest.mark.parametrize(
    "output",
    [
        "SystemCheckError: System check identified some issues:\n\nERRORS:\na.B.c: (fields.E304) Reverse accessor",
        "** (Postgrex.Error) ERROR 42703 (undefined_column) column does not exist\n",
        "bin/rails aborted!\nStandardError: An error has occurred\n",
        "ERROR:    [Errno 13] error while attempting to bind on address ('127.0.0.1', 80)\n",
        '  File "/app/a/urls.py", line 7, in <module>\nAttributeError: x\n',
    ],
)
def test_what_frameworks_say_in_place_of_a_traceback(output: str) -> None:
    assert crashed(f"{output}more\n", 1)
