"""The environments in which suites run apart from what the agent made, and how what runs is killed."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from pytest_evocode.environments import (
    BuildWish,
    Engine,
    Environment,
    Installation,
)
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT, STOPPED
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.tasks import Round, Task, resolve_env
from pytest_evocode.trial.context import StopEvent, TrialContext
from pytest_evocode.verifier import SuiteHome, Toolbox, find_suite_home
from pytest_evocode.verifier.suite_run import LOGS

logger = logging.getLogger(__name__)


class RunningSuites:
    """The environments in which the suites of an attempt and the programs under test run at the moment.

    ``cancelled`` is set when the attempt is to end.
    """

    def __init__(self, cancelled: StopEvent) -> None:
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._environments: dict[Environment, int] = {}
        self._events: dict[int, StopEvent] = {}
        self._dropped_after: int | None = None

    def stopped(self, index: int) -> StopEvent:
        """Return the event that is set when no suite of a round is to run any more."""
        with self._lock:
            event = self._events.setdefault(index, self._cancelled.part())
            if self._dropped_after is not None and index > self._dropped_after:
                event.set()
        return event

    @contextlib.contextmanager
    def noted(self, environment: Environment, index: int) -> Iterator[None]:
        """Have an environment killed with the suites of a round, while this context lasts.

        Raises :class:`~pytest_evocode.errors.Cancelled` where no suite of the round is to run any more.
        """
        with self._lock:
            self._environments[environment] = index
        try:
            if self.stopped(index).is_set():
                raise Cancelled(STOPPED)
            yield
        finally:
            with self._lock:
                self._environments.pop(environment, None)

    def kill(self, *, after: int = 0) -> None:
        """Kill the suites of all rounds after one, and start no more of them.

        To be called again until they have ended: what was just about to start is killed by the next call.
        """
        with self._lock:
            self._dropped_after = after if self._dropped_after is None else min(after, self._dropped_after)
            events = [event for index, event in self._events.items() if index > after]
            found = [environment for environment, index in self._environments.items() if index > after]
        for event in events:
            event.set()
        for environment in found:
            logger.info("killing a suite that still runs")
            with contextlib.suppress(EnvironmentFault):
                environment.stop()


class SuiteEnvironments:
    """Starts the environments of one attempt's suites that do not run in a fork, and kills them with these suites.

    Methods raise EnvironmentFault, TaskError and Cancelled.
    """

    def __init__(self, context: TrialContext, running: RunningSuites) -> None:
        self._context = context
        self._running = running
        self._home: SuiteHome | None = None
        self._free: list[Environment] = []
        """Verifier environments of native suites that have ended: nothing of an agent's ever comes in."""

    def prepare(self) -> None:
        """Build the images, and make sure that native suites can be run, before an agent has been there."""
        engine, task = self._context.engine, self._context.task
        _build(engine, task, None, BuildWish(self._context.cancelled))
        self._home = find_suite_home(engine, task)

    @property
    def toolbox(self) -> Toolbox | None:
        """The pytest of native suites, once that is prepared; None where there is no such suite."""
        return self._home.toolbox if self._home is not None else None

    @contextlib.contextmanager
    def verifier(self, round_: Round) -> Iterator[Environment | None]:
        """Yield the environment of a native suite that runs apart, which no other suite has meanwhile; else None."""
        if round_.verify_in != "separate" or self._home is None:
            yield None
            return
        try:
            environment, is_new = self._free.pop(), False
        except IndexError:
            environment, is_new = self._new_verifier(self._home), True
        try:
            with self._running.noted(environment, round_.index):
                if is_new:
                    environment.start()
                    environment.remove(HIDDEN_FROM_AGENT)
                yield environment
        except BaseException:  # It may be what failed.
            _stop(environment)
            raise
        self._free.append(environment)

    def _new_verifier(self, home: SuiteHome) -> Environment:
        context, task = self._context, home.task
        declared = task.config.environment.env
        env = resolve_env(declared, context.options.environ, path=task.file, withheld=context.withheld)
        return home.engine.create(task.alone(), env=env, network="no-network")

    @contextlib.contextmanager
    def own(self, round_: Round) -> Iterator[Environment]:
        """Yield the environment that a ``test.sh`` has for itself, with nothing of the agent's; stop it in the end."""
        suite = round_.suite_environment
        assert suite is not None
        context, task = self._context, self._context.task
        # No agent reads what is the verifier's own.
        withheld = (lambda name: False) if suite.own_variables else context.withheld
        env = resolve_env(suite.config.env, context.options.environ, path=task.file, withheld=withheld)
        network = round_.verifier_network
        environment = context.engine.create(task.with_environment_of(suite), env=env, network=network)
        try:
            with self._running.noted(environment, round_.index):
                environment.start()
                environment.remove([LOGS])
                environment.make_directories([LOGS])
                if (entered := environment.enter()) is not None:
                    entered.wait_until_settled()
                yield environment
        finally:
            _stop(environment)

    def close(self) -> None:
        """Stop those that no suite is in."""
        while self._free:
            _stop(self._free.pop())


def prepare_image(engine: Engine, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
    """Build what attempts at a task begin with, and find out about its image what suites need to know.

    Returns:
        Whether an image was built or pulled, by this call.

    Raises:
        BuildError: The image cannot be built.
        EnvironmentFault: The engine failed.
        TaskError: The image has nothing that its suites can run with.
        Cancelled: It is not wanted any more.
    """
    made = _build(engine, task, installation, wish)
    find_suite_home(engine, task)
    return made


def _build(engine: Engine, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
    made = engine.build(task, installation, wish)
    for suite in task.suite_environments:
        made |= engine.build(task.with_environment_of(suite), None, wish)
    return made


def _stop(environment: Environment) -> None:
    with contextlib.suppress(EnvironmentFault):
        environment.stop()
