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
        (" Test Files  1 failed (1)\n      Tests  8 skipped (8)", False),
        ("  Tests:    1 failed, 2 passed (4 assertions)", False),
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


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        # A test that broke off before it came to the product.
        (
            "mocha",
            '"before each" hook for "drains":\n  Error: Timeout of 2000ms exceeded. (/app/test/q.test.js)',
            "test",
        ),
        ("mocha", '"before each" hook:\n  TypeError: x\n      at add (src/queue.js:9:16)', "product"),
        ("node --test", "file:///app/test/a.test.js:8\n\nSyntaxError: Unexpected end of input\n# fail 1", "test"),
        ("node --test", "file:///app/src/a.js:8\n\nSyntaxError: Unexpected end of input\n# fail 1", "product"),
        ("npx vitest run", "Error: Transform failed with 1 error:\n/app/test/a.test.ts:9:4: ERROR: Expected", "test"),
        # Lines that the shell cannot parse, and names that are not there.
        ("npm test && && x", '/bin/sh: 1: Syntax error: "&&" unexpected', "shell typo"),
        ("vendor/bin/phpunit tests/ATset.php", 'Cannot open file "tests/ATset.php".', "shell typo"),
        ("npx jest --foo", '\u25cf Unrecognized CLI Parameter:\n  Unrecognized option "foo".', "shell typo"),
        (
            "python -m unittest tests.test_crat",
            "ERROR: test_crat (unittest.loader._FailedTest)\nModuleNotFoundError: No module named 'tests.test_crat'",
            "shell typo",
        ),
        # An option that is not the command's stands in a script.
        ("npm test", "node: bad option: --experimental-strip-types", "environment"),
        # What is missing on the machine, in known words and in others.
        ("vendor/bin/phpunit", 'PHPUnit requires the "dom" extension, but it is not available.', "environment"),
        ("zap test", "zap: the frobnicator's mirror is of another architecture", "environment"),
        ("zap test", "zap: src/a.zap:3: the package is not well formed", "product"),
        # An error of the network that the product raises by itself.
        (
            "pytest",
            'app/a.py:12: in load\n    raise ConnectionError("x")\nE   ConnectionError: connection refused',
            "product",
        ),
        (
            "swift test",
            '/app/Tests/A/CartTests.swift:9: error: CartTests.testAdds : XCTAssertEqual failed: ("2")',
            "product",
        ),
    ],
)
def test_whose_fault_it_is_in_the_words_of_many_tools(command: str, output: str, expected: str) -> None:
    cause = failure_cause(output, exit_code=1, has_run=False, is_ours=lambda module: module == "app", command=command)
    assert cause == expected


_SETUP = "___ ERROR at setup of test_a ___\ntests/conftest.py:9:\n"
_ELSEWHERE = "/usr/lib/python3.12/json/decoder.py:355: in raw_decode\n"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        # A fixture that breaks off by itself, in the product, at a service, or for what the product has not yet.
        (f"{_SETUP}{_ELSEWHERE}E   KeyError: 'rows'\n1 error in 0.1s", "test"),
        (f"{_SETUP}app/load.py:3: in load\nE   KeyError: 'rows'\n1 error in 0.1s", "product"),
        (f"{_SETUP}E   OSError: connect: Connection refused\n1 error in 0.1s", "environment"),
        (f"{_SETUP}E   TypeError: Loader() got an unexpected keyword argument 'x'\n1 error in 0.1s", "product"),
        # A helper that a test calls, and one that asserts.
        ("tests/test_a.py:9: in test_a\ntests/fakes.py:4: in get\nE   KeyError: 'a'\n1 failed in 0.1s", "test"),
        ("tests/test_a.py:9: in test_a\ntests/fakes.py:4: in get\nE   AssertionError: 3\n1 failed in 0.1s", "product"),
        ("   at A.New() in /a/tests/B/Build.cs:line 4\n   at A.T() in /a/tests/B/T.cs:line 9\nFailed: 1", "test"),
        ("thread 'a' panicked at tests/common/mod.rs:12:45:\ncalled `Option::unwrap()` on `None`", "test"),
        ("thread 'a' panicked at tests/cart.rs:12:45:\ncalled `Option::unwrap()` on `None`", "product"),
        ("  (ecto 3.11.2) lib/ecto/a.ex:2: A.b/1\n  test/support/case.ex:14: C.d/1\n1 test, 1 failure", "test"),
        ("  (ecto 3.11.2) lib/ecto/a.ex:2: A.b/1\n  (a 0.1.0) lib/a.ex:14: A.d/1\n1 test, 1 failure", "product"),
        # What Ruby raises in the method that is called with too little.
        ("ArgumentError: wrong number of arguments (given 1, expected 2)\n  test/a_test.rb:31:in `build'", "test"),
        ("ArgumentError: wrong number of arguments (given 1, expected 2)\n  lib/a.rb:31:in `build'", "product"),
        # Functions that prepare tests, and what a library says to what they ask for.
        (
            'ERROR: test_a (a.T.test_a)\n  File "/app/a/tests.py", line 6, in setUp\n'
            '  File "/usr/lib/python3/dist-packages/django/db/models/query.py", line 9, in get\n'
            "a.models.Room.DoesNotExist: Room matching query does not exist.",
            "test",
        ),
        # Stand-ins of a test, and what it replaces.
        ("E   TypeError: FakeClock.__init__() missing 1 required positional argument: 'now'", "test"),
        ("TypeError: Cannot read properties of undefined (reading 'mockReturnValue')", "test"),
        ("TypeError: Cannot read properties of undefined (reading 'price')\n  at t (src/a.test.js:3:4)", "product"),
        (">  monkeypatch.setattr('app.a.b', 1)\nE   AttributeError: module 'app.a' has no attribute 'b'", "test"),
        # Type errors as test runners indent them.
        ("  \u25cf Test suite failed to run\n\n    src/a.test.ts:9:3 - error TS2304: Cannot find name 'x'.", "test"),
        ("  \u25cf Test suite failed to run\n\n    src/a.ts:9:3 - error TS2304: Cannot find name 'x'.", "product"),
        # A service that is not there, said by a test in Go; a server that the test starts has a higher port.
        ("--- FAIL: TestA\n    a_test.go:5: dial tcp 127.0.0.1:5432: connect: connection refused", "environment"),
        ("--- FAIL: TestA\n    a_test.go:5: dial tcp 127.0.0.1:45123: connect: connection refused", "product"),
    ],
)
def test_whose_fault_it_is_by_the_innermost_file(output: str, expected: str) -> None:
    cause = failure_cause(output, exit_code=1, has_run=True, is_ours=lambda module: module == "app")
    assert cause == expected


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
