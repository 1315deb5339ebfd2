"""The workspace as it is after a round, passed or failed, for somebody to look at; no suite is run for that."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT
from pytest_evocode.errors import AgentFault, EvocodeError, FilesNotListed, UsageError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import SnapshotFile
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.trajectories.atif import Trajectory, actions_of
from pytest_evocode.trajectories.file_changes import apply_changes
from pytest_evocode.trajectories.workspace_listing import list_files, read_files
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.reference_states import ReferenceStates

Texts = Mapping[str, str]
"""The texts of files by their paths relative to the working directory."""
MakeEngine = Callable[[str], Engine]
"""Returns the engine of a name, which it closes itself."""

_FILES = 2000
_FILE = 2**20  # bytes
_ALL = 16 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class RoundWorkspace:
    """A running environment with the files of one moment of an attempt, and none of its processes."""

    environment: Environment
    fault: str = ""
    """Why the reference solution of the round broke off, whose files these are then; empty where it did not."""


class ReferenceWorkspaces:
    """The workspaces that a task's reference solutions lead to.

    What is kept of them on this machine is used, and what is not is played and kept. ``playing`` is told which round's
    solution is about to be played.
    """

    def __init__(
        self,
        task: Task,
        engine: Engine,
        *,
        environ: Mapping[str, str] = os.environ,
        playing: Callable[[Round], None] = lambda round_: None,
    ) -> None:
        self._task = task
        self._playing = playing
        self._context = TrialContext.of(task, engine, TrialOptions(environ=environ))
        self._states = ReferenceStates(engine, task, environ)

    @contextlib.contextmanager
    def after(self, index: int) -> Iterator[RoundWorkspace]:
        """Start an environment with the files as the solution of a round (from 1) leaves them, and stop it in the end.

        With 0 they are those that the first round begins with.

        Raises:
            AgentFault: The solution of an earlier round fails.
            TaskError: Something is wrong with the task.
            EnvironmentFault: The engine failed.
        """
        with contextlib.ExitStack() as life:
            with self._states.making(self._context.cancelled):
                known, environment = self._nearest(index, life)
                fault = self._play(environment, known, index)
            environment.kill_processes()  # What solutions started does not run where their states were kept.
            yield RoundWorkspace(environment, fault)

    def _nearest(self, index: int, life: contextlib.ExitStack) -> tuple[int, Environment]:
        """Start an environment at the last state that is known up to a round, and return that state's round, too."""
        task_environment = self._context.task_environment
        with self._states.held():  # Until the files are copied, so that nobody drops them.
            kept = ((each, self._states.find(each, accepted=False)) for each in range(index, 0, -1))
            known, state = next(((each, state) for each, state in kept if state is not None), (0, None))
            environment = task_environment.create(snapshot=state)
            life.callback(environment.stop)
            environment.start()
        if known < index or not index:
            task_environment.make_ready(environment)
        else:  # Nothing is to run there whose health would have to be waited for.
            environment.remove(HIDDEN_FROM_AGENT)
        return known, environment

    def _play(self, environment: Environment, known: int, last: int) -> str:
        """Play the solutions after the known round up to the last, and return why that one broke off."""
        if not last:
            self._context.task_environment.prepare_round(environment, self._task.rounds[0])
        turns = AgentTurns(self._context, OracleAgent())
        for round_ in self._task.rounds[known:last]:
            self._playing(round_)
            try:
                turn = turns.take(environment, round_)
            except AgentFault as error:
                if round_.index == last:
                    return str(error)
                raise
            if turn.timed_out:
                return self._timed_out(round_, last)
            snapshot = environment.snapshot()
            try:
                self._states.keep(round_.index, snapshot, accepted=False)
            finally:
                snapshot.discard()
        return ""

    def _timed_out(self, round_: Round, last: int) -> str:
        why = f"{round_.directory / 'solution/solve.sh'}: the reference solution did not end in its time"
        if round_.index < last:
            raise AgentFault(why)
        return why


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
