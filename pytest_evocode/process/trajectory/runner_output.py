"""Read the output of test runners: whether the run passed, and which tests did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_evocode.process.rules import OUTPUTS


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
    output = OUTPUTS["escapes"].sub("", output)
    tests: dict[str, bool] = {}
    for pattern in OUTPUTS.series["single"]:
        for match in pattern.finditer(output):
            if match["verdict"] not in OUTPUTS.words["skipped_marks"]:
                tests[OUTPUTS["took"].sub("", match["name"].strip())] = (
                    match["verdict"] in OUTPUTS.words["passed_marks"]
                )
    totals = _totals(output)
    if totals is not None and any(totals):
        return RunnerOutcome(totals[1] == 0, tests)
    if tests:
        return RunnerOutcome(all(tests.values()), tests)
    if OUTPUTS.find(output, "broken_suite"):
        return RunnerOutcome(False)
    return RunnerOutcome(None, empty=totals is not None or OUTPUTS.find(output, "no_tests"))


def broken_off(output: str) -> tuple[str, ...]:
    r"""Return the tests that ended with an error other than one of their assertions, where the output tells.

    >>> broken_off("test_x (a.T.test_x) ... ERROR\ntest_y (a.T.test_y) ... FAIL\nFAILED a.py::test_z - KeyError: 1")
    ('test_x (a.T.test_x)', 'a.py::test_z')
    """
    output = OUTPUTS["escapes"].sub("", output)
    return tuple(
        match["name"].strip() for pattern in OUTPUTS.series["broken_off"] for match in pattern.finditer(output)
    )


def read_build_output(output: str) -> bool | None:
    r"""Return whether a build passed by what it printed; None where that does not say.

    >>> read_build_output("error: could not compile `a`"), read_build_output("make: *** [a.o] Error 1")
    (False, False)
    >>> read_build_output("    Finished `dev` profile in 0.5s"), read_build_output("a\n")
    (True, None)
    """
    output = OUTPUTS["escapes"].sub("", output)
    if OUTPUTS.find(output, "broken_build"):
        return False
    return True if OUTPUTS.find(output, "done_build") else None


def has_failed_tests(output: str) -> bool:
    r"""Return whether tests failed by what an unknown runner printed, or by what called it.

    >>> has_failed_tests("1 of 4 tests failed\nexit 2"), has_failed_tests("0 of 4 tests failed\nexit 0")
    (True, False)
    """
    return OUTPUTS.find(OUTPUTS["escapes"].sub("", output), "failed_tests")


def has_passed_tests(output: str) -> bool:
    r"""Return whether tests passed by the last words of their runner, where none of its words say that any failed.

    >>> has_passed_tests("BUILD SUCCESSFUL in 3s"), has_passed_tests("BUILD SUCCESSFUL in 3s\n--- FAIL: TestA")
    (True, False)
    """
    return not has_failed_tests(output) and OUTPUTS.find(OUTPUTS["escapes"].sub("", output), "passed_tests")


def _totals(output: str) -> tuple[int, int] | None:
    """Return the numbers of passed and failed tests, by the last line that counts them."""
    for pattern in OUTPUTS.series["totals"]:
        matches = list(pattern.finditer(output))
        if matches and "line" in matches[-1].groupdict():
            counts = OUTPUTS["count"].findall(matches[-1]["line"])
            passed = sum(int(number) for number, what in counts if what == "passed")
            return passed, sum(int(number) for number, what in counts if what != "passed")
        if matches:  # One total for each crate or file.
            return sum(int(match["passed"]) for match in matches), sum(int(match["failed"] or 0) for match in matches)
    if unittest := list(OUTPUTS["unittest"].finditer(output)):
        ran, verdict, details = unittest[-1].groups()
        failed = sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", details or ""))
        return int(ran) - failed, max(failed, int(verdict == "FAILED"))
    if packages := OUTPUTS["go_package"].findall(output):
        return packages.count("ok"), packages.count("FAIL")
    for pattern in OUTPUTS.series["counted"]:
        if matches := list(pattern.finditer(output)):
            numbers = {name: int(number or 0) for name, number in matches[-1].groupdict().items()}
            broken = numbers.get("failed", 0) + numbers.get("errors", 0)
            return numbers["ran"] - broken - numbers.get("left_out", 0), broken
    return None


def without_escapes(output: str) -> str:
    """Return an output without colours."""
    return OUTPUTS["escapes"].sub("", output)
