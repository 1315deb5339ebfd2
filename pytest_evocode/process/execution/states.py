"""Lead a workspace through its recorded states again, and run commands in as many of them as there is time for.

The way is the task's image, each round's files, and change by change. Results of commands are cached on this machine by
what the state and the command are.

The line coverage of Python files is measured under any test command: coverage.py starts with every Python interpreter
that the command starts. It is uploaded as pure Python, so that the image needs neither coverage.py nor a compiler.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from pytest_evocode.environments import Engine, Environment, ExecResult, User, read_environment_file
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import EnvironmentFault, StateNotRebuilt, TaskError, UsageError
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.outputs import broken_off, in_short_lines, read_runner_output
from pytest_evocode.secrets import withheld_from_agent
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trajectories.file_changes import File, apply_changes, write_files

logger = logging.getLogger(__name__)

#: Incremented whenever cached results change their meaning.
_FORMAT = "3"
_KEPT_OUTPUT = 4000  # characters, from the end

Stored = TypeVar("Stored", bound=BaseModel)


class CommandResult(BaseModel):
    """How a command, such as a build or a test run, ended in one state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exit_code: int | None
    timed_out: bool = False
    output: str = ""
    """The end of the output."""
    tests: dict[str, bool] = {}
    """Whether each test passed, for the tests that the output names."""
    broken_off: tuple[str, ...] = ()
    """The tests of these that ended with an error other than one of their assertions."""
    ran_tests: bool = False
    """Whether the output mentions tests at all."""

    @property
    def ok(self) -> bool:
        """Whether the command ended with exit code 0."""
        return self.exit_code == 0

    @classmethod
    def of(cls, executed: ExecResult, **more: Any) -> Self:
        """Return the result of an executed command, with the fields that a subclass adds."""
        output = in_short_lines(executed.output)
        outcome = read_runner_output(output)
        return cls(
            exit_code=executed.exit_code,
            timed_out=executed.timed_out,
            output=executed.output[-_KEPT_OUTPUT:],
            tests=dict(outcome.tests),
            broken_off=broken_off(output),
            ran_tests=outcome.passed is not None or bool(outcome.tests),
            **more,
        )


class CoveredRun(CommandResult):
    """A test run with the line coverage of the Python files that it loaded."""

    lines: dict[str, tuple[list[int], list[int]]] | None = None
    """By file, the lines that ran and the lines that did not; None where coverage could not be measured."""
    why: str = ""
    """Why coverage could not be measured."""


