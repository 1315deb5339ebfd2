"""The workspace as it is after a round, passed or failed, for somebody to look at; no suite is run for that."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT
from pytest_evocode.errors import AgentFault, UsageError
from pytest_evocode.results.states import SnapshotFile
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.reference_states import ReferenceStates


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
