"""A workspace that is led through recorded states once more: the task's image, the rounds' files, change by change."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_evocode.environments import Engine, Environment, Snapshot
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import EnvironmentFault, StateNotRebuilt, TaskError
from pytest_evocode.process.execution.command_results import key_of
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.secrets import withheld_from_agent
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trajectories.file_changes import apply_changes


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """A state: so many operations after the image; ``key`` names its contents."""

    position: int
    key: str
    at: int
    """The place in the round's trajectory; 0 is the round's beginning."""


class Timeline:
    """Plays the operations of an attempt in their order, each once, and only as far as somebody asks."""

    def __init__(self, task: Task, engine: Engine | None) -> None:
        self._task = task
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
        """Add a round, and return its states: the beginning, and one behind each change of the product."""
        self._operations.append(round_)
        brought = hash_directory(round_.workdir) if round_.workdir is not None else ""
        self._key = key_of(self._key, round_.name, brought)
        points = [WorkspaceState(len(self._operations), self._key, 0)]
        for change in activity.replay:
            self._operations.append(change.table)
            self._key = key_of(self._key, change.table)
            if change.of_product:
                points.append(WorkspaceState(len(self._operations), self._key, change.at))
        if len(points) > 1:  # What belongs to the last state without being of the product.
            points[-1] = WorkspaceState(len(self._operations), self._key, points[-1].at)
        return points

    @contextlib.contextmanager
    def fork(self, point: WorkspaceState, round_: Round) -> Iterator[Environment]:
        """Yield a throw-away environment in a state; ask for states in their order.

        Raises StateNotRebuilt and EnvironmentFault.
        """
        environment = self._advance(point.position)
        snapshot = environment.snapshot()
        try:
            with _started(environment, snapshot, round_) as fork:
                yield fork
        finally:
            snapshot.discard()

    def close(self) -> None:
        """Stop the environment."""
        if self._environment is not None:
            with contextlib.suppress(EnvironmentFault):
                self._environment.stop()
            self._environment = None

    @property
    def has_engine(self) -> bool:
        """Whether anything can be run."""
        return self._task_environment is not None

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
        self._environment = self._task_environment.create()
        try:
            self._task_environment.start(self._environment)
        except TaskError as error:
            raise self._give_up(str(error)) from None
        return self._environment

    def _begin(self, environment: Environment, round_: Round) -> None:
        assert self._task_environment is not None
        try:
            # A round's healthcheck may ask for services that the agent had started, and none of them runs here.
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
        self._lost = f"the recorded states cannot be rebuilt: {reason}"
        return StateNotRebuilt(self._lost)


@contextlib.contextmanager
def _started(environment: Environment, snapshot: Snapshot, round_: Round) -> Iterator[Environment]:
    fork = environment.fork(snapshot, network=round_.verifier_network)
    try:
        fork.start()
        yield fork
    finally:
        fork.stop()
