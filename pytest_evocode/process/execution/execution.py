"""The executor of an attempt: builds, tests and coverage in its states, within a budget and with cached results."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.errors import EnvironmentFault, StateNotRebuilt, TaskError
from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured
from pytest_evocode.process.execution.command_results import CommandResult, CoveredRun, ResultCache
from pytest_evocode.process.execution.coverage import run_with_coverage
from pytest_evocode.process.execution.mutation import MutationRun
from pytest_evocode.process.execution.reference_diff import reference_lines
from pytest_evocode.process.execution.state_measures import StateMeasures, coverage_gain
from pytest_evocode.process.execution.state_runner import COMMAND_LIMIT, VERBOSE, StateRunner
from pytest_evocode.process.execution.timeline import Timeline
from pytest_evocode.process.pillars.extended import changed_python_files, imports_of
from pytest_evocode.process.protocols import ExecutedMeasures
from pytest_evocode.process.tests_written import TestVerification, written_tests
from pytest_evocode.process.tests_written.python import parse
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.project_kinds import purposes_of, recognise_project, roles_of
from pytest_evocode.process.trajectory.workspace_texts import TaskTexts
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.file_changes import File, write_files

logger = logging.getLogger(__name__)

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
        verification = self._verification(runner, activity, test)
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
            grounding=grounding,
            reference_lines=reference_lines(self._task, self._engine, runner.round, self._roles, self._cache),
        )

    def _commands(self, activity: RoundActivity) -> tuple[str | None, str | None]:
        """Return how the project is built and tested: as declared, or by its kind at the end of the round."""
        now = activity.workspace
        original = {path: text for path, text in self._files.context.items() if not now.get(path)}
        purposes = purposes_of(self._task.process, recognise_project({**now, **original}))
        return purposes.build, purposes.test

    def _verification(self, runner: StateRunner, activity: RoundActivity, test: str | None) -> TestVerification | None:
        """Return which of the agent's tests fail for mutants of the Python that the attempt has changed so far."""
        now, roles = activity.workspace, self._roles
        sources = [
            path
            for path, before in activity.origin.items()
            if path.endswith(".py") and now.get(path, before) != before and roles.of(path, now.get(path)) == "source"
        ]
        sources = [path for path in sources if path in now and activity.is_used(path)]
        if test is None or not sources or runner.trouble or any(not _parses(now[path]) for path in sources):
            return None
        tests = written_tests(activity, roles)
        budget, tell = self._mutation_budget, self._tell_of_task
        return MutationRun(runner, activity, test, tuple(sources), tests, budget, tell).verification()

    def _tell_of_task(self, what: str) -> None:
        self._tell(f"{self._task.name}, {what}")

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
            return not_measured("no test command is declared, and none is recognised"), None
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
        found = _last_json(result.output) if result is not None and result.ok else None
        if found is None:
            return None
        missing = [name for name in names if not found.get(name)]
        evidence = tuple(
            Evidence(what="not found in the environment", quote=f"{imports[name]}: {name}") for name in missing
        )
        reason = f"{len(names) - len(missing)} of {len(names)} imports"
        return measured(1 - len(missing) / len(names), reason, evidence, certainty="executed")


def _all_unmeasured(reason: str) -> ExecutedMeasures:
    nothing = not_measured(reason)
    return ExecutedMeasures(nothing, nothing, nothing)


def _covered(runner: StateRunner, test: str, replaced: dict[str, str | None]) -> CoveredRun | None:
    """Run the tests with coverage in the last state, with some files replaced by other texts; None removes one."""

    def run(fork: Environment) -> CoveredRun:
        write_files(fork, {path: _file(text) for path, text in replaced.items()}, user=None)
        return run_with_coverage(fork, test, user=runner.round.agent_user, env=VERBOSE, timeout=COMMAND_LIMIT)

    key = ("coverage", test, sorted(replaced.items()), sys.version_info[:2])
    return runner.in_last_state(CoveredRun, key, run)


def _parses(text: str) -> bool:
    try:
        parse(text)
    except SyntaxError:
        return False
    return True


def _is_tests(path: str) -> bool:
    """Return whether a file has tests, and nothing that others may import from it."""
    name = path.rpartition("/")[2]
    return name.startswith("test") or "_test." in name or ".test." in name


def _file(text: str | None) -> File | None:
    return None if text is None else File(content=text.encode("utf-8", "surrogateescape"))


def _last_json(output: str) -> dict[str, bool] | None:
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            found: dict[str, bool] = json.loads(line)
            return found
    return None
