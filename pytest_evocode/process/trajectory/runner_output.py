"""Read the output of test runners: whether the run passed, and which tests did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

#: Lines with a test's name and its verdict.
_SINGLE = (
    re.compile(r"^(?P<name>\S+::\S.*?) (?P<verdict>PASSED|FAILED|ERROR|XPASS|XFAIL|SKIPPED)\b", re.MULTILINE),  # pytest
    re.compile(r"^(?P<verdict>PASSED|FAILED|ERROR) (?P<name>\S+\.py(?:::\S.*?)?)(?: - .*)?$", re.MULTILINE),
    re.compile(r"^(?P<name>test\w* \([\w.]+\))(?:\n.*)? \.\.\. (?P<verdict>ok|FAIL|ERROR)$", re.MULTILINE),  # unittest
    re.compile(r"^[^\S\n]*--- (?P<verdict>PASS|FAIL): (?P<name>\S+)", re.MULTILINE),  # go
    re.compile(r"^test (?P<name>\S+)(?: - .*)? \.\.\. (?P<verdict>ok|FAILED)$", re.MULTILINE),  # cargo
    # The marks of JavaScript's runners.
    re.compile("^[^\\S\n]*(?P<verdict>[\u2713\u2714\u221a\u2715\u2717\u2716\u00d7]) (?P<name>.+)$", re.MULTILINE),
    re.compile(r"^[^\S\n]*(?P<verdict>not ok|ok) \d+ (?:- )?(?P<name>[^#\n]+)", re.MULTILINE),  # TAP
)
_PASSED = {"PASSED", "XPASS", "XFAIL", "ok", "PASS", "\u2713", "\u2714", "\u221a"}
_SKIPPED = {"SKIPPED"}

#: Lines with totals, either in the groups ``passed`` and ``failed`` or to be counted in the group ``line``.
_TOTALS = (
    re.compile(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed", re.MULTILINE),
    re.compile(r"^=*[^\S\n]*(?=.*\b(?:passed|failed|errors?)\b.* in [\d.]+ ?s)(?P<line>.+)$", re.MULTILINE),  # pytest
    re.compile(r"^Tests:\s+(?P<line>.*\d+ total)", re.MULTILINE),  # jest
    re.compile(r"^[^\S\n]*Tests:?\s+(?P<line>.*\d+ (?:passed|failed).*)$", re.MULTILINE),  # vitest, Laravel and Pest
    re.compile(
        r"^[^\S\n]*(?P<passed>\d+) passing\b(?:.*\n(?:.*\n){0,9}?[^\S\n]*(?P<failed>\d+) failing\b)?", re.MULTILINE
    ),  # mocha
    re.compile(r"^(?:#|\u2139) pass (?P<passed>\d+)\n(?:#|\u2139) fail (?P<failed>\d+)", re.MULTILINE),  # node --test
    re.compile(r"^[^\S\n]*(?P<passed>\d+) pass\n(?:.*(?:skip|todo)\n)*[^\S\n]*(?P<failed>\d+) fail\b", re.M),  # bun
    re.compile(
        r"^(?:ok|FAILED) \| (?P<passed>\d+) passed(?: \(.*?\))? \|"
        r" (?P<failed>\d+) failed",
        re.MULTILINE,
    ),  # deno
    re.compile(  # cargo nextest
        r"^[^\S\n]*Summary \[.*\] \d+ tests? run: (?P<passed>\d+) passed.*?(?:, (?P<failed>\d+) failed)?(?:,|$)",
        re.MULTILINE,
    ),
    re.compile(
        r"^\[info\] Passed: Total \d+, Failed (?P<failed>\d+), Errors \d+, Passed (?P<passed>\d+)", re.MULTILINE
    ),
    re.compile(
        r"^\[ FAIL (?P<failed>\d+) \| WARN \d+ \| SKIP \d+ \| PASS (?P<passed>\d+) \]", re.MULTILINE
    ),  # testthat
    re.compile(r"^\[info\] Tests: succeeded (?P<passed>\d+), failed (?P<failed>\d+)", re.MULTILINE),  # sbt
    re.compile(r"^\d+:\d+ \+(?P<passed>\d+)(?: ~\d+)?(?: -(?P<failed>\d+))?: (?:All|Some) tests", re.MULTILINE),  # dart
)
#: Tests that ended with an error other than one of their assertions.
_BROKEN_OFF = (
    re.compile(r"^(?P<name>test\w* \([\w.]+\))(?:\n.*)? \.\.\. ERROR$", re.MULTILINE),
    re.compile(
        r"^(?:FAILED|ERROR) (?P<name>\S+\.py(?:::\S.*?)?) - (?!assert\b|AssertionError|Failed\b|Failed:)[\w.]+(?::|$)",
        re.MULTILINE,
    ),
)
_NO_TESTS = re.compile(
    r"\bno tests? (?:were |was |cases? )?(?:ran|run|found|files?|to run|executed|matche[sd]|matching|collected|"
    r"selected|discovered|specified|available|defined|is available)\b|\bNo test (?:matches|is available)|"
    r"(?:All examples were filtered out)|^Tests: +\d+ skipped, \d+ total|^[^\S\n]*Tests +\d+ skipped \(|"
    r"\b0 (?:tests|specs|scenarios|examples) (?:ran|run|found|executed|collected|selected|matched)\b|"
    r"\bFound 0 tests?\b|^1\.\.0\b|No matching test cases|\b0 tests run: |collected 0 items|"
    r"^No (?:tests|specs|examples|scenarios)(?: were)? (?:found|run|match\w*)|"
    r"\b(?:no|0) (?:specs?|scenarios?|examples?|test (?:files?|suites?|classes)) (?:were )?(?:found|ran|matched)|"
    r"\bRan 0 tests\b|^=*[^\S\n]*\d+ deselected in |"
    r"\[no tests? (?:to run|files)\]|^running 0 tests$|NO TESTS RAN",
    re.IGNORECASE | re.MULTILINE,
)
#: A file of tests that could not be loaded.
_BROKEN_SUITE = re.compile(
    r"Test suite failed to run|^Cannot find module '[^']+' from '|^_+ ERROR collecting |Test Suites: +[1-9]\d* failed|"
    r"\bFailed Suites [1-9]|^[^\S\n]*Test Files +[1-9]\d* failed|"
    r"^(?:# |FAIL\s+)?\S+ \[(?:build|setup) failed\]|^error: could not compile ",
    re.MULTILINE,
)
_BROKEN_BUILD = re.compile(
    r"^(?:\S+: )?(?:fatal )?error(?:\[\w+\])?: |: (?:fatal )?error: |"
    r"^make(?:\[\d+\])?: \*\*\* |\berror TS\d+: |BUILD FAIL(?:ED|URE)|"
    r"^FAILED: |^npm (?:ERR!|error)|^(?:\./)?[\w./-]+\.go:\d+:\d+: |\bcompilation (?:failed|terminated)|^ERROR in |"
    r"^[^\S\n]*(?:SyntaxError|IndentationError|TabError): |ninja: build stopped|^error during build|\bbuild failed\b|"
    r"^Failed to compile|Compilation error in file|^\[error\] |: error [A-Z]+\d+: |\b[1-9]\d* Error\(s\)|"
    r"^Found [1-9]\d* errors?|^ERROR: failed to |^FATAL ERROR|\bELIFECYCLE|^Build FAILED|^[^\S\n]*\d+:\d+ +error  |"
    r"^CMake Error|^\[ERROR\] |^\*\* \(\w*Error\)|^\u2718 \[ERROR\]|^error[ :]|exited with code [1-9]",
    re.MULTILINE | re.IGNORECASE,
)
_DONE_BUILD = re.compile(
    r"^[^\S\n]*Finished .*(?:target|profile)|BUILD SUCCESS|Build succeeded|compiled successfully|^Compiled |"
    r"\bbuilt in [\d.]+ ?m?s|\[100%\] Built target|^Found 0 errors|^Success: no issues found|^Build complete|"
    r"^Generated \S+ app|^Build completed successfully|naming to \S+|^Successfully (?:built|tagged)|"
    r"^[^\S\n]*0 Error\(s\)|"
    r"^\[(\d+)/\1\] "
    r"|"
    # Nothing follows the linker's line if it went well.
    r"^(?:\S*-)?(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+|ld) .*-o \S.*\n*\Z",
    re.MULTILINE | re.IGNORECASE,
)
#: The last words of tests whose runner is not known, and of what called them.
_FAILED_TESTS = re.compile(
    r"\bBUILD FAIL|^\[ERROR\] (?:Failures|Errors|There are test failures)|^> Task :\S*[tT]est FAILED|"
    r"^--- FAIL: |^FAIL\s+\S+\s+[\d.]+s|^(?:FAIL|FAILED)[ :]|^[^\S\n]*[\u2717\u2718\u2716\u2715\u00d7\u2a2f] |"
    r"\bELIFECYCLE|^error: Test failed|^not ok \d|^Traceback \(most recent call last\):|AssertionError|"
    r"^[\w.]+(?:Error|Exception|Configured)(?:: |$)|\bSome tests failed|error: test run failed|"
    r"^make(?:\[\d+\])?: \*\*\* .*\bError \d+|\b[1-9]\d* (?:of|out of|/) \d+ (?:\w+ )?(?:tests?|checks?|cases?) fail|"
    r"(?<!of )\b[1-9]\d* (?:tests? )?fail(?:ed|ures?)\b|^npm (?:ERR!|error) Test failed|"
    r"\b[1-9]\d* tests failed out of \d+|"
    r"^# (?:FAIL|ERROR): +[1-9]|^(?:exit|rc|status|exit status|exited)[:= ]+[1-9]\d*$",
    re.MULTILINE | re.IGNORECASE,
)
#: The last words of tests that passed, whose runner counts none in what was printed.
_PASSED_TESTS = re.compile(
    r"^BUILD SUCCESS|\[INFO\] BUILD SUCCESS|\b[Aa]ll (?:\d+ )?(?:tests?|specs?|checks|cases|suites)\b.* pass(?:ed)?\b|"
    r"\b100% tests passed\b|^DONE \d+ tests?(?:, \d+ skipped)? in |^[^\S\n]*\S+: OK \(|congratulations :\)|"
    r"^(?://\S+ +)(?:\(cached\) )?PASSED|Executed \d+ out of \d+ tests?: \d+ tests? pass|^PASS$|"
    r"^0 failures, 0 errors|\btests passed$|^All tests (?:pass|passed|successful)|^Result: PASS|"
    r"Test Suite '.*' passed|^OK(?: \(.*\))?$|"
    r"\b[1-9]\d* (?:tests?|specs?|checks?|cases?) (?:passed|succeeded|ok)\b",
    re.MULTILINE,
)
_TOOK = re.compile(r" \(?\d+(?:\.\d+)? ?m?s\)?$")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?)")
_UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(OK|FAILED)(?: \((.*)\))?", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^(ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[build failed\])(?!.*\[no tests)", re.MULTILINE)


#: Lines with totals of what ran, failed and, in some, ended with an error; only the last such line counts.
_COUNTED = (
    # Maven and JUnit.
    re.compile(r"Tests run: (?P<ran>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+)"),
    # minitest, PHPUnit.
    re.compile(
        r"^(?P<ran>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors", re.MULTILINE
    ),
    re.compile(
        r"^Tests: (?P<ran>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?", re.M
    ),
    re.compile(r"^OK \((?P<ran>\d+) tests?, \d+ assertions?\)", re.MULTILINE),
    # RSpec, ExUnit, bats and others that count alike.
    re.compile(
        r"^(?:\d+ doctests?, )?(?P<ran>\d+) (?:examples?|tests?|specs?|scenarios?), (?P<failed>\d+) failures?\b"
        r"(?:.*?(?P<errors>\d+) errors?)?(?:.*?(?P<left_out>\d+) excluded)?",
        re.MULTILINE,
    ),
    # dotnet, ctest, XCTest, gradle.
    re.compile(r"- Failed:\s+(?P<failed>\d+), Passed:\s+\d+, Skipped:\s+\d+, Total:\s+(?P<ran>\d+)"),
    re.compile(r"^\d+% tests passed, (?P<failed>\d+) tests failed out of (?P<ran>\d+)", re.MULTILINE),
    re.compile(r"^[^\S\n]*Executed (?P<ran>\d+) tests?, with (?P<failed>\d+) failures?", re.MULTILINE),
    re.compile(r"^(?P<ran>\d+) tests? completed, (?P<failed>\d+) failed", re.MULTILINE),
    re.compile(r"^DONE (?P<ran>\d+) tests?(?:, \d+ skipped)?(?:, (?P<failed>\d+) failures?)?", re.MULTILINE),
)


@dataclass(frozen=True, slots=True)
class RunnerOutcome:
    """What the output of a test run says."""

    passed: bool | None
    """Whether the run passed; None where the output does not say."""
    tests: Mapping[str, bool] = field(default_factory=dict)
    """Whether each test passed, for the tests that the output names."""
    empty: bool = False
    """Whether the output says that there was no test to run."""


def read_runner_output(output: str) -> RunnerOutcome:
    r"""Read what a test runner has printed.

    >>> read_runner_output("FAILED test_a.py::test_b - assert 1 == 2\n=== 1 failed, 3 passed in 0.10s ===")
    RunnerOutcome(passed=False, tests={'test_a.py::test_b': False}, empty=False)
    """
    output = _ESCAPES.sub("", output)
    tests: dict[str, bool] = {}
    for pattern in _SINGLE:
        for match in pattern.finditer(output):
            if match["verdict"] not in _SKIPPED:
                tests[_TOOK.sub("", match["name"].strip())] = match["verdict"] in _PASSED
    totals = _totals(output)
    if totals is not None and any(totals):
        return RunnerOutcome(totals[1] == 0, tests)
    if tests:
        return RunnerOutcome(all(tests.values()), tests)
    if _BROKEN_SUITE.search(output):
        return RunnerOutcome(False)
    return RunnerOutcome(None, empty=totals is not None or _NO_TESTS.search(output) is not None)


def broken_off(output: str) -> tuple[str, ...]:
    r"""Return the tests that ended with an error other than one of their assertions, where the output tells.

    >>> broken_off("test_x (a.T.test_x) ... ERROR\ntest_y (a.T.test_y) ... FAIL\nFAILED a.py::test_z - KeyError: 1")
    ('test_x (a.T.test_x)', 'a.py::test_z')
    """
    output = _ESCAPES.sub("", output)
    return tuple(match["name"].strip() for pattern in _BROKEN_OFF for match in pattern.finditer(output))


def read_build_output(output: str) -> bool | None:
    r"""Return whether a build passed by what it printed; None where that does not say.

    >>> read_build_output("error: could not compile `a`"), read_build_output("make: *** [a.o] Error 1")
    (False, False)
    >>> read_build_output("    Finished `dev` profile in 0.5s"), read_build_output("a\n")
    (True, None)
    """
    output = _ESCAPES.sub("", output)
    if _BROKEN_BUILD.search(output):
        return False
    return True if _DONE_BUILD.search(output) else None


def has_failed_tests(output: str) -> bool:
    r"""Return whether tests failed by what an unknown runner printed, or by what called it.

    >>> has_failed_tests("1 of 4 tests failed\nexit 2"), has_failed_tests("0 of 4 tests failed\nexit 0")
    (True, False)
    """
    return _FAILED_TESTS.search(_ESCAPES.sub("", output)) is not None


def has_passed_tests(output: str) -> bool:
    r"""Return whether tests passed by the last words of their runner, where none of its words say that any failed.

    >>> has_passed_tests("BUILD SUCCESSFUL in 3s"), has_passed_tests("BUILD SUCCESSFUL in 3s\n--- FAIL: TestA")
    (True, False)
    """
    return not has_failed_tests(output) and _PASSED_TESTS.search(_ESCAPES.sub("", output)) is not None


def _totals(output: str) -> tuple[int, int] | None:
    """Return the numbers of passed and failed tests, by the last line that counts them."""
    for pattern in _TOTALS:
        matches = list(pattern.finditer(output))
        if matches and "line" in matches[-1].groupdict():
            counts = _COUNT.findall(matches[-1]["line"])
            passed = sum(int(number) for number, what in counts if what == "passed")
            return passed, sum(int(number) for number, what in counts if what != "passed")
        if matches:  # One total for each crate or file.
            return sum(int(match["passed"]) for match in matches), sum(int(match["failed"] or 0) for match in matches)
    if unittest := list(_UNITTEST.finditer(output)):
        ran, verdict, details = unittest[-1].groups()
        failed = sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", details or ""))
        return int(ran) - failed, max(failed, int(verdict == "FAILED"))
    if packages := _GO_PACKAGE.findall(output):
        return packages.count("ok"), packages.count("FAIL")
    for pattern in _COUNTED:
        if matches := list(pattern.finditer(output)):
            numbers = {name: int(number or 0) for name, number in matches[-1].groupdict().items()}
            broken = numbers.get("failed", 0) + numbers.get("errors", 0)
            return numbers["ran"] - broken - numbers.get("left_out", 0), broken
    return None


def without_escapes(output: str) -> str:
    """Return an output without colours."""
    return _ESCAPES.sub("", output)
