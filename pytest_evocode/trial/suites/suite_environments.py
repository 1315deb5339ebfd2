"""The environments that suites have for themselves, with nothing of the agent's but artifacts: one for each suite."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import Future

from pytest_evocode.environments import BuildWish, Environment
from pytest_evocode.environments.entry_points import enter
from pytest_evocode.environments.tree_archives import TreeKeepingEnvironment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Network, Round, SuiteEnvironment, resolve_env
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suites.started_environments import StartedEnvironments, start_beside
from pytest_evocode.verifier.suite_run import LOGS

logger = logging.getLogger(__name__)

_Kind = tuple[str, Network | None]
"""What environments that are alike have in common."""


class SuiteEnvironments(StartedEnvironments[Environment]):
    """Starts an environment for each suite that has one for itself, the next one while the agent still works."""

    def __init__(self, context: TrialContext) -> None:
        super().__init__()
        self._context = context
        self._ahead: dict[_Kind, Future[Environment]] = {}

    def prepare(self) -> None:
        """Build the images, and begin to start the environment of the first suite; raises BuildError and Cancelled."""
        context = self._context
        for suite in context.task.suite_environments:
            context.engine.build(context.task.with_environment_of(suite), None, BuildWish(context.cancelled))
        self._begin_after(0)

    @contextlib.contextmanager
    def taken(self, round_: Round) -> Iterator[TreeKeepingEnvironment]:
        """Yield an environment that no suite was in, and stop it in the end; raises EnvironmentFault and TaskError."""
        suite = round_.suite_environment
        assert suite is not None
        with self._lock:
            begun = self._ahead.pop(_kind(suite, round_), None)
        environment = self._start(suite, round_) if begun is None else begun.result()
        try:
            self._begin_after(round_.index)
            if not isinstance(environment, TreeKeepingEnvironment):
                raise EnvironmentFault(
                    f"the environments of {self._context.engine.name} are no TreeKeepingEnvironment, which a suite "
                    "with an environment for itself needs; run with --evocode-env=docker or sandbox"
                )
            yield environment
        finally:
            self._drop(environment)

    def _begin_after(self, index: int) -> None:
        """Begin to start the environment of the first round after one whose suite has one, in a thread of its own."""
        following = (each for each in self._context.task.rounds if each.index > index)
        round_ = next((each for each in following if each.suite_environment is not None), None)
        if round_ is None or round_.suite_environment is None:
            return
        suite, kind = round_.suite_environment, _kind(round_.suite_environment, round_)
        begun: Future[Environment] = Future()
        with self._lock:
            if self._closed or kind in self._ahead:
                return
            self._ahead[kind] = begun
        start_beside(lambda: self._start(suite, round_), begun, "suite-environment")

    def _start(self, suite: SuiteEnvironment, round_: Round) -> Environment:
        context, task = self._context, self._context.task
        # No agent reads what is the verifier's own.
        withheld = (lambda name: False) if suite.own_variables else context.withheld
        env = resolve_env(suite.config.env, context.options.environ, path=task.file, withheld=withheld)
        network = round_.verifier_network
        environment = context.engine.create(task.with_environment_of(suite), env=env, network=network)
        self._start_one(environment, _make_ready)
        logger.debug("%s, %s: an environment for its suite has started", task.name, round_.name)
        return environment


def _make_ready(environment: Environment) -> None:
    environment.remove([LOGS])
    environment.make_directories([LOGS])
    if (entered := enter(environment)) is not None:
        entered.wait_until_settled()


def _kind(suite: SuiteEnvironment, round_: Round) -> _Kind:
    return f"{suite.context} {suite.config.model_dump_json()}", round_.verifier_network
