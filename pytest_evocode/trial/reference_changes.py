"""The paths outside of the workspace that reference solutions change, noted once for each content of image and task."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Environment
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.errors import AgentFault, EnvironmentFault, TaskError
from pytest_evocode.tasks import Round
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.reference_states import ReferenceStates
from pytest_evocode.trial.suites.carrying import changes_of

logger = logging.getLogger(__name__)


class ReferenceChanges:
    """Knows what the reference solutions of a task change; where it does not, it plays them, without any suite.

    Sessions and workers share what is noted.
    """

    def __init__(self, context: TrialContext) -> None:
        self._context = replace(context, directory=None)
        self._task = context.task
        self._states = ReferenceStates(context.engine, context.task, context.options.environ)
        self._environment: Environment | None = None
        self._so_far: dict[int, frozenset[str]] = {}
        """For rounds up to which the solutions did not lead: they may another time, so it is not noted."""

    def after(self, round_: Round) -> frozenset[str]:
        """Return the paths that the solutions up to a round have changed, as far as they lead.

        Raises Cancelled and EnvironmentFault.
        """
        if (known := self._read(round_.index)) is None:
            with self._states.making(self._context.cancelled):
                if (known := self._read(round_.index)) is None:
                    known = self._so_far[round_.index] = self._play(round_)
        return known

    def note(self, index: int, paths: Iterable[str]) -> None:
        """Note what the solutions up to a round have changed, as their own attempt found it."""
        write_atomically(self._file(index), json.dumps(sorted(paths)))

    def stop(self) -> None:
        """End solutions that are played."""
        if (environment := self._environment) is not None:
            with contextlib.suppress(EnvironmentFault):
                environment.stop()

    def _play(self, last: Round) -> frozenset[str]:
        """Play the solutions up to a round, note what each has changed, and return it."""
        logger.info("%s: the reference solutions are played, to know what they change", self._task.name)
        context = self._context
        self._environment = environment = context.task_environment.create()
        turns = AgentTurns(context, OracleAgent())
        found: tuple[str, ...] = ()
        try:
            context.task_environment.start(environment)
            for round_ in self._task.rounds[: last.index]:
                try:
                    turns.take(environment, round_)
                except (AgentFault, TaskError) as error:
                    # What it did until then, and what the task itself did before, counts.
                    logger.info("%s: the reference solutions lead no further: %s", self._task.name, error)
                    return frozenset(self._changed(environment))
                found = self._changed(environment)
                self.note(round_.index, found)
            return frozenset(found)
        finally:
            environment.stop()
            context.task_environment.refuse_when_cancelled()

    def _changed(self, environment: Environment) -> tuple[str, ...]:
        snapshot = environment.snapshot()
        try:
            return changes_of(self._task, snapshot, environment).noted
        finally:
            snapshot.discard()

    def _read(self, index: int) -> frozenset[str] | None:
        if index in self._so_far:
            return self._so_far[index]
        try:
            return frozenset(json.loads(self._file(index).read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise EnvironmentFault(f"what reference solutions change cannot be read: {error}") from error

    def _file(self, index: int) -> Path:
        directory = cache_directory() / "reference-changes"
        directory.mkdir(exist_ok=True)
        return directory / f"{self._context.engine.name}-{self._states.key(index)}.json"
