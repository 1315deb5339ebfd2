"""Takes a round from the end of its turn to its record, while the turns of later rounds go on."""

from __future__ import annotations

import contextlib
import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import AgentFault, EvocodeError, describe_error
from pytest_evocode.results.records import RoundRecord, TurnRecord
from pytest_evocode.tasks import Round
from pytest_evocode.trial.chain import Chain
from pytest_evocode.trial.checkpoints import Checkpoints
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.reference_states import ReferenceStates
from pytest_evocode.trial.round_records import RoundRecords
from pytest_evocode.trial.suites.control import ControlledSuites
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.suites.runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun, judge

logger = logging.getLogger(__name__)

_INTERVAL = 0.05  # seconds between two attempts to kill what runs
_NOT_PLAYED = "the reference solution was not played again: the state that it leads to was kept"


class VerdictPipeline:
    """Runs the suites of an attempt's rounds in threads of their own, and delivers the records.

    ``references`` keeps the states that suites accept; None keeps none. ``is_oracle`` says that reference solutions are
    what the suites run on. Of a round that does not count by the verdicts of the ``chain`` nothing is kept or told.
    """

    def __init__(
        self,
        context: TrialContext,
        suites: SuiteRunner,
        checkpoints: Checkpoints,
        records: RoundRecords,
        references: ReferenceStates | None,
        chain: Chain,
        *,
        is_oracle: bool,
    ) -> None:
        self._context = context
        self._suites = suites
        self._checkpoints = checkpoints
        self._records = records
        self._references = references
        self._chain = chain
        self._begun: dict[int, Future[None]] = {}
        self._is_oracle = is_oracle
        self._controlled = ControlledSuites(context, suites, is_oracle=is_oracle)
        # A thread for each round: a record waits there for those before, whose suites may run later than its own.
        self._pool = ThreadPoolExecutor(len(context.task.rounds), thread_name_prefix="verifier")
        self._gone: list[Future[None]] = []

    def begin(self, environment: Environment, round_: Round, turn: TurnRecord) -> None:
        """Have a round's suite run in a fork, and its record delivered after those of the rounds before."""
        self._suites.state.expect(round_.index)
        self._begun[round_.index] = self._pool.submit(self._verify, environment, round_, turn)

    def drop_after(self, index: int) -> None:
        """Kill the suites of the rounds after one, which do not count, and wait until nothing of them runs."""
        later = [begun for each, begun in self._begun.items() if each > index]
        while not all(begun.done() for begun in later):
            self._suites.drop_after(index)
            wait(later, timeout=_INTERVAL)
        wait(self._gone)  # Or their snapshots could not be discarded.

    def wait(self) -> None:
        """Wait for all suites that were begun; take no more."""
        self._pool.shutdown(wait=True)

    def snapshot(self, environment: Environment, round_: Round) -> Snapshot:
        """Take the snapshot that a round is verified in; raises AgentFault where what the agent left prevents it."""
        return self._controlled.snapshot(environment, round_, keep_for=self._checkpoints.keep_for)

    def give_up(self, round_: Round, turn: TurnRecord, error: AgentFault) -> None:
        """Deliver the record of a round that has failed because no snapshot could be taken, which ends the attempt."""
        if self._counts(round_):
            self.conclude(round_, turn, SuiteRun("", None, of_agent=str(error)))
            self._records.skip_after(round_.index, f"the attempt ended in {round_.name}: {error}")

    def conclude(self, round_: Round, turn: TurnRecord, suite: SuiteRun) -> None:
        """Make a round's record of its turn and its suite, and deliver it."""
        self._records.deliver(self._judge(round_, turn, suite), output=suite.output, done=True)

    def _judge(self, round_: Round, turn: TurnRecord, suite: SuiteRun) -> RoundRecord:
        suite = suite.noting(turn.notes)
        if turn.agent_seconds is None and suite.verdict is not None:
            flags = (*suite.verdict.flags, _NOT_PLAYED)
            suite = replace(suite, verdict=suite.verdict.model_copy(update={"flags": flags}))
        return judge(
            round_,
            self._records.after_turn(round_, turn),
            suite,
            agent_timed_out=turn.timed_out,
            timeout_multiplier=self._context.options.timeout_multiplier,
            strict=self._context.options.strict,
            is_oracle=self._is_oracle,
        )

    def _verify(self, environment: Environment, round_: Round, turn: TurnRecord) -> None:
        try:
            times = self._context.options.verify_times
            with self._suites.in_turn(round_.index):
                self._context.task_environment.refuse_when_cancelled()
                snapshot = self._checkpoints.snapshot_of(round_.index)
                is_live = turn.agent_seconds is not None  # Otherwise it has no environment of its own.
                suite, left = self._controlled.run(environment, snapshot, round_, times, is_live=is_live)
            if left is None:
                if self._counts(round_):
                    self.conclude(round_, turn, suite)
            elif (record := self._judge_left(left, turn, suite)) is not None:
                self._keep_reference(round_, suite, snapshot)
                self._records.deliver(record, output=suite.output, done=True)
        except Exception as error:
            with contextlib.suppress(EvocodeError):
                if not self._counts(round_):
                    return
            self._fail(round_, turn, error)

    def _counts(self, round_: Round) -> bool:
        """Wait until it is known whether a round counts, and have its turn recorded as played if it does.

        Raises Cancelled and EnvironmentFault.
        """
        if self._chain.end_before(round_.index) is not None:
            return False
        self._checkpoints.count_up_to(round_.index)
        return True

    def _judge_left(self, left: LeftFork, turn: TurnRecord, suite: SuiteRun) -> RoundRecord | None:
        """Make a round's record with the artifacts of its fork in their place; None where the round does not count.

        The fork is removed behind what goes on, whether or not its round will count, unless a person is to look at it.
        """
        is_left = True
        # The snapshot cannot be discarded before the forks made from it.
        self._checkpoints.hold(left.round.index, "fork")
        try:
            left.gather()
            if not self._context.options.hold_forks:
                is_left = False
                self._let_go(left)
            if not self._counts(left.round):
                return None
            record = self._judge(left.round, turn, replace(suite, left_out=left.put_artifacts()))
            wanted = record.outcome == "failed" or self._context.options.hold_all_forks
            is_left = is_left and not (wanted and self._suites.hold(left))
            return record
        finally:
            left.drop_artifacts()
            if is_left:
                self._let_go(left)

    def _let_go(self, left: LeftFork) -> None:
        self._gone.append(self._suites.let_go(left, lambda: self._checkpoints.release(left.round.index, "fork")))

    def _keep_reference(self, round_: Round, suite: SuiteRun, snapshot: Snapshot) -> None:
        """Keep a state beyond the attempt where its suite has accepted it."""
        whole = round_.name not in self._context.options.cases
        if self._references is not None and whole and suite.verdict is not None and suite.verdict.passed:
            self._references.keep(round_.index, snapshot)

    def _fail(self, round_: Round, turn: TurnRecord, error: Exception) -> None:
        """Deliver the record of a round that could not be verified."""
        if self._context.cancelled.is_set():  # Then the suite was killed, and the error says nothing of the engine.
            record = self._records.after_turn(round_, turn, cause=STOPPED)
        else:
            logger.info("%s, %s: not verified: %s", self._context.task.name, round_.name, type(error).__name__)
            cause = describe_error(error)
            record = self._records.after_turn(round_, turn, outcome="error", cause=cause, fault="infrastructure")
        self._records.deliver(record, done=False)
