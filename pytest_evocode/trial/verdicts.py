"""Takes rounds from the end of their turns to their records, and says which rounds count and when turns begin.

:class:`RoundRecords` has the records, :class:`Chain` decides by them, and :class:`VerdictPipeline` runs the suites
while the turns of later rounds go on.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import AgentFault, Cancelled, EnvironmentFault, EvocodeError, RunLimitReached, describe_error
from pytest_evocode.results.directory import now, remove_changes, remove_rounds
from pytest_evocode.results.records import AttemptRecord, Outcome, RoundRecord, TurnRecord, task_facts
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.tasks import Round
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.checkpoints import Checkpoints, Resumption
from pytest_evocode.trial.context import StopEvent, TrialContext
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.suites.runner import ControlledSuites, SuiteRunner
from pytest_evocode.verifier import SuiteRun, as_recorded, compare_cases, ended_by, judge, may_fall_short, needs_verdict

logger = logging.getLogger(__name__)

_OF_TURN = (
    *("tool_calls", "usage", "stopped", "refused", "user_usage"),
    *("agent_seconds", "phases", "denied", "provider_waits"),
)
"""The fields of a record that tell of the agent's turn."""


class RoundRecords:
    """One record for each round of an attempt that is run, by its index; they come in any order.

    All records pass through :meth:`deliver`, where the host's secrets are taken out and the record is written.
    """

    def __init__(
        self, context: TrialContext, agent: str, attempt: int, rounds: RoundSelection, checkpoints: Checkpoints
    ) -> None:
        """Begin without records; ``agent`` is what they call the agent."""
        self._task = context.task
        self._agent = agent
        self._attempt = attempt
        self._mode = context.options.mode
        self._begin_with = rounds.begin_with if self._mode != "single-round" else None
        self._rounds = {each.index: each for each in self._task.rounds[rounds.rounds_before : rounds.last]}
        self._directory = context.directory
        self._context = context
        self._checkpoints = checkpoints
        self._records: dict[int, Future[RoundRecord]] = {index: Future() for index in self._rounds}
        self.undone = False
        """Whether a round has no record that a later session would keep."""
        self.waits = False
        """Whether the attempt waits for a later session, because the run has used what it may."""
        self.outputs: dict[int, str] = {}
        """What suites printed, by round, where there is no directory for it."""

    def __contains__(self, index: int) -> bool:
        return index in self._records

    @property
    def all_there(self) -> bool:
        """Whether all rounds have their records."""
        return all(record.done() for record in self._records.values())

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round."""
        return self._records[index].result()

    def get(self, index: int) -> RoundRecord | None:
        """Return the record of a round if it is there; does not wait."""
        record = self._records.get(index)
        return record.result() if record is not None and record.done() else None

    def skip_before(self, index: int) -> None:
        """Have no records of the rounds before one, which are not run."""
        self._records = {later: record for later, record in self._records.items() if later >= index}

    def restore(self, records: Mapping[int, RoundRecord]) -> None:
        """Hand out the records that an earlier session wrote."""
        for index, record in records.items():
            self._records[index].set_result(record)

    def give_up(self, lost: Mapping[int, str]) -> None:
        """Record rounds whose own records are lost, with the reasons, as errors that no session can make good."""
        for index, cause in lost.items():
            self.deliver(self._record(self._rounds[index], "error", cause, fault="infrastructure"), done=True)

    def leave_alone(self) -> None:
        """Write nothing from here on."""
        self._directory = None

    def after_turn(
        self, round_: Round, turn: TurnRecord, outcome: Outcome = "not reached", cause: str = "", **more: Any
    ) -> RoundRecord:
        """Return the record of a round as far as the agent's turn tells, and with ``more`` of its fields."""
        return self._record(round_, outcome, cause, **{name: getattr(turn, name) for name in _OF_TURN}, **more)

    def _record(self, round_: Round, outcome: Outcome, cause: str, **more: Any) -> RoundRecord:
        return RoundRecord(
            task=self._task.name,
            agent=self._agent,
            attempt=self._attempt,
            round=round_.name,
            index=round_.index,
            declared_rounds=len(self._task.rounds),
            outcome=outcome,
            cause=cause,
            **more,
        )

    def deliver(self, record: RoundRecord, *, done: bool, output: str | None = None) -> None:
        """Write a record and hand it out; ``done`` says that a later session would only repeat the round.

        One with a verdict waits for the records of the rounds before, with whose cases its own are compared.
        """
        record = as_recorded(record, self._context.scrubber)
        if record.verdict is not None:
            # What the rounds required that are left to the solutions held when the first of these began.
            held = [round_.name for round_ in self._task.rounds if round_.index < min(self._records)]
            before = [earlier.result() for index, earlier in self._records.items() if index < record.index]
            record = compare_cases(record, before, held)
        try:
            if self._directory is not None:
                self._directory.write_round(record, output=output, done=done)
            elif output is not None:
                self.outputs[record.index] = output
            if done:
                self._checkpoints.round_done(record.index)
        except (OSError, ValueError, EnvironmentFault) as error:
            cause = self._context.scrubber.text(f"the results could not be written: {error}")
            failed = {"outcome": "error", "cause": cause, "fault": "infrastructure"}
            record, done = record.model_copy(update=failed), False
        logger.info("%s, %s: %s", record.task, record.round, record.outcome)
        self.undone |= not done
        self._records[record.index].set_result(record)

    def skip_after(self, index: int, cause: str, taken: Mapping[int, Mapping[str, Any]] | None = None) -> None:
        """Record why the rounds after one that have no record were not reached.

        ``taken`` are fields of their records by round: what was used of the model and the agent's time all the same.
        """
        for later, record in self._records.items():
            if later > index and not record.done():
                more = (taken or {}).get(later, {})
                record.set_result(self._record(self._rounds[later], "not reached", cause, **more))

    def break_off(self, index: int, error: BaseException, turns: AgentTurns) -> None:
        """Give an error to the round in which it happened: the first from ``index`` on that has no record.

        Where the session was stopped it is no error, and where the run has used what it may these rounds wait for a
        later session. ``turns`` tell whose fault it is, and what the round had used until then.
        """
        self.undone = True
        if not self._context.cancelled.is_set():
            first = next((each for each, record in self._records.items() if each >= index and not record.done()), None)
            if isinstance(error, RunLimitReached):
                self.waits = True
                self._leave_waiting(index, str(error), turns.taken)
            elif first is not None:
                round_, cause = self._rounds[first], describe_error(error)
                taken = {**turns.taken, "agent_seconds": None}  # No more than a part of what the turn would have taken.
                self.deliver(self._record(round_, "error", cause, fault=turns.fault_of(error), **taken), done=False)
                self.skip_after(first, f"the attempt ended in {round_.name} with an error")
        self.skip_after(index - 1, STOPPED)

    def _leave_waiting(self, index: int, why: str, taken: Mapping[str, Any]) -> None:
        """Have the rounds from ``index`` on that have no record wait; ``taken`` are fields of the first's record."""
        for later, record in self._records.items():
            if later >= index and not record.done():
                more = {"waiting": why, **taken}
                record.set_result(self._record(self._rounds[later], "not reached", f"waiting: {why}", **more))
                taken = {}

    def write_attempt(self, started: str, *, deterministic: bool) -> None:
        """Write the attempt's record, now that all rounds have theirs; raises OSError and RecordFault.

        ``deterministic`` is what the agent says of itself.
        """
        if self._directory is None:
            return
        own = {index: record.result() for index, record in self._records.items()}
        # A chain from a later round leaves out those before.
        counting = range(self._begin_with or 1, len(self._task.rounds) + 1)
        with self._directory.composing() as earlier:
            others = {record.index: record for record in earlier.rounds} if earlier is not None else {}
            records = tuple(record for _, record in sorted({**others, **own}.items()))
            self._directory.write_attempt(
                AttemptRecord(
                    task=self._task.name,
                    agent=self._agent,
                    attempt=self._attempt,
                    mode=self._mode,
                    from_round=self._task.rounds[self._begin_with - 1].name if self._begin_with else None,
                    environment=self._context.engine.name,
                    task_hash=self._context.task_hash,
                    made_by=dict(self._context.options.agent),
                    strict=self._context.options.strict,
                    verify=self._task.verify,
                    deterministic=deterministic,
                    started=min(started, earlier.started) if earlier is not None else started,
                    finished=now(),
                    declared_rounds=tuple(round_.name for round_ in self._task.rounds),
                    facts=task_facts(self._task),
                    rewards=trial_rewards(records, counting, self._task.reward_strategy),
                    rounds=records,
                )
            )


