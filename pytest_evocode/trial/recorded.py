"""What can be had of recorded attempts: new verdicts by today's suites, and the files that rounds were left with.

Both come from kept snapshots, without an agent; files of rounds without one are made from the recorded changes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from pytest_evocode.environments import Engine, Environment, choose_engine
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT
from pytest_evocode.errors import EvocodeError, FilesNotListed, RegradingRefused, UsageError, describe_error
from pytest_evocode.names import TASK_FILE
from pytest_evocode.results.directory import AttemptDirectory, now, write_changes
from pytest_evocode.results.forks import inherited_rounds
from pytest_evocode.results.harbor_files import write_job_of
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import AttemptRecord, RoundRecord, SnapshotFile, task_facts
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.trajectories.atif import Trajectory, actions_of
from pytest_evocode.trajectories.file_changes import apply_changes
from pytest_evocode.trajectories.workspace_changes import list_files, read_files
from pytest_evocode.trial.context import TrialContext, TrialOptions
from pytest_evocode.trial.references import ReferenceChanges, RoundWorkspace
from pytest_evocode.trial.suites.runner import ControlledSuites, SuiteRunner
from pytest_evocode.verifier import SuiteRun, as_recorded, compare_cases, ended_by, judge


@dataclass(slots=True)
class Regraded:
    """What came of verifying an attempt again."""

    attempt: StoredAttempt
    before: tuple[RoundRecord, ...] = ()
    """The attempt's rounds as they were, with all cases; empty where nothing could be verified."""
    after: tuple[RoundRecord, ...] = ()
    """The rounds as they are now, in the same order."""
    verified: int = 0
    """How many rounds have a new verdict."""
    same_task: bool = False
    """Whether the task's files are what they were, so that a verdict that has changed is flaky."""
    problems: list[str] = field(default_factory=list)
    """Why the attempt, or some of its rounds, kept the verdicts that they had."""


