"""Takes rounds from the end of their turns to their records: the suites run while the turns of later rounds go on."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import AgentFault, EnvironmentFault, EvocodeError, describe_error
from pytest_evocode.results.directory import remove_changes, remove_rounds
from pytest_evocode.results.records import RoundRecord, TurnRecord
from pytest_evocode.tasks import Round
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import StopEvent, TrialContext
from pytest_evocode.trial.log import AttemptLog, ChainEnd
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.suites.runner import ControlledSuites, SuiteRunner
from pytest_evocode.verifier import SuiteRun, judge

logger = logging.getLogger(__name__)

_INTERVAL = 0.5  # seconds between two attempts to end a turn
_PATIENCE = 5.0  # seconds for an agent whose processes are killed; then its environment is stopped
_LOOK = 0.05  # seconds between two attempts to kill what runs
_NOT_PLAYED = "the reference solution was not played again: the state that it leads to was kept"


class VerdictPipeline:
    """Runs the suites of an attempt's rounds in threads of their own, and delivers the records to its log.

    Of a round that does not count nothing is kept or told: where a verdict ends the chain, all that was begun of later
    rounds is ended and dropped, and ``stop`` is set for the turn under way. ``keep_reference`` keeps a state that a
    suite accepts, by its round; None keeps none. ``is_oracle`` says that the turns are reference solutions.
    """

    def __init__(
        self,
        context: TrialContext,
        suites: SuiteRunner,
        log: AttemptLog,
        turns: AgentTurns,
        keep_reference: Callable[[int, Snapshot], object] | None,
        *,
        stop: StopEvent,
        is_oracle: bool,
    ) -> None:
        self._context = context
        self._suites = suites
        self._log = log
        self._turns = turns
        self._keep = keep_reference
        self._stop = stop
        self._is_oracle = is_oracle
        self._begun: dict[int, Future[None]] = {}
        self._controlled = ControlledSuites(context, suites, is_oracle=is_oracle)
        # A thread for each round: a record waits there for those before, whose suites may run later than its own.
        self._pool = ThreadPoolExecutor(len(context.task.rounds), thread_name_prefix="verifier")
        self._gone: list[Future[None]] = []
        self._turns_are_over = threading.Event()
        self._ending = threading.Lock()
        """Held while a turn that does not count is ended."""

    def prepare(self, environment: Environment, round_: Round) -> None:
        """Prepare a round, which no agent can keep from it without being held to account for that."""
        self._controlled.prepare(environment, round_, has_worked=self._turns.begun)

    def begin(self, environment: Environment, round_: Round, turn: TurnRecord) -> None:
        """Have a round's suite run in a fork, and its record delivered after those of the rounds before."""
        # What a suite leaves for the next one is there once that of the round before has run.
        earlier = list(self._begun.values()) if self._suites.state.paths else []
        self._begun[round_.index] = self._pool.submit(self._verify, environment, round_, turn, earlier)

    @property
    def first_left(self) -> int:
        """The first round of which no record is there, and none will come from here."""
        left = (index for index in self._log.without_record if index not in self._begun)
        return next(left, len(self._context.task.rounds) + 1)

    # Where the chain ends.

    def finish(self) -> OSError | None:
        """Wait for the verdicts of the rounds, and drop what does not count by them; no turn begins any more.

        Returned is what kept files of dropped rounds from being removed. Raises Cancelled.
        """
        self._turns_are_over.set()
        end = self._log.end_before()
        with self._ending:  # Nothing is killed any more.
            pass
        if end is None:
            return None
        taken: dict[int, dict[str, Any]] = {}
        try:
            self._drop_suites_after(end.index)
            taken = self._drop_turns_after(end)
        except OSError as error:
            return error
        finally:
            self._log.skip_after(end.index, end.why, taken)
        return None

    def wait_turns(self, seconds: float) -> bool:
        """Wait until no turn begins any more, for so long at most, and return whether that is so."""
        return self._turns_are_over.wait(seconds)

    def wait(self) -> None:
        """Wait for all suites that were begun; no turn begins any more."""
        self._turns_are_over.set()
        self._pool.shutdown(wait=True)

    def _end_turn(self, environment: Environment) -> None:
        """End the turn under way, which does not count."""
        self._stop.set()
        until = time.monotonic() + _PATIENCE
        while not self._turns_are_over.is_set():
            if self._turns.taking:
                logger.debug("%s: killing a turn that does not count", self._context.task.name)
                with contextlib.suppress(EnvironmentFault):
                    # Kept alive where that will do: fixtures of the project may look into it until the attempt's end,
                    # and an agent that goes on all the same cannot without it.
                    if time.monotonic() < until:
                        environment.kill_processes()
                    else:
                        environment.stop()
            self._turns_are_over.wait(_INTERVAL)

    def _drop_suites_after(self, index: int) -> None:
        """Kill the suites of the rounds after one, which do not count, and wait until nothing of them runs."""
        later = [begun for each, begun in self._begun.items() if each > index]
        while not all(begun.done() for begun in later):
            self._suites.drop_after(index)
            wait(later, timeout=_LOOK)
        wait(self._gone)  # Or their snapshots could not be discarded.

    def _drop_turns_after(self, end: ChainEnd) -> dict[int, dict[str, Any]]:
        """Remove all that is left of the rounds after the end, and return what their turns took, by round.

        Raises OSError.
        """
        dropped = self._log.drop_ahead()
        # Tool calls are left out: the mean of these is over rounds with a trajectory, and that is removed.
        taken = {turn.index: {"usage": turn.usage, "agent_seconds": turn.agent_seconds} for turn in dropped}
        last = self._turns.taken
        if "agent_seconds" in last and (index := self._turns.progress.index) > end.index:
            taken[index] = {"usage": last.get("usage"), "agent_seconds": last["agent_seconds"]}
        if taken:
            logger.info("%s: turns after round %d are dropped: %s", self._context.task.name, end.index, sorted(taken))
        if (directory := self._context.directory) is not None:
            # A round without a verdict is verified again by a later session, which goes on then.
            names = [round_.name for round_ in self._log.rounds.values() if round_.index > end.index]
            remove_rounds(directory, names, keep_journals=not self._log.is_done(end.index))
            if taken:
                remove_changes(directory, self._addresses(end))
        return {} if self._is_oracle else taken

    def _addresses(self, end: ChainEnd) -> set[str]:
        """Return the addresses of the lists of changes that the records of the rounds that count have."""
        records = map(self._log.get, range(1, end.index + 1))
        verdicts = [record.verdict for record in records if record is not None and record.verdict is not None]
        return {verdict.changed.address for verdict in verdicts if verdict.changed is not None}

    # Each round.

    def snapshot(self, environment: Environment, round_: Round) -> Snapshot:
        """Take the snapshot that a round is verified in; raises AgentFault where what the agent left prevents it."""
        directory = self._context.directory
        keep_for = directory.state_directory if directory is not None else None
        return self._controlled.snapshot(environment, round_, keep_for=keep_for)

    def give_up(self, round_: Round, turn: TurnRecord, error: AgentFault) -> None:
        """Deliver the record of a round that has failed because no snapshot could be taken, which ends the attempt."""
        if self._counts(round_):
            self.conclude(round_, turn, SuiteRun("", None, of_agent=str(error)))
            self._log.skip_after(round_.index, f"the attempt ended in {round_.name}: {error}")

    def conclude(self, round_: Round, turn: TurnRecord, suite: SuiteRun) -> None:
        """Make a round's record of its turn and its suite, and deliver it."""
        self._log.deliver(self._judge(round_, turn, suite), output=suite.output, done=True)

    def _judge(self, round_: Round, turn: TurnRecord, suite: SuiteRun) -> RoundRecord:
        suite = suite.noting(turn.notes)
        if turn.agent_seconds is None and suite.verdict is not None:
            flags = (*suite.verdict.flags, _NOT_PLAYED)
            suite = replace(suite, verdict=suite.verdict.model_copy(update={"flags": flags}))
        return judge(
            round_,
            self._log.after_turn(round_, turn),
            suite,
            agent_timed_out=turn.timed_out,
            timeout_multiplier=self._context.options.timeout_multiplier,
            strict=self._context.options.strict,
            is_oracle=self._is_oracle,
        )

    def _verify(
        self, environment: Environment, round_: Round, turn: TurnRecord, earlier: Sequence[Future[None]]
    ) -> None:
        wait(earlier)
        try:
            self._run_suite(environment, round_, turn)
        finally:
            if not self._context.task.in_place and self._log.has_ended:
                with self._ending:
                    self._end_turn(environment)

    def _run_suite(self, environment: Environment, round_: Round, turn: TurnRecord) -> None:
        try:
            times = self._context.options.verify_times
            self._context.task_environment.refuse_when_cancelled()
            snapshot = self._log.snapshot_of(round_.index)
            is_live = turn.agent_seconds is not None  # Otherwise it has no environment of its own.
            suite, left = self._controlled.run(environment, snapshot, round_, times, is_live=is_live)
            if left is None:
                if self._counts(round_):
                    self.conclude(round_, turn, suite)
            elif (record := self._judge_left(left, turn, suite)) is not None:
                self._keep_reference(round_, suite, snapshot)
                self._log.deliver(record, output=suite.output, done=True)
        except Exception as error:
            with contextlib.suppress(EvocodeError):
                if not self._counts(round_):
                    return
            self._fail(round_, turn, error)

    def _counts(self, round_: Round) -> bool:
        """Wait until it is known whether a round counts, and have its turn recorded as played if it does.

        Raises Cancelled and EnvironmentFault.
        """
        if self._log.end_before(round_.index) is not None:
            return False
        self._log.tell()
        return True

    def _judge_left(self, left: LeftFork, turn: TurnRecord, suite: SuiteRun) -> RoundRecord | None:
        """Make a round's record with the artifacts of its fork in their place; None where the round does not count.

        The fork is removed behind what goes on, whether or not its round will count, unless a person is to look at it.
        """
        is_left = True
        # The snapshot cannot be discarded before the forks made from it.
        self._log.hold(left.round.index, "fork")
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
        self._gone.append(self._suites.let_go(left, lambda: self._log.release(left.round.index, "fork")))

    def _keep_reference(self, round_: Round, suite: SuiteRun, snapshot: Snapshot) -> None:
        """Keep a state beyond the attempt where its suite has accepted it."""
        whole = round_.name not in self._context.options.cases
        if self._keep is not None and whole and suite.verdict is not None and suite.verdict.passed:
            self._keep(round_.index, snapshot)

    def _fail(self, round_: Round, turn: TurnRecord, error: Exception) -> None:
        """Deliver the record of a round that could not be verified."""
        if self._context.cancelled.is_set():  # Then the suite was killed, and the error says nothing of the engine.
            record = self._log.after_turn(round_, turn, cause=STOPPED)
        else:
            logger.info("%s, %s: not verified: %s", self._context.task.name, round_.name, type(error).__name__)
            cause = describe_error(error)
            record = self._log.after_turn(round_, turn, outcome="error", cause=cause, fault="infrastructure")
        self._log.deliver(record, done=False)
