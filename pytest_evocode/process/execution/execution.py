"""Measure rounds by running their states: builds, tests, coverage, imports, and what the reference solution changes."""

from __future__ import annotations

import json
import logging
import os
import posixpath
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pydantic import BaseModel

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import EnvironmentFault, EvocodeError, StateNotRebuilt, TaskError
from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.execution.mutation import MutationRun
from pytest_evocode.process.execution.states import (
    COMMAND_LIMIT,
    VERBOSE,
    CommandResult,
    CoveredRun,
    ResultCache,
    StateRunner,
    Timeline,
    covered_share,
    key_of,
    run_with_coverage,
    write_texts,
)
from pytest_evocode.process.pillars.extended import changed_lines, changed_python_files, imports_of
from pytest_evocode.process.protocols import NOT_EXECUTED, ExecutedMeasures
from pytest_evocode.process.tests_written.code_elements import TestVerification
from pytest_evocode.process.tests_written.written_tests import written_tests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.failure_causes import failure_cause
from pytest_evocode.process.trajectory.file_roles import FileRoles, roles_of
from pytest_evocode.process.trajectory.file_texts import TaskTexts
from pytest_evocode.process.trajectory.normal_forms import tree_of
from pytest_evocode.process.trajectory.shell.purposes import purposes_of, recognise_project
from pytest_evocode.secrets import withheld_from_agent
from pytest_evocode.tasks import Round, Task, resolve_env
from pytest_evocode.tasks.lockfile import content_hash

NO_TESTS = "no test command is declared, and none is recognised"
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
            return not_measured(NO_TESTS)
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
            return "there was no time for any state" if self.runner.timeline.has_engine else NOT_EXECUTED
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


logger = logging.getLogger(__name__)

_SOLUTION = "/solution"
_LIMIT = 300.0  # seconds for one solution
_LIST = "find . -type f -size -1024k -not -path '*/.git/*' -not -path '*/node_modules/*' -print0 | head -c 1000000"
_FILE_LIMIT = 2**20


class ReferenceLines(BaseModel):
    """The number of changed lines, by round."""

    lines: dict[str, int]


def reference_lines(
    task: Task, engine: Engine | None, round_: Round, roles: FileRoles, cache: ResultCache
) -> int | None:
    """Return how many lines the round's solution adds to and removes from the product's source.

    None where a solution is missing or fails, and where there is no engine and nothing is cached. The solutions of
    all rounds are run at once. What came of an engine that failed, or of a variable that is not set, is not kept.
    """
    contents = content_hash(task.directory)
    key = key_of("reference", contents, roles.source, roles.tests)
    known = cache.get(key, ReferenceLines)
    if known is None:
        if engine is None:
            return None
        try:
            known = ReferenceLines(lines=_run_solutions(task, engine, roles))
        except EvocodeError as error:  # Only diff minimality needs the reference.
            logger.info("%s: the reference solution could not be run: %s", task.name, str(error).partition("\n")[0])
            return None
        cache.put(key, known)
    return known.lines.get(round_.name)


def _run_solutions(task: Task, engine: Engine, roles: FileRoles) -> dict[str, int]:
    lines: dict[str, int] = {}
    if any(round_.solution is None for round_ in task.rounds):
        return lines
    task_environment = TaskEnvironment(task, engine, os.environ, withheld_from_agent(os.environ, ()))
    environment = task_environment.create()
    try:
        task_environment.start(environment)
        for round_ in task.rounds:
            task_environment.prepare_round(environment, round_)
            before = _sources(environment, roles)
            if not _solve(environment, round_, task):
                break
            lines[round_.name] = changed_lines(before, _sources(environment, roles), roles)
    finally:
        environment.stop()
    return lines


def _solve(environment: Environment, round_: Round, task: Task) -> bool:
    assert round_.solution is not None
    environment.upload([round_.solution], _SOLUTION)
    env = resolve_env(round_.solution_env, os.environ, path=task.file)
    try:
        result = environment.exec(["bash", f"{_SOLUTION}/solve.sh"], user=round_.agent_user, env=env, timeout=_LIMIT)
    finally:
        environment.remove([_SOLUTION])
    if result.timed_out:  # Perhaps on a machine that is busy now.
        raise EnvironmentFault(f"{round_.name}: solve.sh did not end in {_LIMIT:g} s")
    return result.ok


