"""Builds, tests and coverage in the states of an attempt, within a budget and with what is known from before."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.errors import EnvironmentFault, StateNotRebuilt, TaskError
from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.execution.command_results import CommandResult, ResultCache, key_of, result_of
from pytest_evocode.process.execution.coverage import covered_share, run_with_coverage
from pytest_evocode.process.execution.reference_diff import reference_lines
from pytest_evocode.process.execution.timeline import Timeline, WorkspaceState
from pytest_evocode.process.pillars.extended import imports_of
from pytest_evocode.process.protocols import NOT_EXECUTED, ExecutedMeasures
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.failure_causes import failure_cause
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.project_kinds import Project, recognise_project, roles_of
from pytest_evocode.process.trajectory.workspace_texts import TaskTexts
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trajectories.file_changes import File, write_files

#: Seconds that an attempt's states are built and tested unless somebody says otherwise.
BUDGET = 300.0
#: Seconds for one build or test run.
_LIMIT = 120.0
#: Makes runners name the tests that pass; each understands its own and passes over the others.
_TELLING = {"PYTEST_ADDOPTS": "-rA -p no:cacheprovider", "GOFLAGS": "-v", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
_FIND = "import importlib.util as u, json, sys; sys.path[:0] = ['', 'src']; print(json.dumps({names}))"

Results = Mapping[int, CommandResult]
"""By the number of the state in its round."""


class Execution:
    """The executor of one attempt at a task; see :class:`~pytest_evocode.process.protocols.Executor`.

    Without an engine only what was executed before is known. ``budget`` is in seconds, for all rounds together; states
    that it does not suffice for are left out evenly.
    """

    def __init__(
        self, task: Task, engine: Engine | None, *, budget: float = BUDGET, cache: ResultCache | None = None
    ) -> None:
        self._task = task
        self._rounds = {round_.name: round_ for round_ in task.rounds}
        self._timeline = Timeline(task, engine)
        self._engine = engine
        self._cache = cache or ResultCache()
        self._left = budget
        self._files = TaskTexts(task)
        self._roles = roles_of(task.process)

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what still runs."""
        self._timeline.close()

    def run_round(self, activity: RoundActivity) -> ExecutedMeasures:
        """See :class:`~pytest_evocode.process.protocols.Executor`."""
        round_ = self._rounds.get(activity.name)
        if round_ is None:
            return _all_unmeasured("the task has no such round")
        points = self._timeline.extend(round_, activity)
        if len(points) == 1:
            return _all_unmeasured("the product was not changed")
        begun = time.monotonic()
        share = self._left / max(1, len(self._rounds) - activity.index + 1)
        try:
            return _RoundRun(self, round_, activity, points, begun + share).run()
        except (EnvironmentFault, StateNotRebuilt, TaskError) as error:
            return _all_unmeasured(str(error).partition("\n")[0])
        finally:
            self._left = max(0.0, self._left - (time.monotonic() - begun))

    def project(self, activity: RoundActivity) -> Project | None:
        """What kind of project the workspace is at the end of a round, by what is known of its files."""

        def text(path: str) -> str | None:
            return activity.workspace.get(path) or (self._files.context(path) if path in known else None)

        known = set(self._files.paths)
        return recognise_project([*activity.workspace, *known], text)


def _all_unmeasured(reason: str) -> ExecutedMeasures:
    nothing = not_measured(reason)
    return ExecutedMeasures(nothing, nothing, nothing)


