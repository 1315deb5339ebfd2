"""Runs the verifier's part of a round: its suite, in a fork of the round's snapshot or where the agent works.

Where a suite yields no verdict on what an agent left, a control run says whose fault it is: the same suite runs on the
state before the agent did anything. A verdict there, passed or failed, shows that suite and engine work, so the round
has failed; none there is a fault of the task or the infrastructure.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pytest_evocode.environments import Command, Engine, Environment, Snapshot
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT, VERIFIER_DIRECTORIES
from pytest_evocode.errors import (
    AgentFault,
    Cancelled,
    EnvironmentFault,
    EvocodeError,
    SnapshotGone,
    TaskError,
    describe_error,
)
from pytest_evocode.results.phases import Stopwatch
from pytest_evocode.tasks import Round, resolve_env
from pytest_evocode.tasks.lockfile import NOT_PINNED, Pins, content_hash, read_pins
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suites.brought_artifacts import bring_artifacts
from pytest_evocode.trial.suites.carrying import WHOLE_SYSTEM, Carried, Carry, Carrying, Reference, trees_of
from pytest_evocode.trial.suites.clearing import Clearing
from pytest_evocode.trial.suites.left_forks import HeldFork, LeftFork
from pytest_evocode.trial.suites.suite_environments import RunningSuites, SuiteEnvironments
from pytest_evocode.trial.suites.verifier_state import VerifierState
from pytest_evocode.verifier import (
    HANGING_ADVICE,
    NO_VERDICT_ADVICE,
    NativeSession,
    SuiteRun,
    SuiteSettings,
    may_fall_short,
    of_repeated,
    round_variables,
    run_suite,
    worst,
)

logger = logging.getLogger(__name__)

_AHEAD = 4
"""The most forks that are made ready while others' suites run."""
_OTHERWISE = (
    "the suite passes in all of the agent's system, without a network, and not with what is declared and what the "
    "reference solution changes; see the paths left behind"
)
_IN_PLACE = (
    "with this solution the suite passes in place, and not in a clean environment: processes, ACLs and set-id bits are "
    "not brought over, and with --evocode-strict no path that is not declared. Declare paths as state, have test.sh or "
    "the image's ENTRYPOINT start servers, or, to judge as Harbor does, give --evocode-verify=in-place"
)
_ON_IMAGE = "on the image as built"
_ON_REFERENCE = "on what the reference solutions lead to"
_TRY = ["true"]
_TRY_LIMIT = 60.0  # seconds

_known: WeakKeyDictionary[Engine, dict[tuple[object, ...], str]] = WeakKeyDictionary()
"""Where suites yield a verdict in an engine, empty for nowhere, by all else that this depends on."""


_INTERVAL = 0.05  # seconds between two looks at whether a suite is stopped


class Rank(NamedTuple):
    """What decides which suite goes first: the greatest."""

    awaited: bool
    """Whether the chain of rounds goes on only with this verdict."""
    begun: bool
    """Whether an earlier run of the same suite has left a fork, which is there until all its runs are done."""
    length: int
    """How long the suite is likely to take, against others of the attempt."""

    @classmethod
    def of(cls, index: int, *, awaited: bool, begun: bool) -> Rank:
        """Return the rank of a round's suite.

        Suites are cumulative, so the latest takes the longest, and what is begun last should be short: then no slot is
        empty for long while the last suite runs. Of those that the chain waits for, the earliest decides first.
        """
        return cls(awaited, begun, -index if awaited else index)


class Places:
    """A number of places, which suites that wait for one get by their rank; of equals the one that came first."""

    def __init__(self, count: int) -> None:
        self._changed = threading.Condition()
        self._free = count
        self.waiting: list[tuple[Rank, object]] = []

    @contextlib.contextmanager
    def held(self, rank: Rank, stopped: threading.Event) -> Iterator[None]:
        """Wait for a place and hold it; raises Cancelled once ``stopped`` is set."""
        turn = (rank, object())
        with self._changed:
            self.waiting.append(turn)
            try:
                while not (self._free and turn is max(self.waiting, key=lambda each: each[0])):
                    if stopped.is_set():
                        raise Cancelled("stopped while waiting for other suites")
                    self._changed.wait(_INTERVAL)
                self._free -= 1
            finally:
                self.waiting.remove(turn)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()


