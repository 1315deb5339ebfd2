"""Turn the results of builds, tests and coverage runs into measures: BH, TS and dC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.execution.command_results import CommandResult, CoveredRun
from pytest_evocode.process.execution.coverage import covered_share
from pytest_evocode.process.execution.state_runner import StateRunner
from pytest_evocode.process.protocols import NOT_EXECUTED
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.failure_causes import failure_cause

Results = Mapping[int, CommandResult]
"""By the number of the state in its round."""


@dataclass(frozen=True, slots=True)
class StateMeasures:
    """Measures what the commands of a ``runner`` came to in the states of its round."""

    runner: StateRunner
    activity: RoundActivity

    def build_health(self, command: str | None, results: Results) -> Measure:
        """Return BH: the share of states that build."""
        if command is None:
            return not_measured("no build is declared, and none is recognised")
        if (reason := self._unusable(results.values(), command)) is not None:
            return not_measured(reason)
        broken = {number: result for number, result in results.items() if not result.ok}
        healthy = len(results) - len(broken)
        evidence = tuple(self._evidence(number, result, "does not build") for number, result in broken.items())
        reason = f"{healthy} of {self._count(len(results), 'states')} build: {command}"
        return measured(healthy / len(results), reason, evidence, certainty="executed")

    def stability(self, command: str | None, results: Results) -> Measure:
        """Return TS: the share of transitions between states after which no test fails that passed before."""
        if command is None:
            return not_measured("no test command is declared, and none is recognised")
        if (reason := self._unusable(results.values(), command)) is not None:
            return not_measured(reason)
        if len(results) < 2:
            return not_measured("a single state was tested")
        transitions = len(results) - 1
        broken = {
            after: lost
            for before, after in pairwise(sorted(results))
            if (lost := newly_failing(results[before], results[after]))
        }
        evidence = tuple(
            self._evidence(number, results[number], f"{len(lost)} tests fail that passed: {', '.join(lost[:3])}")
            for number, lost in broken.items()
        )
        stable = transitions - len(broken)
        reason = f"{stable} of {self._count(transitions, 'transitions')} break no test: {command}"
        return measured(stable / transitions, reason, evidence, certainty="executed")

    def _unusable(self, results: Iterable[CommandResult], command: str) -> str | None:
        """Return why the results say nothing: there are none, or the command cannot be run in this image."""
        results = list(results)
        if not results:
            if self.runner.trouble:
                return self.runner.trouble
            return "there was no time for any state" if self.runner.has_engine else NOT_EXECUTED
        causes = [
            failure_cause(each.output, exit_code=each.exit_code, has_run=each.ran_tests, is_ours=lambda module: True)
            for each in results
            if not each.ok and not each.timed_out
        ]
        if len(causes) == len(results) and all(each in ("environment", "shell typo") for each in causes):
            return f"{command}: cannot be run here: {quoted(results[0].output[-200:])}"
        return None

    def _evidence(self, number: int, result: CommandResult, what: str) -> Evidence:
        at = self.runner.states[number].at
        edit = next((edit for edit in self.activity.edits if edit.at == at), None)
        last = next((line for line in reversed(result.output.splitlines()) if line.strip()), "")
        code = "at its limit" if result.timed_out else f"exit code {result.exit_code}"
        path = f"{edit.path}: " if edit else ""
        return Evidence(what=what, step=edit.step if edit else None, quote=quoted(f"{path}{code}: {last}"))

    def _count(self, count: int, what: str) -> str:
        everything = len(self.runner.states) - 1
        return f"{count} {what}" if count == everything else f"{count} sampled {what} (of {everything})"


def newly_failing(before: CommandResult, after: CommandResult) -> list[str]:
    """Return the tests that passed and now fail, or are not even reached.

    Where the output names no tests, the whole run counts as one. A test that is missing from a run that passes was
    removed.
    """
    if not before.tests and not after.tests:
        return ["the whole run"] if before.ok and not after.ok else []
    passed = [name for name, ok in before.tests.items() if ok]
    unreached = not after.ok and (before.ok or not after.tests)
    return [name for name in passed if after.tests.get(name, not unreached) is False]


def coverage_gain(with_tests: CoveredRun | None, without: CoveredRun | None, sources: Sequence[str]) -> Measure:
    """Return dC: the line coverage of ``sources`` with the agent's tests, minus that without them."""
    if with_tests is None or without is None:
        return not_measured(NOT_EXECUTED)
    if with_tests.lines is None or without.lines is None:
        return not_measured(with_tests.why or without.why)
    ran, total = covered_share(with_tests.lines, sources)
    ran_without, total_without = covered_share(without.lines, sources)
    total = max(total, total_without)
    if not total:
        return not_measured("the test command loads none of the changed files into a Python that can be watched")
    gain = max(0.0, (ran - ran_without) / total)
    reason = f"{ran} of {total} lines of the changed files with the agent's tests, {ran_without} without"
    return measured(gain, reason, certainty="executed")