class _RoundRun:
    """One round: its states in order, as many as there is time for."""

    def __init__(
        self,
        execution: Execution,
        round_: Round,
        activity: RoundActivity,
        points: Sequence[WorkspaceState],
        deadline: float,
    ) -> None:
        self._execution = execution
        self._timeline = execution._timeline
        self._cache = execution._cache
        self._roles: FileRoles = execution._roles
        self._round = round_
        self._activity = activity
        self._points = points
        self._deadline = deadline
        declared, project = execution._task.process, execution.project(activity)
        self._trouble = ""
        self._build = declared.build or (project.build if project else None)
        self._test = declared.test or (project.test if project else None)

    def run(self) -> ExecutedMeasures:
        commands = {"build": self._build, "test": self._test}
        results = self._states({name: command for name, command in commands.items() if command})
        gain, grounding = self._at_the_end()
        reference = reference_lines(
            self._execution._task, self._execution._engine, self._round, self._roles, self._cache
        )
        return ExecutedMeasures(
            build_health=self._build_health(results.get("build", {})),
            stability=self._stability(results.get("test", {})),
            coverage_gain=gain,
            grounding=grounding,
            reference_lines=reference,
        )

    # Builds and tests, state by state.

    def _states(self, commands: Mapping[str, str]) -> dict[str, dict[int, CommandResult]]:
        results: dict[str, dict[int, CommandResult]] = {name: {} for name in commands}
        missing: dict[int, list[str]] = {}
        for number, point in enumerate(self._points):
            for name, command in commands.items():
                if number == 0 and name == "build":
                    continue  # What the agent began with is not its doing.
                if (known := self._cache.get(key_of(point.key, name, command))) is not None:
                    results[name][number] = known
                else:
                    missing.setdefault(number, []).append(name)
        took: list[float] = []
        for number in _evenly(list(missing), lambda: self._affordable(took)) if self._timeline.has_engine else ():
            began = time.monotonic()
            try:
                with self._timeline.fork(self._points[number], self._round) as fork:
                    for name in missing[number]:
                        results[name][number] = self._execute(fork, self._points[number], name, commands[name])
            except StateNotRebuilt as lost:
                self._trouble = str(lost)
                break
            took.append(time.monotonic() - began)
        return results

    def _affordable(self, took: Sequence[float]) -> int:
        """How many more states there is time for, by what the others took."""
        left = self._deadline - time.monotonic()
        return max(0, int(left * len(took) / sum(took)))

    def _execute(self, fork: Environment, point: WorkspaceState, name: str, command: str) -> CommandResult:
        limit = max(5.0, min(_LIMIT, self._deadline - time.monotonic() + 5.0))
        executed = fork.exec(command, user=self._round.agent_user, env=_TELLING, timeout=limit)
        result = result_of(executed)
        if not result.timed_out or limit == _LIMIT:  # What was cut short by the budget says nothing.
            self._cache.put(key_of(point.key, name, command), result)
        return result

    def _build_health(self, results: Results) -> Measure:
        if self._build is None:
            return not_measured("no build is declared, and none is recognised")
        states = {number: result for number, result in results.items() if number}
        if (reason := self._unusable(states.values(), self._build)) is not None:
            return not_measured(reason)
        healthy = [number for number, result in states.items() if result.ok]
        evidence = tuple(self._evidence(number, result, "does not build") for number, result in states.items()
                         if not result.ok)  # fmt: skip
        reason = f"{len(healthy)} of {self._shown(len(states))} build: {self._build}"
        return measured(len(healthy) / len(states), reason, evidence, certainty="executed")

    def _stability(self, results: Results) -> Measure:
        if self._test is None:
            return not_measured("no test command is declared, and none is recognised")
        if (reason := self._unusable(results.values(), self._test)) is not None:
            return not_measured(reason)
        if len(results) < 2:
            return not_measured("a single state was tested")
        numbers = sorted(results)
        broken = {}
        for before, after in pairwise(numbers):
            if lost := newly_failing(results[before], results[after]):
                broken[after] = lost
        transitions = len(numbers) - 1
        evidence = tuple(
            self._evidence(number, results[number], f"{len(lost)} tests fail that passed: {', '.join(lost[:3])}")
            for number, lost in broken.items()
        )
        reason = f"{transitions - len(broken)} of {self._shown(transitions, 'transitions')} break no test: {self._test}"
        return measured((transitions - len(broken)) / transitions, reason, evidence, certainty="executed")

    def _unusable(self, results: Iterable[CommandResult], command: str) -> str | None:
        """Why the results say nothing: there are none, or the command cannot be run in this image."""
        results = list(results)
        if not results:
            if self._trouble:
                return self._trouble
            return "there was no time for any state" if self._timeline.has_engine else NOT_EXECUTED
        failures = [
            failure_cause(each.output, exit_code=each.exit_code, has_run=each.ran_tests, is_ours=lambda module: True)
            for each in results
            if not each.ok and not each.timed_out
        ]
        if len(failures) == len(results) and all(each in ("environment", "shell typo") for each in failures):
            return f"{command}: cannot be run here: {quoted(results[0].output[-200:])}"
        return None

    def _evidence(self, number: int, result: CommandResult, what: str) -> Evidence:
        at = self._points[number].at
        edit = next((edit for edit in self._activity.edits if edit.at == at), None)
        last = next((line for line in reversed(result.output.splitlines()) if line.strip()), "")
        code = "at its limit" if result.timed_out else f"exit code {result.exit_code}"
        path = f"{edit.path}: " if edit else ""
        return Evidence(what=what, step=edit.step if edit else None, quote=quoted(f"{path}{code}: {last}"))

    def _shown(self, count: int, what: str = "states") -> str:
        everything = len(self._points) - 1
        return f"{count} {what}" if count == everything else f"{count} sampled {what} (of {everything})"

    # Coverage and imports, in the last state.

    def _at_the_end(self) -> tuple[Measure, Measure | None]:
        point = self._points[-1]
        sources = sorted(
            path
            for path, text in self._activity.after.items()
            if text is not None and path.endswith(".py") and self._roles.of(path, text) == "source"
        )
        if self._test is None:
            return not_measured("no test command is declared, and none is recognised"), None
        if not sources:
            return not_measured("coverage is measured for Python, and no Python source was changed"), None
        if self._trouble:
            return not_measured(self._trouble), None
        with_tests = self._covered(point, {})
        taken_back = self._without_tests()
        without = self._covered(point, taken_back) if taken_back else with_tests
        return _gain(with_tests, without, sources), self._grounding(point)

    def _without_tests(self) -> dict[str, str | None]:
        """The agent's test files as they were before it; None for those that were not there."""
        origin, now = self._activity.origin, self._activity.workspace
        return {
            path: before
            for path, before in origin.items()
            if self._roles.of(path, now.get(path)) == "tests" and now.get(path) != before
        }

    def _covered(self, point: WorkspaceState, replaced: Mapping[str, str | None]) -> CommandResult | None:
        key = key_of(point.key, "coverage", self._test, sorted(replaced.items()), sys.version_info[:2])
        known = self._cache.get(key)
        if known is not None or not self._timeline.has_engine or time.monotonic() > self._deadline:
            return known
        assert self._test is not None
        with self._timeline.fork(point, self._round) as fork:
            write_files(fork, {path: _file(text) for path, text in replaced.items()}, user=None)
            executed, extra = run_with_coverage(
                fork, self._test, user=self._round.agent_user, env=_TELLING, timeout=_LIMIT
            )
        result = result_of(executed, extra)
        self._cache.put(key, result)
        return result

    def _grounding(self, point: WorkspaceState) -> Measure | None:
        """Which imports the environment's Python finds."""
        names = sorted(imports := imports_of(self._activity, self._roles))
        key = key_of(point.key, "imports", names)
        result = self._cache.get(key)
        if result is None:
            if not names or not self._timeline.has_engine or time.monotonic() > self._deadline:
                return None
            lookup = "{n: u.find_spec(n) is not None for n in " + repr(names) + "}"
            with self._timeline.fork(point, self._round) as fork:
                script = _FIND.format(names=lookup)
                result = result_of(fork.exec(["python3", "-c", script], user=self._round.agent_user, timeout=60))
            self._cache.put(key, result)
        found = _last_json(result.output) if result.ok else None
        if found is None:
            return None
        missing = [name for name in names if not found.get(name)]
        evidence = tuple(Evidence(what="not found in the environment", quote=f"{imports[name]}: {name}")
                         for name in missing)  # fmt: skip
        reason = f"{len(names) - len(missing)} of {len(names)} imports"
        return measured(1 - len(missing) / len(names), reason, evidence, certainty="executed")