class SuiteRunner:
    """Runs the suites of one attempt, several at once where they run in forks.

    With the option ``hold_forks`` forks can be held as the suites have left them, until they are dropped.
    """

    def __init__(self, context: TrialContext, reference: Reference, *, is_oracle: bool = False) -> None:
        """Run no suite yet; ``is_oracle`` says that the suites run on what reference solutions leave."""
        self._context = context
        self._carry: Carry = "declared" if context.options.strict else "changed" if is_oracle else "reference"
        self._is_oracle = is_oracle
        self._task = context.task
        self._safe_path = context.task.config.metadata.evocode.safe_path
        self._options = context.options
        self._running = RunningSuites(context.cancelled)
        # So many can run, and one more fork for each is made ready: it is there when a slot is free, and no more memory
        # and disk is taken than that.
        at_once = context.suites_at_once
        self._running_at_once, self._forks_at_once = Places(at_once), Places(at_once + min(at_once, _AHEAD))
        self.clearing = Clearing(context.task.name)
        """Removes forks that no suite runs in any more."""
        self._held: dict[int, HeldFork] = {}
        self.reference = reference
        self._carrying = Carrying(context, reference)
        self._apart = SuiteEnvironments(context, self._running)
        self.state = VerifierState(context)
        """What suites keep for later ones."""
        self._pins: Pins = NOT_PINNED

    @property
    def in_place(self) -> bool:
        """Whether suites run where the agent works."""
        return self._task.in_place

    def prepare(self) -> None:
        """Make sure that suites can be run in this task's image, before an agent has been there.

        Raises TaskError and EnvironmentFault.
        """
        self._pins = read_pins(self._task.directory)
        self._apart.prepare()

    def run(self, environment: Environment, snapshot: Snapshot, round_: Round, **how: Any) -> SuiteRun:
        """Run a round's suite as :meth:`run_and_leave` does, and remove the fork before returning."""
        suite, left = self.run_and_leave(environment, snapshot, round_, **how)
        left.stop()
        return suite

    def run_and_leave(
        self,
        environment: Environment,
        snapshot: Snapshot,
        round_: Round,
        *,
        begun: bool = False,
        carry: Carry | None = None,
        change: Callable[[Environment], None] = lambda fork: None,
        **changed_settings: Any,
    ) -> tuple[SuiteRun, LeftFork]:
        """Run a round's suite in a fork of its snapshot, and return what came of it and the fork.

        The fork is for the caller to let go, to stop or to hold. ``begun`` says that the suite has run before and left
        a fork, ``carry`` what a clean environment has that is not as usual: such a run leaves nothing for later suites.
        ``change`` may change the fork before the suite runs; ``changed_settings`` are fields of
        :class:`~pytest_evocode.verifier.SuiteSettings` that are not as usual.
        """
        stopwatch, stopped = Stopwatch(), self._running.stopped(round_.index)
        stopwatch.begin("waiting")
        self.clearing.wait_for_room(stopped)
        rank = Rank.of(round_.index, awaited=may_fall_short(round_, self._options.mode), begun=begun)
        with self._forks_at_once.held(rank, stopped):
            stopwatch.begin("fork")
            carried = self._carrying.find(snapshot, environment, round_, carry or self._carry)
            settings = replace(self._suite_settings(round_), stopwatch=stopwatch, **changed_settings)
            left = LeftFork(self._context, self._fork(environment, snapshot, round_, carried, carry), round_, settings)
            with self._started(left):
                self._make_ready(left, carried)
                change(left.environment)
                missing = (*self._enter(left), *self._bring_apart(left))
                with self._apart.verifier(round_) as verifier:
                    notes = (*missing, *self._give_state(left, verifier))
                    stopwatch.begin("waiting")
                    with self._running_at_once.held(rank, stopped):
                        suite = self._run_in_slot(left, verifier, keeps=carry is None).noting(notes)
                suite = replace(suite, phases=stopwatch.phases, denied=left.place.take_denied("verifier"))
                return self._attached(suite, carried, left, carry), left

    def compared(
        self, environment: Environment, snapshot: Snapshot, round_: Round, suite: SuiteRun, *, is_live: bool
    ) -> SuiteRun:
        """Return a run whose verdict says whether it would be a pass with all that was left behind.

        The suite is run once more for that where it failed, in all of the agent's system. It has no network and no
        secrets there: programs of the agent see it, and could tell a later turn. Where the environment ``is_live``, so
        that what the turn started still runs there, the last round of reference solutions is then judged in place.
        """
        verdict = suite.verdict
        if verdict is None or verdict.reward is None or verdict.timed_out or verdict.passed:
            return suite
        alone = replace(round_, verifier_env={})
        try:
            if suite.left_behind > 0:
                offline = replace(alone, verifier_network="no-network")
                whole, left = self.run_and_leave(environment, snapshot, offline, begun=True, carry="system")
                left.stop()
                if whole.verdict is not None and whole.verdict.passed:
                    return suite.noting((_OTHERWISE,))
            if is_live and self._is_oracle and round_ == self._task.rounds[-1] and _is_clean(round_):
                there = self.run_in_place(environment, alone, collect=False).verdict
                return suite.noting((_IN_PLACE,)) if there is not None and there.passed else suite
        except EnvironmentFault as error:
            logger.info("%s, %s: not compared: %s", self._task.name, round_.name, error)
        return suite

    def _make_ready(self, left: LeftFork, carried: Carried) -> None:
        """Make what a suite finds as its own in a clean environment."""
        fork = left.environment
        if _is_clean(left.round):
            # An image may bring some of them, as TaskEnvironment.make_ready knows.
            fork.remove([*HIDDEN_FROM_AGENT, *self.state.paths])
            if carried.changes.workspace:  # It may be gone, or a link, which is not carried over.
                fork.exec(["mkdir", "-p", "--", fork.workdir], user="0", cwd="/", timeout=60)
            fork.make_directories([*VERIFIER_DIRECTORIES, *self.state.paths])

    def _enter(self, left: LeftFork) -> tuple[str, ...]:
        """Run the image's ENTRYPOINT where the program under test runs, and return what is to be said of it."""
        if left.round.suite_environment is not None:  # Which has its own, and the fork is only read.
            return ()
        return self._context.task_environment.enter_fork(left.environment)

    def _bring_apart(self, left: LeftFork) -> tuple[str, ...]:
        """Take the environment that a suite has for itself, if it has one, and bring the artifacts there.

        Returned is what did not come along.
        """
        fork, round_ = left.environment, left.round
        if round_.suite_environment is None:
            return ()
        left.place = place = left.until_stopped(self._apart.own(round_))
        return bring_artifacts(fork, place, round_)

    def _give_state(self, left: LeftFork, verifier: Environment | None) -> tuple[str, ...]:
        place = verifier or left.place
        return self.state.give(place, left.round, empty=place is left.environment)

    def _run_in_slot(self, left: LeftFork, verifier: Environment | None, *, keeps: bool) -> SuiteRun:
        """Run the suite of a fork that is ready. What comes before and after this has no slot.

        With ``keeps`` later suites find what it leaves in ``verifier_state``.
        """
        name, round_ = self._task.name, left.round
        stopped = self._running.stopped(round_.index)
        with self._context.take_slots(round_, stopped, left.settings.stopwatch):
            logger.debug("%s, %s: the suite begins", name, round_.name)
            suite = run_suite(left.place, self._task, round_, left.settings, verifier=verifier)
            left.more_logs = suite.more_logs
            if keeps:
                self.state.keep(verifier or left.place, round_)
            if not self._options.hold_forks:  # Then a person is to find what runs there.
                left.silence()
        logger.debug("%s, %s: the suite took %.1f s", name, round_.name, suite.seconds)
        return suite

    def _attached(self, suite: SuiteRun, carried: Carried, left: LeftFork, carry: Carry | None) -> SuiteRun:
        """Return the run of a suite in a fork with what it rests on."""
        if suite.verdict is not None and suite.verdict.passed:
            if self._is_oracle and carry is None:
                self.reference.note(left.round.index, carried.changes.noted)
            elif left.round.has_script:
                carried = self._carrying.marked(carried, left.round, left.place)
        changed = self._carrying.recorded(carried)
        suite = suite.saying(rests_on=left.round.verify_in, changed=changed, trusts=carried.named)
        left_behind = len(carried.left_behind) if _is_clean(left.round) else 0
        return replace(suite, changes=carried.file, left_behind=left_behind)

    def _fork(
        self, environment: Environment, snapshot: Snapshot, round_: Round, carried: Carried, carry: Carry | None
    ) -> Environment:
        """Return a fork for a round's suite, or for the program alone where the suite runs apart; not started."""
        if round_.suite_environment is not None:  # It is only read.
            return environment.fork(snapshot, network="no-network")
        if round_.verify_in == "separate" or carry == "system":
            return environment.fork(snapshot, network=round_.verifier_network)
        trees = trees_of(self._task, environment)
        return environment.fork(snapshot, network=round_.verifier_network, only=trees, exact=carried.carried)

    def let_go(self, left: LeftFork, then: Callable[[], object] = lambda: None) -> Future[None]:
        """Have a fork removed behind what goes on, and do something when it is."""

        def stop() -> None:
            try:
                left.stop()
            finally:
                then()

        return self.clearing.begin(stop, fork=True)

    def hold(self, left: LeftFork) -> bool:
        """Hold a fork until :meth:`drop_fork`, and return whether that can be."""
        fork, round_ = left.place, left.round
        if not self._options.hold_forks:
            return False

        @contextlib.contextmanager
        def session() -> Iterator[NativeSession]:
            with self._apart.verifier(round_) as verifier:
                found = NativeSession(fork, verifier, self._task, round_, left.settings, {})
                try:
                    yield found
                finally:
                    found.close()

        shell = Command(("bash", "--norc"), user=round_.verifier_user, env=left.settings.env)
        if round_.verify_in == "separate":
            shell = Command(("bash", "--norc"), user=round_.agent_user)
        self._held[round_.index] = HeldFork(fork, shell, session, round_, left.stop)
        return True

    def run_in_place(self, environment: Environment, round_: Round, *, collect: bool = True) -> SuiteRun:
        """Run a round's suite where the agent works and leave nothing of it there.

        Artifacts are collected unless ``collect`` is False.
        """
        hidden = (*HIDDEN_FROM_AGENT, *self._task.case_reports)
        stopwatch = Stopwatch()
        with self._context.take_slots(round_, self._context.cancelled, stopwatch):
            try:
                environment.remove(hidden)
                environment.make_directories(VERIFIER_DIRECTORIES)
                settings = replace(self._suite_settings(round_), stopwatch=stopwatch)
                left = LeftFork(self._context, environment, round_, settings)
                environment.allow_network(round_.verifier_network)
                suite = run_suite(environment, self._task, round_, settings)
                left.more_logs = suite.more_logs
                denied = environment.take_denied("verifier")
                suite = suite.saying(rests_on="in-place", trusts=(WHOLE_SYSTEM,))
                if collect:
                    left.gather()
                return replace(suite, phases=stopwatch.phases, denied=denied, left_out=left.put_artifacts())
            finally:
                environment.allow_network(round_.agent_network)
                environment.remove(hidden)

    def fork_of(self, index: int) -> HeldFork | None:
        """Return the fork of a round's suite, where it is held."""
        return self._held.get(index)

    def drop_fork(self, index: int) -> None:
        """Stop the fork of a round's suite, where it is held."""
        if (held := self._held.pop(index, None)) is not None:
            held.drop()

    def close(self) -> None:
        """Stop the environments of suites that run apart, and wait until no fork is left; no suite is run any more."""
        self._apart.close()
        for index in list(self._held):
            self.drop_fork(index)
        self.clearing.finish()
        self.state.close()

    def stop(self) -> None:
        """Kill every suite that runs in a fork, or for one."""
        self.reference.stop()
        self._running.kill()

    def stopping(self, environment: Environment, round_: Round) -> AbstractContextManager[None]:
        """Return a context in which an environment is stopped with the suites of a round."""
        return self._running.noted(environment, round_.index)

    def drop_after(self, index: int) -> None:
        """Kill every suite of the rounds after one, and start no more of them.

        To be called again until they have ended: what was just about to start is killed by the next call.
        """
        self._running.kill(after=index)

    def _suite_settings(self, round_: Round) -> SuiteSettings:
        patterns = self._options.cases.get(round_.name, ())
        return SuiteSettings(
            env={
                **({"PYTHONSAFEPATH": "1"} if round_.has_script and self._safe_path else {}),
                **resolve_env(
                    round_.verifier_env,
                    self._options.environ,
                    path=self._task.file,
                    # In place a process of the agent's may read the environment of every process.
                    withheld=lambda name: self.in_place and self._context.withheld(name),
                ),
                **round_variables(round_),
            },
            timeout=self._context.suite_limit(round_),
            timeout_multiplier=self._options.timeout_multiplier,
            toolbox=self._apart.toolbox,
            pinned=None if patterns else self._pins.of(round_.name),
            patterns=patterns,
        )

    @contextlib.contextmanager
    def _started(self, left: LeftFork) -> Iterator[None]:
        """Start a fork, make it known to :meth:`stop` until it is stopped, and stop it where something fails."""
        try:
            left.until_stopped(self._running.noted(left.environment, left.round.index))
            left.environment.start()
            yield
        except BaseException:
            left.stop()
            raise