def key_of(*parts: object) -> str:
    """Return a name for the parts: the hash of their JSON."""
    text = json.dumps([_FORMAT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class ResultCache:
    """A directory of results, one file each."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or cache_directory() / "process"

    def get(self, key: str, kind: type[Stored]) -> Stored | None:
        """Return the result stored under a key; None where there is none."""
        with contextlib.suppress(OSError, ValueError):
            return kind.model_validate_json(self._path(key).read_bytes())
        return None

    def put(self, key: str, result: BaseModel) -> None:
        """Store a result under a key."""
        write_atomically(self._path(key), result.model_dump_json())

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"


_PLACE = "/tmp/evocode-coverage"
_LIBRARY = f"{_PLACE}/library"
_DATA = f"{_PLACE}/data"
_START = "import coverage\ncoverage.process_startup()\n"
_IMPORTABLE = f'export PYTHONPATH="{_LIBRARY}${{PYTHONPATH:+:$PYTHONPATH}}"'
_REPORT = f"python3 -m coverage combine -q {_DATA} && python3 -m coverage json -q -i -o {_PLACE}/report.json"
_REPORT_LIMIT = 16 * 2**20


def run_with_coverage(
    environment: Environment, command: str, *, user: User | None, env: Mapping[str, str], timeout: float
) -> CoveredRun:
    """Run a shell line for at most ``timeout`` seconds and return its result with the coverage.

    Raises:
        UsageError: coverage.py is not installed on this machine.
    """
    _install(environment)
    settings = {**env, "COVERAGE_RCFILE": f"{_PLACE}/settings"}
    started = {**settings, "COVERAGE_PROCESS_START": f"{_PLACE}/settings"}
    executed = environment.exec(f"{_IMPORTABLE}\n{command}", user=user, env=started, timeout=timeout)
    report = environment.exec(f"{_IMPORTABLE}\n{_REPORT}", user=user, env=settings, timeout=60)
    found = read_environment_file(environment, f"{_PLACE}/report.json", _REPORT_LIMIT) if report.ok else None
    if found is None:
        why = f"coverage could not be measured: {report.output.strip()[-200:] or 'nothing ran'}"
        return CoveredRun.of(executed, why=why)
    files = json.loads(found)["files"].items()
    lines = {path: (each["executed_lines"], each["missing_lines"]) for path, each in files}
    return CoveredRun.of(executed, lines=lines)


def _install(environment: Environment) -> None:
    try:
        sources = [file for file in importlib.metadata.files("coverage") or () if file.suffix == ".py"]
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(
            "coverage.py is not installed; install it with: pip install 'pytest-evocode[process]'"
        ) from None
    with scratch_directory() as name:
        library = Path(name, "library")
        for file in sources:
            if ".." not in file.parts:
                place = library / str(file)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), place)
        (library / "sitecustomize.py").write_text(_START)
        settings = f"[run]\nparallel = true\nsource = {environment.workdir}\ndata_file = {_DATA}/lines\n"
        settings += "disable_warnings = no-ctracer, no-data-collected, module-not-imported\nrelative_files = true\n"
        Path(name, "settings").write_text(settings)
        environment.upload([Path(name)], _PLACE, writable=True)
    environment.make_directories([_DATA])


def covered_share(lines: Mapping[str, Sequence[Sequence[int]]], paths: Iterable[str]) -> tuple[int, int]:
    """Return how many lines of some files ran, and how many could have; a file that was never loaded has none."""
    ran = total = 0
    for path in paths:
        executed, missing = lines.get(path, ((), ()))
        ran += len(executed)
        total += len(executed) + len(missing)
    return ran, total


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """A recorded state of the workspace."""

    position: int
    """The number of operations that lead to it from the task's image."""
    key: str
    """Equal for equal contents."""
    at: int
    """The position of the call in the round that led to it; 0 for the start of the round."""


class Timeline:
    """Applies the operations of an attempt in order, each once, and only as far as a state is asked for."""

    def __init__(self, task: Task, engine: Engine | None) -> None:
        self._task = task
        self.has_engine = engine is not None
        """Whether anything can be run."""
        self._task_environment: TaskEnvironment | None = None
        if engine is not None:
            self._task_environment = TaskEnvironment(task, engine, os.environ, withheld_from_agent(os.environ, ()))
        self._operations: list[Round | Mapping[str, Any]] = []
        environment = task.config.environment.model_dump(mode="json")
        self._key = key_of(hash_directory(task.environment_directory), environment)
        self._environment: Environment | None = None
        self._played = 0
        self._lost = ""

    def extend(self, round_: Round, activity: RoundActivity) -> list[WorkspaceState]:
        """Add a round and return its states: its start, and one after each change of the product."""
        self._operations.append(round_)
        brought = hash_directory(round_.workdir) if round_.workdir is not None else ""
        self._key = key_of(self._key, round_.name, brought)
        states = [WorkspaceState(len(self._operations), self._key, 0)]
        for change in activity.state_changes:
            self._operations.append(change.table)
            self._key = key_of(self._key, change.table)
            if change.of_product and activity.is_used(change.table["path"]):
                states.append(WorkspaceState(len(self._operations), self._key, change.at))
        if len(states) > 1:  # Changes outside the product after the last state belong to it.
            states[-1] = WorkspaceState(len(self._operations), self._key, states[-1].at)
        return states

    @contextlib.contextmanager
    def fork(self, state: WorkspaceState, round_: Round) -> Iterator[Environment]:
        """Yield a throw-away environment in a state; states have to be asked for in order.

        Raises:
            StateNotRebuilt: The recorded changes do not lead to the state.
            EnvironmentFault: The engine failed.
        """
        environment = self._advance(state.position)
        with contextlib.ExitStack() as stack:
            snapshot = environment.snapshot()
            stack.callback(snapshot.discard)
            fork = environment.fork(snapshot, network=round_.verifier_network)
            stack.callback(fork.stop)
            fork.start()
            yield fork

    def close(self) -> None:
        """Stop the environment."""
        if self._environment is not None:
            with contextlib.suppress(EnvironmentFault):
                self._environment.stop()
            self._environment = None

    def _advance(self, position: int) -> Environment:
        if self._lost:
            raise StateNotRebuilt(self._lost)
        environment = self._environment or self._start()
        if position < self._played:
            raise StateNotRebuilt("the state has been passed")
        changes: list[Mapping[str, Any]] = []
        for operation in self._operations[self._played : position]:
            if isinstance(operation, Round):
                self._apply(environment, changes)
                changes = []
                self._begin(environment, operation)
            else:
                changes.append(operation)
        self._apply(environment, changes)
        self._played = position
        return environment

    def _start(self) -> Environment:
        if self._task_environment is None:
            raise StateNotRebuilt("nothing was executed")
        logger.debug("%s: starting an environment to rebuild recorded states", self._task.name)
        self._environment = self._task_environment.create()
        try:
            self._task_environment.start(self._environment)
        except TaskError as error:
            raise self._give_up(str(error).partition("\n")[0]) from None
        return self._environment

    def _begin(self, environment: Environment, round_: Round) -> None:
        assert self._task_environment is not None
        try:
            # A round's healthcheck may need services that the agent had started, and none of them runs here.
            self._task_environment.prepare_round(environment, round_, wait_until_healthy=False)
        except TaskError:
            raise self._give_up(f"setup.sh of {round_.name} failed") from None

    def _apply(self, environment: Environment, changes: list[Mapping[str, Any]]) -> None:
        if not changes:
            return
        refused = apply_changes(environment, changes, user=self._task.rounds[0].agent_user)
        if refused:
            path, reason = next(iter(refused.items()))
            raise self._give_up(f"{path}: {reason}")

    def _give_up(self, reason: str) -> StateNotRebuilt:
        logger.info("%s: the recorded states cannot be rebuilt: %s", self._task.name, reason)
        self._lost = f"the recorded states cannot be rebuilt: {reason}"
        return StateNotRebuilt(self._lost)


#: Seconds for one build or test run.
COMMAND_LIMIT = 120.0
#: Makes test runners name the tests that pass; each takes its own variables and ignores the others.
VERBOSE = {"PYTEST_ADDOPTS": "-rA -p no:cacheprovider", "GOFLAGS": "-v", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}

Result = TypeVar("Result", bound=CommandResult)


@dataclass(slots=True)
class StateRunner:
    """Runs commands in forks of one round's states, until a deadline on :func:`time.monotonic`."""

    timeline: Timeline
    """Without an engine only cached results are known."""
    cache: ResultCache
    round: Round
    states: Sequence[WorkspaceState]
    """In order; the first is the start of the round."""
    deadline: float
    trouble: str = ""
    """Why a state could not be rebuilt."""

    def allow(self, seconds: float) -> None:
        """Put the deadline off, by what something took that has a budget of its own."""
        self.deadline += seconds

    def run(self, commands: Mapping[str, str]) -> dict[str, dict[int, CommandResult]]:
        """Run builds and tests in the states; where time is short, in a sample spread evenly over them.

        Args:
            commands: Shell lines by name. One called ``build`` is not run in the first state, which is not the
                agent's work.

        Returns:
            By name, the results by the number of the state.
        """
        results: dict[str, dict[int, CommandResult]] = {name: {} for name in commands}
        missing: dict[int, list[str]] = {}
        for number, state in enumerate(self.states):
            for name, command in commands.items():
                if number == 0 and name == "build":
                    continue
                if (known := self.cache.get(key_of(state.key, name, command), CommandResult)) is not None:
                    results[name][number] = known
                else:
                    missing.setdefault(number, []).append(name)
        took: list[float] = []

        def affordable() -> int:
            """Return how many more states there is time for, given the seconds that the others took."""
            return max(0, int((self.deadline - time.monotonic()) * len(took) / sum(took)))

        for number in evenly(list(missing), affordable) if self.timeline.has_engine else ():
            began = time.monotonic()
            try:
                with self.timeline.fork(self.states[number], self.round) as fork:
                    for name in missing[number]:
                        results[name][number] = self._execute(fork, self.states[number], name, commands[name])
            except StateNotRebuilt as lost:
                self.trouble = str(lost)
                break
            took.append(time.monotonic() - began)
        logger.debug("%s: ran %d of %d states", self.round.name, len(took), len(missing))
        return results

    def in_last_state(
        self, kind: type[Result], key: Sequence[object], run: Callable[[Environment], Result], *, late: bool = False
    ) -> Result | None:
        """Return the cached result for the last state, or run it there; None without an engine or time for that.

        With ``late`` it is run after the deadline, too, as something that has a budget of its own.
        """
        state = self.states[-1]
        name = key_of(state.key, *key)
        known = self.cache.get(name, kind)
        if known is not None or not self.timeline.has_engine or (time.monotonic() > self.deadline and not late):
            return known
        with self.timeline.fork(state, self.round) as fork:
            result = run(fork)
        self.cache.put(name, result)
        return result

    def _execute(self, fork: Environment, state: WorkspaceState, name: str, command: str) -> CommandResult:
        limit = max(5.0, min(COMMAND_LIMIT, self.deadline - time.monotonic() + 5.0))
        result = CommandResult.of(fork.exec(command, user=self.round.agent_user, env=VERBOSE, timeout=limit))
        if not result.timed_out or limit == COMMAND_LIMIT:  # A run that the budget cut short is no result.
            self.cache.put(key_of(state.key, name, command), result)
        return result


def evenly(numbers: Sequence[int], affordable: Callable[[], int]) -> Iterator[int]:
    """Yield the first number, then as many as ``affordable`` allows by then, evenly spread up to the last."""
    yield from numbers[:1]
    left = numbers[1:]
    while left and (count := min(affordable(), len(left))) > 0:
        index = -(-len(left) // count) - 1
        yield left[index]
        left = left[index + 1 :]


def write_texts(fork: Environment, texts: Mapping[str, str | None]) -> None:
    """Write the texts of some files into an environment; None removes a file."""
    files = {
        path: None if text is None else File(content=text.encode("utf-8", "surrogateescape"))
        for path, text in texts.items()
    }
    write_files(fork, files, user=None)
