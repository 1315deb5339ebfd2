"""Lead a workspace through its recorded states again: the task's image, each round's files, change by change."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import EnvironmentFault, StateNotRebuilt, TaskError
from pytest_evocode.process.execution.command_results import key_of
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.secrets import withheld_from_agent
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trajectories.file_changes import apply_changes

logger = logging.getLogger(__name__)


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
