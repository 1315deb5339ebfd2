"""Outcomes of test runs and whose fault a failure is, from what programs print."""

from __future__ import annotations

import pytest

from pytest_evocode.process.trajectory.failure_causes import crashed, failure_cause
from pytest_evocode.process.trajectory.runner_output import read_runner_output


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        ("============ 3 passed in 0.12s ============", True),
        ("1 failed, 2 passed, 1 skipped in 0.12s", False),
        ("=== 2 passed, 1 error in 1.00s ===", False),
        ("=== 1 error in 1.00s ===", False),
        ("no tests ran in 0.01s", None),
        ("\x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.12s\x1b[0m", True),
        ("Ran 3 tests in 0.001s\n\nOK", True),
        ("Ran 3 tests in 0.001s\n\nFAILED (failures=1, errors=1)", False),
        ("ok  \texample.com/a\t0.004s", True),
        ("--- FAIL: TestAdd (0.00s)\nFAIL\nFAIL\texample.com/a\t0.004s", False),
        ("test result: ok. 3 passed; 0 failed; 0 ignored\n\ntest result: ok. 0 passed; 0 failed; 0 ignored", True),
        ("test result: FAILED. 3 passed; 1 failed; 0 ignored", False),
        ("Tests:       1 failed, 4 passed, 5 total", False),
        ("Tests:       5 passed, 5 total", True),
        ("      Tests  3 passed (3)", True),
        ("  3 passing (5ms)\n  1 failing\n", False),
        ("# pass 3\n# fail 0\n", True),
        ("ok 1 - adds\nnot ok 2 - subtracts\n", False),
        ("nothing of the kind", None),
    ],
)
def test_the_outcome_of_a_test_run(output: str, passed: bool | None) -> None:
    assert read_runner_output(output).passed is passed


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


@pytest.mark.parametrize(
    ("output", "exit_code", "expected"),
    [
        ("bash: line 1: pytset: command not found", 127, "shell typo"),
        ("bash: line 1: pytest: command not found", 127, "environment"),
        ("sh: 1: node: not found", 127, "environment"),
        ("/usr/bin/python: No module named pytest", 1, "environment"),
        ("bash: -c: line 1: syntax error near unexpected token `('", 2, "shell typo"),
        ("ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --foo", 4, "shell typo"),
        ("ERROR: file or directory not found: tests/no.py", 4, "shell typo"),
        ("python: can't open file '/app/no.py': [Errno 2] No such file or directory", 2, "shell typo"),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", 128, "environment"),
        ("ModuleNotFoundError: No module named 'requests'", 1, "environment"),
        ("ModuleNotFoundError: No module named 'ledger.prices'", 1, "product"),
        ("OSError: [Errno 28] No space left on device", 1, "environment"),
        ("main.c:3:5: error: expected ';' before 'return'", 1, "product"),
        ('  File "/app/ledger.py", line 3\nSyntaxError: invalid syntax', 1, "product"),
    ],
)
def test_whose_fault_a_failed_command_is(output: str, exit_code: int, expected: str) -> None:
    found = failure_cause(output, exit_code=exit_code, has_run=False, is_ours=lambda module: module == "ledger")
    assert found == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("E   assert 1 == 2\nFAILED a.py::test_x", "product"),
        # What a test's program prints is not what the shell has to say.
        ("E   assert 'unrecognized arguments' in out\nFAILED a.py::test_x", "product"),
        ("E       fixture 'ledgr' not found", "test"),
        ("___ ERROR collecting tests/test_a.py ___\nE   SyntaxError: invalid syntax", "test"),
        ("___ ERROR collecting tests/test_a.py ___\nE   ModuleNotFoundError: No module named 'yaml'", "environment"),
    ],
)
def test_whose_fault_a_failed_test_is(output: str, expected: str) -> None:
    assert failure_cause(output, exit_code=1, has_run=True, is_ours=lambda module: False) == expected


@pytest.mark.parametrize(
    ("output", "exit_code", "expected"),
    [
        ("Traceback (most recent call last):\n  File", 1, True),
        ("error: there is no account 'x'", 1, False),
        ("thread 'main' panicked at src/main.rs:3", 101, True),
        ("", 139, True),
        ("", 143, False),
    ],
)
def test_a_program_that_refuses_has_not_crashed(output: str, exit_code: int, expected: bool) -> None:
    assert crashed(output, exit_code) is expected


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("pytest", "pytest: error: unrecognized arguments: --cov=a\n  inifile: /app/pyproject.toml\n", "environment"),
        ("pytest --cof=a", "pytest: error: unrecognized arguments: --cof=a\n  inifile: /app/tox.ini\n", "shell typo"),
        (
            "go build ./...",
            'a.go:3:8: Get "https://x.example": dial tcp: lookup x.example: no such host',
            "environment",
        ),
        ("go test ./wlak/...", "pattern ./wlak/...: lstat ./wlak/: no such file or directory", "shell typo"),
        ("make -C srcc test", "make: *** srcc: No such file or directory.  Stop.", "shell typo"),
        ("go build ./...", "a.go:3:8: undefined: parse", "product"),
    ],
)
def test_whose_fault_it_is_that_nothing_was_run(command: str, output: str, expected: str) -> None:
    cause = failure_cause(output, exit_code=1, has_run=False, is_ours=lambda module: False, command=command)
    assert cause == expected