def newly_failing(before: CommandResult, after: CommandResult) -> list[str]:
    """The tests that passed and now fail, or are not even reached.

    Where runners name no tests, the whole run counts as one. A test that is gone from a run that passes was removed.
    """
    if not before.tests and not after.tests:
        return ["the whole run"] if before.ok and not after.ok else []
    passed = [name for name, ok in before.tests.items() if ok]
    unreached = not after.ok and (before.ok or not after.tests)
    return [name for name in passed if after.tests.get(name, not unreached) is False]


def _evenly(numbers: Sequence[int], affordable: Callable[[], int]) -> Iterator[int]:
    """The first number, then as many as can be afforded by then, evenly spread up to the last."""
    yield from numbers[:1]
    left = numbers[1:]
    while left and (count := min(affordable(), len(left))) > 0:
        index = -(-len(left) // count) - 1
        yield left[index]
        left = left[index + 1 :]


def _gain(with_tests: CommandResult | None, without: CommandResult | None, sources: Sequence[str]) -> Measure:
    if with_tests is None or without is None:
        return not_measured(NOT_EXECUTED)
    for result in (with_tests, without):
        if "lines" not in result.extra:
            return not_measured(str(result.extra.get("why", "coverage could not be measured")))
    ran, total = covered_share(with_tests.extra["lines"], sources)
    ran_without, total_without = covered_share(without.extra["lines"], sources)
    total = max(total, total_without)
    if not total:
        return not_measured("the test command loads none of the changed files into a Python that can be watched")
    gain = max(0.0, (ran - ran_without) / total)
    reason = f"{ran} of {total} lines of the changed files with the agent's tests, {ran_without} without"
    return measured(gain, reason, certainty="executed")


def _file(text: str | None) -> File | None:
    return None if text is None else File(content=text.encode("utf-8", "surrogateescape"))


def _last_json(output: str) -> dict[str, bool] | None:
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            found: dict[str, bool] = json.loads(line)
            return found
    return None
