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
    re.compile(r"^[^\S\n]*Tests\s+(?P<line>.*\d+ (?:passed|failed).*)$", re.MULTILINE),  # vitest
    re.compile(
        r"^[^\S\n]*(?P<passed>\d+) passing\b(?:[\s\S]*?^[^\S\n]*(?P<failed>\d+) failing\b)?", re.MULTILINE
    ),  # mocha
    re.compile(r"^(?:#|\u2139) pass (?P<passed>\d+)\n(?:#|\u2139) fail (?P<failed>\d+)", re.MULTILINE),  # node --test
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
    r"\bno tests? (?:ran|found|files?|to run|were found)\b|collected 0 items|\bRan 0 tests\b|^\d+ deselected in |"
    r"\[no tests? (?:to run|files)\]|^running 0 tests$|NO TESTS RAN",
    re.IGNORECASE | re.MULTILINE,
)
#: A file of tests that could not be loaded.
_BROKEN_SUITE = re.compile(
    r"Test suite failed to run|^Cannot find module '[^']+' from '|^_+ ERROR collecting |Test Suites: +[1-9]\d* failed|"
    r"^(?:# )?\S+ \[build failed\]|^error: could not compile ",
    re.MULTILINE,
)
_BROKEN_BUILD = re.compile(
    r"^(?:\S+: )?(?:fatal )?error(?:\[\w+\])?: |: (?:fatal )?error: |"
    r"^make(?:\[\d+\])?: \*\*\* |\berror TS\d+: |BUILD FAIL(?:ED|URE)|"
    r"^FAILED: |^npm (?:ERR!|error)|^(?:\./)?[\w./-]+\.go:\d+:\d+: |\bcompilation (?:failed|terminated)|^ERROR in |"
    r"^[^\S\n]*(?:SyntaxError|IndentationError|TabError): |ninja: build stopped",
    re.MULTILINE | re.IGNORECASE,
)
_DONE_BUILD = re.compile(
    r"^[^\S\n]*Finished .*(?:target|profile)|BUILD SUCCESS|Build succeeded|compiled successfully|^Compiled |"
    r"\bbuilt in [\d.]+ ?m?s|"
    # Nothing follows the linker's line if it went well.
    r"^(?:\S*-)?(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+|ld) .*-o \S.*\n*\Z",
    re.MULTILINE | re.IGNORECASE,
)
#: The last words of tests whose runner is not known, and of what called them.
_FAILED_TESTS = re.compile(
    r"^make(?:\[\d+\])?: \*\*\* .*\bError \d+|\b[1-9]\d* (?:of|out of|/) \d+ (?:\w+ )?(?:tests?|checks?|cases?) fail|"
    r"(?<!of )\b[1-9]\d* (?:tests? )?fail(?:ed|ures?)\b|^npm (?:ERR!|error) Test failed|"
    r"\b[1-9]\d* tests failed out of \d+|^(?:exit|rc|status|exit status|exited)[:= ]+[1-9]\d*$",
    re.MULTILINE | re.IGNORECASE,
)
_TOOK = re.compile(r" \(?\d+(?:\.\d+)? ?m?s\)?$")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?)")
_UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(OK|FAILED)(?: \((.*)\))?", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^(ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[build failed\])(?!.*\[no tests)", re.MULTILINE)


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
    return None