_INTERVAL = 0.5  # seconds between two attempts to end a turn
_PATIENCE = 5.0  # seconds for an agent whose processes are killed; then its environment is stopped


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The round that keeps all later ones from being run."""

    index: int
    """The round's place in the task, from 1."""
    why: str


class Chain:
    """Decides when the next turn begins and which rounds count, and ends what does not count.

    A round counts once no verdict before it can end the chain any more. Until then its turn is not recorded as played
    and its verdict is not told; if the chain ends before it, all that was begun of it is dropped.

    Turns of the oracle, or with ``speculate``, begin ahead of verdicts that may well end the chain; all others begin
    ahead anyway. ``stop`` is set when the turn under way is dropped. ``is_oracle`` says that turns take nothing that
    records should tell of.
    """

    def __init__(
        self,
        context: TrialContext,
        rounds: Sequence[Round],
        turns: AgentTurns,
        checkpoints: Checkpoints,
        records: RoundRecords,
        *,
        stop: StopEvent,
        is_oracle: bool,
    ) -> None:
        self._context = context
        self._mode = context.options.mode
        self._rounds = rounds
        self._turns = turns
        self._checkpoints = checkpoints
        self._records = records
        self._stop = stop
        self._is_oracle = is_oracle
        self._speculates = (context.options.speculate or is_oracle) and not context.task.in_place
        self._deciding = [round_ for round_ in rounds if needs_verdict(round_, self._mode)]
        self._turns_are_over = threading.Event()
        self._is_settled = threading.Event()
        self._ending = threading.Lock()
        """Held while a turn that does not count is ended."""

    def resume(self, before: Resumption) -> None:
        """Leave out rounds that decide nothing any more; to be called once it is known where the attempt goes on.

        The rounds before one that has a record have let the chain go on, and so has one whose record was lost since.
        """
        first = max([before.first_played, *before.records])
        self._deciding = [each for each in self._deciding if each.index >= first and each.index not in before.lost]
        self._checkpoints.hold_back_after(self._deciding[0].index if self._deciding else math.inf)

    @property
    def has_ended(self) -> bool:
        """Whether a verdict that is there has ended the chain; does not wait."""
        for round_ in self._deciding:
            record = self._records.get(round_.index)
            if record is None or record.outcome == "not reached":
                return False
            if ended_by(round_, record, self._mode):
                return True
        return False

    def end_before(self, index: float = math.inf) -> ChainEnd | None:
        """Wait for all verdicts that decide whether a round counts, and return where the chain ends if it does not.

        Without an index that is asked of all rounds that are run.

        Raises:
            Cancelled: The session is stopped, so that one of these verdicts will not be there.
        """
        for position, round_ in enumerate(self._deciding):
            if round_.index >= index:
                break
            record = self._records.wait(round_.index)
            if record.outcome == "not reached":
                raise Cancelled(STOPPED)
            if why := ended_by(round_, record, self._mode):
                return ChainEnd(round_.index, why)
            later = self._deciding[position + 1 :]
            # What cannot be written now is tried again, and reported, when the round's own record is written.
            with contextlib.suppress(EnvironmentFault):
                self._checkpoints.count_up_to(later[0].index if later else math.inf)
        return None

    def end_turn_if_over(self, environment: Environment) -> None:
        """End the turn under way where a verdict has ended the chain; to be called when another verdict is there."""
        if not self._context.task.in_place and self.has_ended:
            with self._ending:
                self._end_turn(environment)

    def _end_turn(self, environment: Environment) -> None:
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

    def goes_on_after(self, round_: Round) -> bool:
        """Return whether the next turn begins, after the verdict where that is to be waited for; raises Cancelled."""
        waits = may_fall_short(round_, self._mode) and not self._speculates
        if waits or self._context.task.in_place:
            return self.end_before(round_.index + 1) is None
        return not self.has_ended

    def counts(self, index: int) -> bool:
        """Wait until it is known whether a round counts, and return that; it does where the session was stopped."""
        try:
            return self.end_before(index) is None
        except Cancelled:
            return True

    def settle(self) -> None:
        """Note that nothing of a dropped round runs, or is left, and that no turn begins any more."""
        self._turns_are_over.set()
        self._is_settled.set()

    def wait_until_settled(self) -> None:
        """Wait until nothing runs any more of the rounds after the end of the chain, if it has ended."""
        if self.has_ended:
            self._is_settled.wait()

    def finish(self, drop_suites_after: Callable[[int], None]) -> OSError | None:
        """Wait for the verdicts of the rounds, and drop what does not count by them; no turn begins any more.

        ``drop_suites_after`` kills the suites of the rounds after one. Returned is what kept files of dropped rounds
        from being removed. Raises Cancelled.
        """
        self._turns_are_over.set()
        end = self.end_before()
        with self._ending:  # Nothing is killed any more.
            pass
        if end is None:
            return None
        taken: dict[int, dict[str, Any]] = {}
        try:
            drop_suites_after(end.index)
            taken = self._drop(end)
        except OSError as error:
            return error
        finally:
            self._records.skip_after(end.index, end.why, taken)
        return None

    def _drop(self, end: ChainEnd) -> dict[int, dict[str, Any]]:
        """Remove all that is left of the rounds after the end, and return what their turns took, by round.

        Raises OSError.
        """
        is_done = self._checkpoints.is_done(end.index)
        self._records.undone |= not is_done
        dropped = self._checkpoints.drop_ahead()
        # Tool calls are left out: the mean of these is over rounds with a trajectory, and that is removed.
        taken = {turn.index: {"usage": turn.usage, "agent_seconds": turn.agent_seconds} for turn in dropped}
        last = self._turns.taken
        if "agent_seconds" in last and (index := self._turns.progress.index) > end.index:
            taken[index] = {"usage": last.get("usage"), "agent_seconds": last["agent_seconds"]}
        if taken:
            logger.info("%s: turns after round %d are dropped: %s", self._context.task.name, end.index, sorted(taken))
        if (directory := self._context.directory) is not None:
            # A round without a verdict is verified again by a later session, which goes on then.
            names = [round_.name for round_ in self._rounds if round_.index > end.index]
            remove_rounds(directory, names, keep_journals=not is_done)
            if taken:
                remove_changes(directory, self._addresses(end))
        return {} if self._is_oracle else taken

    def _addresses(self, end: ChainEnd) -> set[str]:
        """Return the addresses of the lists of changes that the records of the rounds that count have."""
        records = map(self._records.get, range(1, end.index + 1))
        verdicts = [record.verdict for record in records if record is not None and record.verdict is not None]
        return {verdict.changed.address for verdict in verdicts if verdict.changed is not None}


