"""The control run: whose fault it is that a suite yields no verdict on what an agent left.

The same suite runs on the state before the agent did anything. A verdict there, passed or failed, shows that suite and
engine work, so the round has failed; none there is a fault of the task or the infrastructure.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

from pytest_evocode.environments import Engine, Environment, Snapshot
from pytest_evocode.errors import AgentFault, Cancelled, EnvironmentFault, EvocodeError, SnapshotGone, describe_error
from pytest_evocode.tasks import Round
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.suites.runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun, of_repeated, worst

logger = logging.getLogger(__name__)

_ON_IMAGE = "on the image as built"
_ON_REFERENCE = "on what the reference solutions lead to"
_TRY = ["true"]
_TRY_LIMIT = 60.0  # seconds

_known: WeakKeyDictionary[Engine, dict[tuple[object, ...], str]] = WeakKeyDictionary()
"""Where suites yield a verdict in an engine, empty for nowhere, by all else that this depends on."""


class ControlledSuites:
    """Runs the suites of one attempt, and says of each that yields no verdict whether that is the agent's doing.

    Where the agent ``is_oracle`` it never is: the reference solution is what a control would be.
    """

    def __init__(self, context: TrialContext, suites: SuiteRunner, *, is_oracle: bool) -> None:
        self._context = context
        self._suites = suites
        self._is_oracle = is_oracle

    def run(
        self, environment: Environment, snapshot: Snapshot, round_: Round, times: int, *, is_live: bool = False
    ) -> tuple[SuiteRun, LeftFork | None]:
        """Run a round's suite as :func:`run_repeatedly` does; without a fork where the engine failed on what was left.

        The environment ``is_live`` where what the turn started still runs there.

        Raises what kept the suite from a verdict where a control does not hold it against the agent, and Cancelled.
        """
        try:
            suite, left = self._run_twice(lambda: run_repeatedly(self._suites, environment, snapshot, round_, times))
        except (Cancelled, SnapshotGone):
            raise
        except Exception as error:  # Whatever it is: what an agent leaves may bring about any.
            # What is no failure of an environment may be this program's own, so an earlier control says nothing of it.
            if not (why := self._why_of_agent(round_, anew=not isinstance(error, EvocodeError))):
                raise
            return SuiteRun("", None, describe_error(error), of_agent=why), None
        if suite.verdict is not None:
            return self._suites.compared(environment, snapshot, round_, suite, is_live=is_live), left
        try:
            return replace(suite, of_agent=self._why_of_agent(round_)), left
        except BaseException:
            self._suites.let_go(left)
            raise

    def snapshot(self, environment: Environment, round_: Round, *, keep_for: Path | None) -> Snapshot:
        """Take a snapshot, at a second try where the first fails.

        Raises AgentFault where that fails on what the agent left alone, and EnvironmentFault where nothing shows that.
        """
        try:
            return environment.snapshot(keep_for=keep_for)
        except EnvironmentFault as error:
            if self._is_oracle or self._context.cancelled.is_set():
                raise
            logger.info("%s: a snapshot is taken once more: %s", self._context.task.name, error)
        try:
            return environment.snapshot(keep_for=keep_for)
        except EnvironmentFault as error:
            with contextlib.suppress(EnvironmentFault):
                environment.exec(_TRY, user="0", cwd="/", timeout=_TRY_LIMIT)  # What has died was perhaps killed.
                self._try_engine(round_)
                raise AgentFault(
                    "no snapshot can be taken of what the agent left, and one can of an untouched environment, so the "
                    f"agent's work is to blame and the round has failed: {error}"
                ) from error
            raise

    def _run_twice(self, run: Callable[[], tuple[SuiteRun, LeftFork]]) -> tuple[SuiteRun, LeftFork]:
        """Run a suite, and once more where the engine fails: what comes and goes is nobody's fault."""
        try:
            return run()
        except (Cancelled, SnapshotGone):
            raise
        except Exception as error:
            if self._is_oracle or self._context.cancelled.is_set():
                raise
            logger.info("%s: a suite is run once more: %s", self._context.task.name, describe_error(error))
            return run()

    def _why_of_agent(self, round_: Round, *, anew: bool = False) -> str:
        """Return why it is the agent's doing that a suite has no verdict; empty where it is not known to be.

        With ``anew`` a control runs now, whatever is known of earlier ones.
        """
        context = self._context
        if self._is_oracle or context.cancelled.is_set():
            return ""
        task, engine = context.task, context.engine
        try:
            cases = context.options.cases.get(round_.name)
            key = (engine.image_key(task), content_hash(task.directory), task.verify, round_.index, cases)
            known = _known.setdefault(engine, {})
            if anew or (where := known.get(key)) is None:
                where = known[key] = self._where_there_is_a_verdict(round_)
            elif where:
                self._try_engine(round_)  # It may have failed since.
        except EnvironmentFault as error:
            logger.info("%s, %s: no control run: %s", task.name, round_.name, error)
            return ""
        if not where:
            return ""
        return (
            f"the suite gave no verdict on what the agent left. The same suite gives one {where}, so the agent's work "
            "is to blame and the round has failed"
        )

    def _where_there_is_a_verdict(self, round_: Round) -> str:
        for where, state in ((_ON_IMAGE, self._before_the_agent), (_ON_REFERENCE, self._reference)):
            try:
                with state(round_) as (environment, snapshot):
                    suite = self._suites.run(environment, snapshot, round_, begun=True, carry="changed")
            except (Cancelled, EnvironmentFault):
                raise
            except EvocodeError as error:  # Such as a setup.sh that needs what an earlier round asks for.
                suite = SuiteRun("", None, str(error))
            said = "a verdict" if suite.verdict is not None else f"no verdict: {suite.fault}"
            logger.info("%s, %s: the control run %s gives %s", self._context.task.name, round_.name, where, said)
            if suite.verdict is not None:
                return where
        return ""

    @contextlib.contextmanager
    def _before_the_agent(self, round_: Round) -> Iterator[tuple[Environment, Snapshot]]:
        """Yield an environment of the image with what the rounds up to one bring, and a snapshot of it."""
        place = self._context.task_environment
        environment = place.create()
        try:
            with self._suites.stopping(environment, round_):
                place.start(environment)
                for each in self._context.task.rounds[: round_.index]:
                    place.prepare_round(environment, each, wait_until_healthy=False)
                snapshot = environment.snapshot()
                try:
                    yield environment, snapshot
                finally:
                    snapshot.discard()
        finally:
            environment.stop()

    @contextlib.contextmanager
    def _reference(self, round_: Round) -> Iterator[tuple[Environment, Snapshot]]:
        """Play the reference solutions, and yield their environment and a snapshot of it; raises EvocodeError."""
        with self._suites.reference.played(round_) as environment:
            snapshot = environment.snapshot()
            try:
                yield environment, snapshot
            finally:
                snapshot.discard()

    def _try_engine(self, round_: Round) -> None:
        """Start an untouched environment and a fork of it; raises EnvironmentFault."""
        environment = self._context.task_environment.create()
        try:
            with self._suites.stopping(environment, round_):
                environment.start()
                snapshot = environment.snapshot()
                fork = environment.fork(snapshot, network=round_.verifier_network)
                try:
                    with self._suites.stopping(fork, round_):
                        fork.start()
                        fork.exec(_TRY, user="0", cwd="/", timeout=_TRY_LIMIT)
                finally:
                    fork.stop()
                    snapshot.discard()
        finally:
            environment.stop()


def run_repeatedly(
    suites: SuiteRunner, environment: Environment, snapshot: Snapshot, round_: Round, times: int
) -> tuple[SuiteRun, LeftFork]:
    """Run a round's suite so many times, and return what the runs come to.

    The fork, and so the artifacts, are those of the run that counts, see
    :func:`~pytest_evocode.verifier.suite_run.of_repeated`.
    """
    counting, left = suites.run_and_leave(environment, snapshot, round_)
    runs = [counting]
    while len(runs) < times:
        try:
            run, its_fork = suites.run_and_leave(environment, snapshot, round_, begun=True)
        except BaseException:
            suites.let_go(left)
            raise
        runs.append(run)
        if worst(runs) is run:
            counting, left, its_fork = run, its_fork, left
        suites.let_go(its_fork)
    return of_repeated(runs), left
