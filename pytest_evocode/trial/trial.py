"""Runs one attempt of one agent through one task, from the first round to the last; knows nothing of pytest."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace

from pytest_evocode.agents import (
    Agent,
    PreparedAgent,
    ResumableAgent,
    check_task,
    close_agent,
    declared_secrets,
    is_deterministic,
)
from pytest_evocode.agents.oracle import NopAgent, OracleAgent
from pytest_evocode.environments import Engine, Environment, Snapshot
from pytest_evocode.errors import AgentFault, AttemptEnded, EnvironmentFault, RecordFault, RunLimitReached
from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.results.directory import AttemptDirectory, now
from pytest_evocode.results.records import RoundRecord, TurnRecord
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.agent_turns import AgentTurns, memory_of
from pytest_evocode.trial.context import Progress, TrialContext, TrialOptions, writing_results
from pytest_evocode.trial.log import AttemptLog, Resumption
from pytest_evocode.trial.references import ReferenceChanges, StartingState
from pytest_evocode.trial.suites.left_forks import HeldFork
from pytest_evocode.trial.suites.runner import SuiteRunner
from pytest_evocode.trial.verdicts import VerdictPipeline

__all__ = ["RoundSelection", "Trial", "TrialOptions"]

logger = logging.getLogger(__name__)
_LOOK = 0.5  # seconds between two looks at whether the attempt runs


class Trial:
    """Runs the rounds of one attempt in a thread of its own; verdicts come while later rounds are under way.

    >>> for record in Trial(task, agent, engine).run():  # doctest: +SKIP
    ...     print(record.round, record.outcome)
    """

    def __init__(
        self,
        task: Task,
        agent: Agent,
        engine: Engine,
        *,
        name: str | None = None,
        attempt: int = 1,
        rounds: RoundSelection | None = None,
        directory: AttemptDirectory | None = None,
        options: TrialOptions | None = None,
    ) -> None:
        """Prepare an attempt; :meth:`run` or entering the trial's context begins it.

        Args:
            task: The task, as :func:`~pytest_evocode.tasks.load_task` returns it.
            agent: The agent; its memory lasts for the attempt.
            engine: Makes the environments.
            name: What records call the agent; None is its own name.
            attempt: The attempt's number, from 1.
            rounds: The rounds that are run; None is all.
            directory: Where results are written; None writes none.
            options: How the attempt is run. Records hold none of the secrets of ``options.environ``.
        """
        self.task = task
        self.agent = agent
        self.environment: Environment | None = None
        """The container of the attempt, from its start to its end."""
        rounds = rounds or RoundSelection()
        self._rounds = task.rounds[: rounds.last]
        options = options or TrialOptions()
        # What another agent left in a fork may read what is there.
        is_authors = type(agent) in (OracleAgent, NopAgent) and options.fork is None
        self._context = context = TrialContext.of(
            task, engine, options, directory=directory, declared_secrets=declared_secrets(agent), is_authors=is_authors
        )
        stop = context.cancelled.part()
        spending = AttemptSpending(options.budget, run=options.run_spending)
        self._turns = AgentTurns(replace(context, cancelled=stop), agent, spending=spending)
        self._start_state = state = StartingState(context, agent, rounds, self._oracle_attempt)
        self._suites = SuiteRunner(context, ReferenceChanges(context), is_oracle=state.is_of_task_alone)
        self._log = AttemptLog(
            context,
            name or agent.name,
            attempt,
            rounds,
            self._suites.clearing.begin,
            speculates=(options.speculate or state.is_oracle) and not task.in_place,
            # Suites that run in place need the processes there, which no snapshot has.
            keep_all=options.keep_snapshots and not task.in_place,
            installation=state.installation,
        )
        self._verdicts = VerdictPipeline(
            context, self._suites, self._log, self._turns, state.keep, stop=stop, is_oracle=state.is_oracle
        )
        self._thread = threading.Thread(target=self._run, name=f"trial-{task.name}", daemon=True)
        self._ready: Future[Environment] = Future()
        self._closing = threading.Lock()
        self._started = ""
        self._unwritten: Exception | None = None

    def _oracle_attempt(self, rounds: RoundSelection, options: TrialOptions) -> Trial:
        return Trial(self.task, OracleAgent(), self._context.engine, rounds=rounds, options=options)

    # What callers use.

    def run(self) -> Iterator[RoundRecord]:
        """Run the attempt and yield each round's record as soon as it and all before it are there."""
        with self:
            for index in range(self.first_played(), len(self._rounds) + 1):
                yield self.wait(index)

    def __enter__(self) -> Trial:
        self._started = now()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def is_over(self) -> bool:
        """Whether the attempt has begun and nothing of it runs any more; its environment stays until :meth:`close`."""
        return bool(self._started) and not self._thread.is_alive()

    def first_played(self) -> int:
        """Wait until it is known which round is the first that is run; those before it have no record."""
        return self._log.first_played()

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round (from 1) that is run.

        One that ends the chain is there when nothing of later rounds runs in the environment any more.
        """
        record = self._log.wait(index)
        if self._log.has_ended:  # Then rounds that do not count have their records when nothing is left of them.
            self._log.wait(len(self._rounds))
        return record

    def record_of(self, index: int) -> Future[RoundRecord]:
        """Return what gives the record of a round (from 1) that is run, for those who do not wait in a thread."""
        return self._log.record_of(index)

    def wait_turns(self) -> None:
        """Wait until the agent's last turn is over; suites may still run."""
        while self._thread.is_alive() and not self._verdicts.wait_turns(_LOOK):
            pass

    def last_state(self) -> Snapshot:
        """Return the state after the last round that is run, once its record is there; it is there until the end."""
        return self._log.snapshot_of(len(self._rounds))

    def wait_environment(self) -> Environment:
        """Wait until the environment has started; raises what kept it from starting.

        That is :class:`~pytest_evocode.errors.AttemptEnded` where a resumed session has nothing left to do.
        """
        return self._ready.result()

    @property
    def progress(self) -> Progress | None:
        """How far the attempt is, None when all its records are there and nothing lags; any thread may ask."""
        ended = self._log.all_there
        return self._suites.clearing.progress if ended else replace(self._turns.progress, rounds=len(self._rounds))

    def fork_of(self, index: int) -> HeldFork | None:
        """Return the fork in which the suite of a round was run, once the round's record is there.

        None where it is not held, and where there is none: a suite that ran in place, or in an earlier session.
        """
        return self._suites.fork_of(index)

    def output_of(self, index: int) -> str:
        """Return what the suite of a round printed, once its record is there; empty where a directory has it."""
        return self._log.outputs.get(index, "")

    @property
    def storage_notes(self) -> tuple[str, ...]:
        """What is to be said of the storage: what was not found there as it was left, and what could not be saved."""
        return self._log.storage_notes

    def drop_fork(self, index: int) -> None:
        """Stop a round's fork, if it has one."""
        self._suites.drop_fork(index)
        self._log.release(index, "fork")

    def close(self, *, for_good: bool = False) -> None:
        """End the attempt now: what still runs is killed, what was recorded stays, nothing is left behind.

        May be called by any thread, and again. ``for_good`` says that no later session is to go on with it.
        """
        with self._closing:
            self._close(for_good=for_good)

    def _close(self, *, for_good: bool) -> None:
        if not self._log.all_there and not self._log.has_ended:
            logger.info("%s: the attempt is stopped before its end", self.task.name)
            self._context.cancelled.set()
        while self._thread.is_alive():
            if self._context.cancelled.is_set():
                # Again and again: what was just about to start when the first call came is stopped by the next.
                self._suites.stop()
                if self.environment is not None:
                    with contextlib.suppress(EnvironmentFault):
                        self.environment.stop()
                self._start_state.stop()
            self._thread.join(0.05)
        try:
            if self.environment is not None:
                self.environment.stop()
        finally:
            self._suites.close()
        finished = self._log.is_finished or for_good
        self._log.close(finished=finished)
        self._suites.state.end(finished=finished)
        self._start_state.close()
        if self._unwritten is not None:
            raise EnvironmentFault(f"the attempt's record could not be written: {self._unwritten}")

    # The attempt.

    def _run(self) -> None:
        """Start, then for each round turn, judge and record, and end; suites run beside the turns of later rounds."""
        try:
            environment, rounds = self._start()
            for round_ in rounds:
                turn = self._turns.take(environment, round_, self._verdicts.prepare)
                if not (self._judge(environment, round_, turn) and self._log.goes_on_after(round_)):
                    break
            self._unwritten = self._verdicts.finish()
        except AttemptEnded as error:
            self._ready.set_exception(error)
        except BaseException as error:  # An agent may call sys.exit(): nobody must wait for its records for ever.
            self._break_off(error)
        finally:
            self._end()

    def _start(self) -> tuple[Environment, Sequence[Round]]:
        """Start the environment where the attempt goes on, and return it with the rounds whose turns are left.

        Raises AttemptEnded where nothing is left to do, beside all that may go wrong.
        """
        self._suites.prepare()
        with contextlib.ExitStack() as until_started:
            before = self._look_back(until_started)
            self._log.begin(before)
            if self._log.all_there:
                raise AttemptEnded("the attempt had ended in an earlier session")
            environment = self._start_environment(before)
        self._make_ready(environment, before)
        in_order = before.turns if self._suites.state.paths else before.turns[::-1]  # The longest suites first.
        for turn in in_order:
            self._verdicts.begin(environment, self._rounds[turn.index - 1], turn)
        last = before.last_turn
        if last in self._log and not self._log.goes_on_after(self._rounds[last - 1]):
            return environment, ()
        if last < before.first_played - 1:
            self._start_state.play_in_place(environment, self._suites)
            last = before.first_played - 1
        return environment, self._rounds[last:]

    def _look_back(self, until_started: contextlib.ExitStack) -> Resumption:
        """Return where to go on: from an earlier session's end of this attempt, or from reference solutions."""
        before = self._log.look_back() if self._context.options.resume else Resumption()
        if before != Resumption():
            logger.info("%s: resumed after round %d", self.task.name, before.last_turn)
            return before
        return self._start_state.find(self._suites.in_place, until_started)

    def _start_environment(self, before: Resumption) -> Environment:
        check_task(self.agent, self.task, self._context.engine.name)
        if not before.turns and getattr(self.agent, "pays", False) and (why := self._turns.spending.run_exhausted):
            raise RunLimitReached(why)  # Before a container is started for nothing.
        environment = self._context.task_environment.create(
            snapshot=before.start, installation=self._start_state.installation
        )
        self._context.task_environment.refuse_when_cancelled()
        self.environment = environment
        # An agent may have left no shell for it to start with.
        with environment.mendable() if before.start is not None else contextlib.nullcontext():
            environment.start()
        return environment

    def _make_ready(self, environment: Environment, before: Resumption) -> None:
        if self._context.options.mid_turn is None:
            self._context.task_environment.make_ready(environment)
        else:
            with environment.mendable():
                self._context.task_environment.enter_fork(environment)
        if isinstance(self.agent, PreparedAgent):
            self.agent.warm_up()
        self._turns.spending.resume(before.spent)
        self._turns.note_beginning()
        if before.last_turn >= before.first_played and isinstance(self.agent, ResumableAgent):
            self.agent.load_state(before.agent)
        if self._context.directory is not None:
            with writing_results():
                self._context.directory.reopen()
        self._log.begin_saving()
        self._ready.set_result(environment)

    def _judge(self, environment: Environment, round_: Round, turn: TurnRecord) -> bool:
        """Have a round's suite run on what its turn left, and return whether a later turn could go on from there.

        It runs in a fork of a snapshot beside what goes on, or here and now where it runs in place.
        """
        suite = self._suites.run_in_place(environment, round_) if self._suites.in_place else None
        try:
            turn = self._keep(environment, turn)
        except AgentFault as error:
            self._turns.settle()()
            self._verdicts.give_up(round_, turn, error)
            return False
        if suite is not None:
            self._verdicts.conclude(round_, turn, suite)
        else:
            self._verdicts.begin(environment, round_, turn)
        return True

    def _keep(self, environment: Environment, turn: TurnRecord) -> TurnRecord:
        """Take the snapshot that the round is verified in, and that a later session goes on from.

        Returned is the turn with the time that this took. Raises AgentFault where the agent's doing prevents it.
        """
        stopwatch = self._turns.stopwatch
        stopwatch.begin("bookkeeping")
        memory = memory_of(self.agent)
        stopwatch.begin("snapshot")
        snapshot = self._verdicts.snapshot(environment, self._rounds[turn.index - 1])
        stopwatch.begin("bookkeeping")
        ended = turn.model_copy(update={"snapshot": snapshot.reference, "phases": stopwatch.phases})
        self._log.turn_ended(ended, snapshot, memory, self._turns.spending.spent, self._turns.settle())
        stopwatch.stop()
        return turn.model_copy(update={"phases": stopwatch.phases})

    def _break_off(self, error: BaseException) -> None:
        """Give the error to the round in which it happened; it is nobody's where the round does not count."""
        index = self._verdicts.first_left
        if not self._log.counts(index):
            self._unwritten = self._verdicts.finish()
            return
        logger.info("%s: the attempt ends with %s in round %d or later", self.task.name, type(error).__name__, index)
        if not self._ready.done():
            self._ready.set_exception(error)
        self._log.break_off(index, error, self._turns.fault_of(error), self._turns.taken, had_turn=self._turns.begun)

    def _end(self) -> None:
        """Wait for the suites and write the attempt's record; the environment stays until :meth:`close`."""
        close_agent(self.agent)
        self._verdicts.wait()
        try:
            self._log.write_attempt(self._started, deterministic=is_deterministic(self.agent))
        except (OSError, RecordFault) as error:
            self._unwritten = error