def _sources(environment: Environment, roles: FileRoles) -> dict[str, str | None]:
    listed = environment.exec(_LIST, timeout=60)
    if not listed.ok:
        raise EnvironmentFault(f"the files of {environment.workdir} could not be listed:\n{listed.tail()}")
    names = [name.removeprefix("./") for name in listed.output.split("\0") if name]
    # "#!" keeps files that only their text shows to be scripts.
    wanted = {name for name in names if roles.of(name, "#!") == "source"}
    places = {posixpath.join(environment.workdir, name): name for name in sorted(wanted)}
    found = environment.read_files(dict.fromkeys(places, _FILE_LIMIT)) if places else {}
    texts: dict[str, str | None] = {}
    for place, content in found.items():
        if isinstance(content, bytes) and b"\0" not in content:
            texts[places[place]] = content.decode("utf-8", "replace")
    return texts


#: Seconds for building and testing the states of one attempt, by default.
BUDGET = 300.0
#: Seconds for running tests against mutants, for each round, by default.
MUTATION_BUDGET = 60.0
_FIND = "import importlib.util as u, json, sys; sys.path[:0] = ['', 'src']; print(json.dumps({names}))"


class Execution:
    """Runs the states of one attempt; implements :class:`~pytest_evocode.process.protocols.Executor`.

    Args:
        task: The task of the attempt.
        engine: Starts the environments; None to take cached results only.
        budget: Seconds for all rounds together. Where they are too short, a sample of the states is run.
        mutation_budget: Seconds for running tests against mutants, for each round, beside the budget.
        cache: The results of earlier executions; by default those of this machine.
        tell: Is told what is run against mutants, line by line; by default the log is.
    """

    def __init__(
        self,
        task: Task,
        engine: Engine | None,
        *,
        budget: float = BUDGET,
        mutation_budget: float = MUTATION_BUDGET,
        cache: ResultCache | None = None,
        tell: Callable[[str], None] = logger.info,
    ) -> None:
        self._task = task
        self._tell = tell
        self._rounds = {round_.name: round_ for round_ in task.rounds}
        self._timeline = Timeline(task, engine)
        self._engine = engine
        self._cache = cache or ResultCache()
        self._left = budget
        self.mutation_seconds: dict[str, float] = {}
        """What running tests against mutants took, by round; known results take next to nothing."""
        self._mutation_budget = mutation_budget
        self._files = TaskTexts(task)
        self._roles = roles_of(task.process)

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, *_: object) -> None:
        self._timeline.close()

    def run_round(self, activity: RoundActivity) -> ExecutedMeasures:
        """Rebuild the states of a round and measure them."""
        round_ = self._rounds.get(activity.name)
        if round_ is None:
            return _all_unmeasured("the task has no such round")
        states = self._timeline.extend(round_, activity)
        if len(states) == 1:
            return _all_unmeasured("the product was not changed")
        begun = time.monotonic()
        share = self._left / max(1, len(self._rounds) - activity.index + 1)
        try:
            return self._measure(StateRunner(self._timeline, self._cache, round_, states, begun + share), activity)
        except (EnvironmentFault, StateNotRebuilt, TaskError) as error:
            reason = str(error).partition("\n")[0]
            logger.info("%s, %s: not executed: %s", self._task.name, round_.name, reason)
            return _all_unmeasured(reason)
        finally:
            mutating = self.mutation_seconds.get(activity.name, 0.0)
            self._left = max(0.0, self._left - (time.monotonic() - begun - mutating))

    def _measure(self, runner: StateRunner, activity: RoundActivity) -> ExecutedMeasures:
        build, test = self._commands(activity)
        results = runner.run({name: line for name, line in (("build", build), ("test", test)) if line})
        begun = time.monotonic()
        is_executed = self._timeline.has_engine or bool(results.get("test"))
        verification, unverified = self._verification(runner, activity, test, is_executed)
        took = time.monotonic() - begun
        self.mutation_seconds[activity.name] = took
        runner.allow(took)
        gain, grounding = self._in_last_state(runner, activity, test, verification)
        measures = StateMeasures(runner, activity)
        return ExecutedMeasures(
            build_health=measures.build_health(build, results.get("build", {})),
            stability=measures.stability(test, results.get("test", {})),
            coverage_gain=gain,
            verification=verification,
            unverified=unverified,
            grounding=grounding,
            reference_lines=reference_lines(self._task, self._engine, runner.round, self._roles, self._cache),
        )

    def _commands(self, activity: RoundActivity) -> tuple[str | None, str | None]:
        """Return how the project is built and tested: as declared, or by its kind at the end of the round."""
        now = activity.workspace
        original = {path: text for path, text in self._files.context.items() if not now.get(path)}
        purposes = purposes_of(self._task.process, recognise_project({**now, **original}))
        return purposes.build, purposes.test

    def _verification(
        self, runner: StateRunner, activity: RoundActivity, test: str | None, is_executed: bool
    ) -> tuple[TestVerification | None, str]:
        """Return which of the agent's tests fail for mutants of the Python that the attempt has changed so far.

        Or why that is not known; nothing where there is none that could fail, or nothing to make mutants of.
        """
        if test is None or runner.trouble or not is_executed:
            return None, runner.trouble or (NOT_EXECUTED if test else NO_TESTS)
        now, roles = activity.workspace, self._roles
        changed = [path for path, before in activity.origin.items() if now.get(path, before) != before]
        sources = [path for path in changed if roles.of(path, now.get(path)) == "source" and activity.is_used(path)]
        of_python = [path for path in sources if path in now and path.endswith(".py")]
        tests, budget = written_tests(activity, roles), self._mutation_budget
        if not of_python or not tests.verifying:
            return None, ""
        others = frozenset(posixpath.splitext(path)[1] for path in sources) - {"", ".py"}
        parsed = tuple(path for path in of_python if tree_of(now[path]).body)
        run = MutationRun(
            runner, activity, test, parsed, tests, others, budget, lambda what: self._tell(f"{self._task.name}, {what}")
        )
        return run.verification(), "there was too little time for mutants"

    def _in_last_state(
        self,
        runner: StateRunner,
        activity: RoundActivity,
        test: str | None,
        verification: TestVerification | None,
    ) -> tuple[Measure, Measure | None]:
        """Return dC and, where Python source was changed, contextual grounding."""
        sources = list(changed_python_files(activity, self._roles, "source"))
        if test is None:
            return not_measured(NO_TESTS), None
        if not sources:
            return not_measured("coverage is measured for Python, and no Python source was changed"), None
        if runner.trouble:
            return not_measured(runner.trouble), None
        originals = self._original_tests(activity)
        verifying = written_tests(activity, self._roles).confirmed(verification).verifying_paths
        idle = {path: before for path, before in originals.items() if path not in verifying and _is_tests(path)}
        with_tests = _covered(runner, test, idle)
        without = _covered(runner, test, originals) if originals != idle else with_tests
        return coverage_gain(with_tests, without, sources), self._grounding(runner, activity)

    def _original_tests(self, activity: RoundActivity) -> dict[str, str | None]:
        """Return the test files that the agent changed as they were before it; None for those that are new."""
        origin, now = activity.origin, activity.workspace
        return {
            path: before
            for path, before in origin.items()
            if self._roles.of(path, now.get(path)) == "tests" and now.get(path) != before
        }

    def _grounding(self, runner: StateRunner, activity: RoundActivity) -> Measure | None:
        """Return the share of the imports that the environment's Python finds."""
        names = sorted(imports := imports_of(activity, self._roles))
        if not names:
            return None
        script = _FIND.format(names="{n: u.find_spec(n) is not None for n in " + repr(names) + "}")

        def look_up(fork: Environment) -> CommandResult:
            return CommandResult.of(fork.exec(["python3", "-c", script], user=runner.round.agent_user, timeout=60))

        result = runner.in_last_state(CommandResult, ("imports", names), look_up)
        printed = re.findall(r"^\{.*", result.output, re.MULTILINE) if result is not None and result.ok else ()
        if not printed:
            return None
        found = json.loads(printed[-1])
        missing = [name for name in names if not found.get(name)]
        evidence = tuple(
            Evidence(what="not found in the environment", quote=f"{imports[name]}: {name}") for name in missing
        )
        reason = f"{len(names) - len(missing)} of {len(names)} imports"
        return measured(1 - len(missing) / len(names), reason, evidence, certainty="executed")


def _all_unmeasured(reason: str) -> ExecutedMeasures:
    nothing = not_measured(reason)
    return ExecutedMeasures(nothing, nothing, nothing, unverified=reason)


def _covered(runner: StateRunner, test: str, replaced: dict[str, str | None]) -> CoveredRun | None:
    """Run the tests with coverage in the last state, with some files replaced by other texts; None removes one."""

    def run(fork: Environment) -> CoveredRun:
        write_texts(fork, replaced)
        return run_with_coverage(fork, test, user=runner.round.agent_user, env=VERBOSE, timeout=COMMAND_LIMIT)

    key = ("coverage", test, sorted(replaced.items()), sys.version_info[:2])
    return runner.in_last_state(CoveredRun, key, run)


def _is_tests(path: str) -> bool:
    """Return whether a file has tests, and nothing that others may import from it."""
    name = path.rpartition("/")[2]
    return name.startswith("test") or "_test." in name or ".test." in name