class Regrader:
    """Verifies attempts again, with the ``tasks`` given by name, or else those in the recorded directories.

    ``images`` are as for :func:`~pytest_evocode.environments.choose_engine`.
    """

    def __init__(
        self,
        tasks: Mapping[str, Path],
        environ: Mapping[str, str] = os.environ,
        images: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self._tasks = tasks
        self._images = images
        self._environ = environ
        self._scrubber = Scrubber(environ)
        self._engines: dict[str, Engine] = {}

    def __enter__(self) -> Regrader:
        return self

    def __exit__(self, *error: object) -> None:
        for engine in self._engines.values():
            engine.close()

    def regrade(self, attempt: StoredAttempt) -> Regraded:
        """Verify the rounds of an attempt whose states are kept, and write the new verdicts beside the old ones."""
        found = Regraded(attempt)
        try:
            self._regrade(found, AttemptDirectory(attempt.path, self._scrubber))
        except (EvocodeError, OSError) as error:
            found.problems.append(self._scrubber.text(str(error)))
        return found

    def _regrade(self, found: Regraded, directory: AttemptDirectory) -> None:
        record = directory.read_attempt()
        if record is None:
            raise RegradingRefused("it was not finished; continue it with --evocode-resume")
        snapshots = ((each.index, directory.read_snapshot(each.round)) for each in record.rounds)
        kept = {index: snapshot for index, snapshot in snapshots if snapshot is not None}
        if not kept:
            raise RegradingRefused(
                "no round's files were kept, which takes a run with --evocode-snapshots; --evocode-agent=replay:"
                f"{directory.path} plays the recorded changes again"
            )
        task = self._load(record, next(iter(kept.values())))
        found.same_task = content_hash(task.directory) == record.task_hash
        suites = self._verify(task, kept, found, is_oracle=_is_oracle(record))
        found.before, found.verified = record.rounds, len(suites)
        found.after = self._judged(task, directory, record, kept, suites)
        if suites:
            self._write(directory, task, record, found.after, suites)

    def _load(self, record: AttemptRecord, kept: SnapshotFile) -> Task:
        task = load_task(self._tasks.get(record.task, Path(kept.task)))
        task = task.with_reward_key(record.facts.reward_key if record.facts else "")
        task = task.judged(kept.verify)
        names = tuple(round_.name for round_ in task.rounds)
        if names != record.declared_rounds:
            raise RegradingRefused(f"{task.directory} has other rounds now: {', '.join(names)}")
        if task.in_place:
            raise RegradingRefused(
                f"{task.directory} is verified in place, by what runs there, and only files are kept"
            )
        engine = self._engine(kept.environment)
        if engine.image_key(task) != kept.image:
            raise RegradingRefused(
                f"the image of {task.directory} is another one now, which its rounds were not left in"
            )
        return task

    def _engine(self, name: str) -> Engine:
        if name not in self._engines:
            self._engines[name], _ = choose_engine(name, hidden=[Path.cwd()], images=self._images)
        return self._engines[name]

    def _verify(
        self, task: Task, kept: Mapping[int, SnapshotFile], found: Regraded, *, is_oracle: bool
    ) -> dict[int, SuiteRun]:
        """Run the suites, several at once; those that give no verdict become problems of the attempt."""
        first = next(iter(kept.values()))
        options = TrialOptions(environ=self._environ, timeout_multiplier=first.timeout_multiplier, strict=first.strict)
        context = TrialContext.of(task, self._engine(first.environment), options, is_authors=is_oracle)
        suites = SuiteRunner(context, ReferenceChanges(context), is_oracle=is_oracle)
        suites.prepare()
        controlled = ControlledSuites(context, suites, is_oracle=is_oracle)
        environment = context.task_environment.create()  # Never started: it is what forks are made from.

        begun: dict[int, Future[SuiteRun]] = {}

        def run(round_: Round, earlier: Sequence[Future[SuiteRun]]) -> SuiteRun:
            wait(earlier)
            context.task_environment.refuse_when_cancelled()
            snapshot = context.engine.find_snapshot(kept[round_.index].reference)
            if snapshot is None:
                raise RegradingRefused("its files are not on this machine, or were removed by evocode clean --kept")
            times = kept[round_.index].verify_times
            suite, left = controlled.run(environment, snapshot, round_, times)
            if left is not None:
                suites.let_go(left)
            return suite

        with ThreadPoolExecutor(context.slots.count, thread_name_prefix="regrade") as pool:
            for index in kept:
                # What a suite leaves for the next one is there once that of the round before has run.
                earlier = list(begun.values()) if suites.state.paths else []
                begun[index] = pool.submit(run, task.rounds[index - 1], earlier)
            try:
                done = self._completed(task, begun, found)
                suites.close()
                return done
            except BaseException:  # Such as Ctrl-C: the pool would wait until all suites have ended by themselves.
                context.cancelled.set()
                while not all(future.done() for future in begun.values()):
                    # Repeatedly, because a fork may have been about to start during an earlier call.
                    suites.stop()
                    time.sleep(0.05)
                suites.close()
                raise

    def _completed(self, task: Task, begun: Mapping[int, Future[SuiteRun]], found: Regraded) -> dict[int, SuiteRun]:
        """Wait for the suites of rounds, and return those with a verdict."""
        done = {}
        for index, future in begun.items():
            name = task.rounds[index - 1].name
            try:
                suite = future.result()
            except Exception as error:
                found.problems.append(f"{name}: {self._scrubber.text(describe_error(error))}")
                continue
            if suite.verdict is None and not suite.of_agent:
                found.problems.append(f"{name}: {self._scrubber.text(suite.fault)}")
            else:
                done[index] = suite
        return done

    def _judged(
        self,
        task: Task,
        directory: AttemptDirectory,
        record: AttemptRecord,
        kept: Mapping[int, SnapshotFile],
        suites: Mapping[int, SuiteRun],
    ) -> tuple[RoundRecord, ...]:
        """Return all rounds in order, with what the suites say of them now."""
        rounds: list[RoundRecord] = []
        last, alone = "", record.mode == "single-round"
        fork = record.forked_from
        inherited = inherited_rounds(directory.path, fork, record.task) if fork is not None else ()
        for old in record.rounds:
            new = old
            if last:
                new = _not_reached(old, last)
            elif (suite := suites.get(old.index)) is not None:
                # Each single round begins where the solutions of those before lead, as the first of a chain may.
                before = [] if alone else [*inherited, *rounds]
                new = self._judge(task, old, kept[old.index], suite, before, _is_oracle(record))
            rounds.append(new)
            if not alone and new.verdict is not None and ended_by(task.rounds[old.index - 1], new, record.mode):
                last = old.round
        return tuple(rounds)

    def _judge(
        self,
        task: Task,
        old: RoundRecord,
        kept: SnapshotFile,
        suite: SuiteRun,
        earlier: list[RoundRecord],
        is_oracle: bool,
    ) -> RoundRecord:
        record = judge(
            task.rounds[old.index - 1],
            old,
            suite,
            agent_timed_out=old.timed_out == "agent",
            timeout_multiplier=kept.timeout_multiplier,
            strict=kept.strict,
            is_oracle=is_oracle,
        )
        held = [each.name for each in task.rounds if each.index < min((old.index, *(one.index for one in earlier)))]
        return compare_cases(as_recorded(record, self._scrubber), earlier, held)

    def _write(
        self,
        directory: AttemptDirectory,
        task: Task,
        record: AttemptRecord,
        rounds: tuple[RoundRecord, ...],
        suites: Mapping[int, SuiteRun],
    ) -> None:
        """Write the new verdicts, after the old ones were set aside."""
        directory.set_aside()
        for round_ in rounds:
            if (suite := suites.get(round_.index)) is not None:
                if suite.changes is not None:
                    write_changes(directory.path, suite.changes, self._scrubber)
                directory.write_round(round_, output=suite.output, done=True)
        begun = record.declared_rounds.index(record.from_round) if record.from_round in record.declared_rounds else 0
        changes = {
            "rounds": rounds,
            "rewards": trial_rewards(rounds, range(begun + 1, len(task.rounds) + 1), task.reward_strategy),
            "task_hash": content_hash(task.directory),
            "facts": task_facts(task),
            "regraded": now(),
            "conditions": record.conditions and {**record.conditions, "version": version("pytest-evocode")},
        }
        directory.write_attempt(record.model_copy(update=changes))
        write_job_of(directory.path)


def _is_oracle(record: AttemptRecord) -> bool:
    return record.made_by.get("spec") == "oracle"


def _not_reached(record: RoundRecord, by: str) -> RoundRecord:
    if record.outcome == "not reached":
        return record
    cause = f"{by} would have ended the attempt, verified again"
    return record.model_copy(update={"outcome": "not reached", "cause": cause, "verdict": None, "fault": None})


Texts = Mapping[str, str]
"""The texts of files by their paths relative to the working directory."""
MakeEngine = Callable[[str], Engine]
"""Returns the engine of a name, which it closes itself."""

_FILES = 2000
_FILE = 2**20  # bytes
_ALL = 16 * 2**20  # bytes


@contextlib.contextmanager
def recorded_workspace(task: Task, engine: Engine, kept: SnapshotFile) -> Iterator[RoundWorkspace]:
    """Start an environment with the files that a recorded attempt left a round with, and stop it in the end.

    Args:
        task: The task as it is now.
        engine: An engine of the kind that the attempt was made in.
        kept: Where the files are kept.

    Raises:
        UsageError: The files cannot be had any more, and the message says why.
        EnvironmentFault: The engine failed.
    """
    snapshot = engine.find_snapshot(kept.reference)
    if snapshot is None:
        raise UsageError("the files of that round are not on this machine, or were removed by evocode clean --kept")
    if engine.image_key(task) != kept.image:
        raise UsageError(f"the image of {task.directory} is another one now, which that round was not left in")
    environment = TrialContext.of(task, engine, TrialOptions()).task_environment.create(snapshot=snapshot)
    try:
        environment.start()
        environment.remove(HIDDEN_FROM_AGENT)
        yield RoundWorkspace(environment)
    finally:
        environment.stop()


@dataclass(slots=True)
class RoundTexts:
    """What is known of the rounds of one attempt."""

    texts: dict[int, Texts] = field(default_factory=dict)
    """By round index, at most 2000 regular files of UTF-8 text of up to 1 MiB, 16 MiB together."""
    missing: dict[int, str] = field(default_factory=dict)
    """Why a round has none, by its index."""


def task_directory(attempt: StoredAttempt) -> Path | None:
    """Return where the task of an attempt was when a snapshot was kept; None where none was, or it is gone."""
    directory = AttemptDirectory(attempt.path)
    for each in attempt.record.rounds:
        with contextlib.suppress(EvocodeError):
            kept = directory.read_snapshot(each.round)
            if kept is not None and (Path(kept.task) / TASK_FILE).is_file():
                return Path(kept.task)
    return None


def round_texts(attempt: StoredAttempt, task: Task, engine_of: MakeEngine) -> RoundTexts:
    """Return the files that each round of a recorded attempt was left with.

    Where a snapshot was kept, they are read from that; otherwise the recorded changes are made again, in the task's
    image and with what its rounds bring. No agent and no suite is run.

    Args:
        attempt: An attempt of ours.
        task: Its task, as it is now.
        engine_of: Returns the engine that an environment is started in.
    """
    found = RoundTexts()
    directory = AttemptDirectory(attempt.path)
    begun = {each.index: each for each in attempt.record.rounds if each.outcome != "not reached"}
    for index in sorted(begun):
        with _told(found, index):
            kept = directory.read_snapshot(begun[index].round)
            if kept is None:
                continue
            with recorded_workspace(task, engine_of(kept.environment), kept) as workspace:
                found.texts[index] = _read(workspace.environment)
    wanted = [index for index in sorted(begun) if index not in found.texts and index not in found.missing]
    if wanted:
        _rebuild(attempt, task, engine_of, wanted, found)
    return found


def _rebuild(attempt: StoredAttempt, task: Task, engine_of: MakeEngine, wanted: list[int], found: RoundTexts) -> None:
    """Make the recorded changes again, up to the last wanted round; the first that does not fit ends it."""
    record = attempt.record
    with contextlib.ExitStack() as life:
        with _told(found, *wanted):
            _refuse(attempt, task)
            changes = {round_.index: _changes(attempt.path, round_) for round_ in task.rounds[: wanted[-1]]}
            task_environment = TrialContext.of(task, engine_of(record.environment), TrialOptions()).task_environment
            environment = task_environment.create()
            life.callback(environment.stop)
            task_environment.start(environment)
        if wanted[0] in found.missing:
            return
        for round_ in task.rounds[: wanted[-1]]:
            later = [index for index in wanted if index >= round_.index]
            with _told(found, *later):
                # A round's healthcheck may need services that the agent had started, and none of them runs here.
                task_environment.prepare_round(environment, round_, wait_until_healthy=False)
                if refused := apply_changes(environment, changes[round_.index], user=round_.agent_user):
                    path, why = next(iter(refused.items()))
                    raise UsageError(f"the recorded changes of {round_.name} do not lead to its files: {path}: {why}")
                if round_.index in wanted:
                    found.texts[round_.index] = _read(environment)
            if round_.index in found.missing or not later:
                return


def _refuse(attempt: StoredAttempt, task: Task) -> None:
    record = attempt.record
    if record.forked_from is not None:
        raise UsageError("it went on from another attempt's files, so it takes --evocode-snapshots")
    if record.mode == "single-round" or record.from_round is not None:
        raise UsageError("its rounds began with what the reference solutions lead to, so it takes --evocode-snapshots")
    if record.task_hash and record.task_hash != content_hash(task.directory):
        raise UsageError(f"{task.directory} has changed since, so it takes --evocode-snapshots")


def _changes(attempt: Path, round_: Round) -> list[Mapping[str, Any]]:
    """Return what changed in an agent's turn, in order; raises UsageError where that was not recorded."""
    path = attempt / "steps" / round_.name / "agent" / "trajectory.json"
    try:
        trajectory = Trajectory.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise UsageError(
            f"{round_.name} has no trajectory, and no snapshot, which a run with --evocode-snapshots keeps"
        ) from None
    ours = (trajectory.extra or {}).get("evocode")
    about = ours if isinstance(ours, dict) else {}
    actions = [*(action for step in trajectory.steps for action in actions_of(step)), about]
    if not about.get("watched") or any(action.get("unrecorded") for action in actions):
        raise UsageError(f"not all changes of {round_.name} were recorded, so it takes --evocode-snapshots")
    return [change for action in actions for change in action.get("changes") or ()]


def _read(environment: Environment) -> Texts:
    try:
        listed = list_files(environment)
    except FilesNotListed as error:
        raise UsageError(f"the files cannot be listed: {error}") from None
    paths: list[str] = []
    left = _ALL
    for path, entry in sorted(listed.items()):
        if entry.symlink is None and entry.size <= min(_FILE, left) and len(paths) < _FILES:
            paths.append(path)
            left -= entry.size
    texts: dict[str, str] = {}
    for path, content in sorted(read_files(environment, paths, _FILE).items()):
        with contextlib.suppress(UnicodeDecodeError):
            if b"\0" not in content:
                texts[path] = content.decode()
    return texts


@contextlib.contextmanager
def _told(found: RoundTexts, *indices: int) -> Iterator[None]:
    """Note why rounds have no texts, where that cannot be had."""
    try:
        yield
    except (EvocodeError, OSError) as error:
        found.missing.update(dict.fromkeys(indices, str(error).partition("\n")[0]))