_LOOK = 0.05  # seconds between two attempts to kill what runs
_NOT_PLAYED = "the reference solution was not played again: the state that it leads to was kept"


class VerdictPipeline:
    """Runs the suites of an attempt's rounds in threads of their own, and delivers the records.

    ``keep_reference`` keeps a state that a suite accepts, by its round; None keeps none. ``is_oracle`` says that
    reference solutions are what the suites run on. Of a round that does not count by the verdicts of the ``chain``
    nothing is kept or told.
    """

    def __init__(
        self,
        context: TrialContext,
        suites: SuiteRunner,
        checkpoints: Checkpoints,
        records: RoundRecords,
        keep_reference: Callable[[int, Snapshot], object] | None,
        chain: Chain,
        *,
        is_oracle: bool,
    ) -> None:
        self._context = context
        self._suites = suites
        self._checkpoints = checkpoints
        self._records = records
        self._keep = keep_reference
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
            wait(later, timeout=_LOOK)
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
            self._run_suite(environment, round_, turn)
        finally:
            self._chain.end_turn_if_over(environment)

    def _run_suite(self, environment: Environment, round_: Round, turn: TurnRecord) -> None:
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
        if self._keep is not None and whole and suite.verdict is not None and suite.verdict.passed:
            self._keep(round_.index, snapshot)

    def _fail(self, round_: Round, turn: TurnRecord, error: Exception) -> None:
        """Deliver the record of a round that could not be verified."""
        if self._context.cancelled.is_set():  # Then the suite was killed, and the error says nothing of the engine.
            record = self._records.after_turn(round_, turn, cause=STOPPED)
        else:
            logger.info("%s, %s: not verified: %s", self._context.task.name, round_.name, type(error).__name__)
            cause = describe_error(error)
            record = self._records.after_turn(round_, turn, outcome="error", cause=cause, fault="infrastructure")
        self._records.deliver(record, done=False)