def _is_clean(round_: Round) -> bool:
    return round_.verify_in == "clean" and round_.suite_environment is None


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
            why = self._why_of_agent(round_)
            # The control has shown what the advice says that nothing shows.
            advice = (NO_VERDICT_ADVICE, HANGING_ADVICE) if why else ()
            fault = "\n".join(line for line in suite.fault.split("\n") if line not in advice)
            return replace(suite, fault=fault, of_agent=why), left
        except BaseException:
            self._suites.let_go(left)
            raise

    def prepare(self, environment: Environment, round_: Round, *, has_worked: bool) -> None:
        """Prepare a round for the agent, which may have worked here before.

        Raises AgentFault where that fails on what the agent left alone, and TaskError, EnvironmentFault and Cancelled.
        """
        try:
            self._context.task_environment.prepare_round(environment, round_)
        except (TaskError, EnvironmentFault) as error:
            if has_worked and not self._is_oracle and (where := self._where_it_can_be_prepared(round_)):
                raise AgentFault(
                    f"{round_.name} cannot be prepared on what the agent left. It can be {where}, so the agent's work "
                    f"is to blame: {error}"
                ) from error
            raise

    def _where_it_can_be_prepared(self, round_: Round) -> str:
        before = self._context.task.rounds[: round_.index - 1]
        for where, state in (
            (_ON_IMAGE, self._untouched(before)),
            (_ON_REFERENCE, self._suites.reference.played(before[-1])),
        ):
            with contextlib.suppress(TaskError, AgentFault, EnvironmentFault), state as environment:
                self._context.task_environment.prepare_round(environment, round_)
                return where
        return ""

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
    def _untouched(self, rounds: Sequence[Round]) -> Iterator[Environment]:
        """Yield an environment of the image with what the first rounds bring."""
        place = self._context.task_environment
        environment = place.create()
        try:
            with self._suites.stopping(environment, rounds[-1]):
                place.start(environment)
                for each in rounds:
                    place.prepare_round(environment, each, wait_until_healthy=False)
                yield environment
        finally:
            environment.stop()

    @contextlib.contextmanager
    def _before_the_agent(self, round_: Round) -> Iterator[tuple[Environment, Snapshot]]:
        """Yield an environment of the image with what the rounds up to one bring, and a snapshot of it."""
        with self._untouched(self._context.task.rounds[: round_.index]) as environment:
            snapshot = environment.snapshot()
            try:
                yield environment, snapshot
            finally:
                snapshot.discard()

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
    :func:`~pytest_evocode.verifier.judging.of_repeated`.
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
