"""The environments in which the native suites of one attempt run, apart from what the agent made."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import Future

from pytest_evocode.environments import ProgramEnvironment
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT
from pytest_evocode.errors import EnvironmentFault, EvocodeError
from pytest_evocode.tasks import resolve_env
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suites.started_environments import StartedEnvironments, start_beside
from pytest_evocode.verifier import SuiteHome

logger = logging.getLogger(__name__)


class VerifierEnvironments(StartedEnvironments[ProgramEnvironment]):
    """Starts environments of the task's image as built, one for each suite that runs or is ready to run.

    The first is started beside the agent's first turn, and each serves one suite after the other: what runs there is
    the task's own, and nothing of an agent's ever comes in.
    """

    def __init__(self, context: TrialContext, home: SuiteHome) -> None:
        super().__init__()
        self._context = context
        self._home = home
        self._free: list[ProgramEnvironment] = []
        self._first: Future[ProgramEnvironment] | None = None

    def begin(self) -> None:
        """Start the first environment in a thread of its own; :meth:`take` tells what went wrong."""
        self._first = Future()
        start_beside(self._start, self._first, "verifier-environment")

    @contextlib.contextmanager
    def take(self) -> Iterator[ProgramEnvironment]:
        """Yield an environment that no other suite has; raises EnvironmentFault and TaskError."""
        environment = self._taken()
        try:
            yield environment
        except EvocodeError:
            self._drop(environment)  # It may be what failed.
            raise
        with self._lock:
            self._free.append(environment)

    def _taken(self) -> ProgramEnvironment:
        with self._lock:
            if self._free:
                return self._free.pop()
            first, self._first = self._first, None
        return self._start() if first is None else first.result()

    def _start(self) -> ProgramEnvironment:
        context, engine, task = self._context, self._home.engine, self._home.task
        declared = task.config.environment.env
        env = resolve_env(declared, context.options.environ, path=task.file, withheld=context.withheld)
        environment = engine.create(task.alone(), env=env, network="no-network")
        if not isinstance(environment, ProgramEnvironment):
            raise EnvironmentFault(
                f"the environments of {engine.name} are no ProgramEnvironment, which a suite apart needs; run with "
                '--evocode-env=docker or sandbox, or say verify_in = "clean" in [metadata.evocode] of task.toml'
            )
        self._start_one(environment, lambda each: each.remove(HIDDEN_FROM_AGENT))
        logger.debug("%s: a verifier environment has started", task.name)
        return environment
