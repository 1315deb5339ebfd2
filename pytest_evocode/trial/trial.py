"""One attempt of one agent through one task, from the first round to the last; knows nothing of pytest."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType

from pytest_evocode.agents import (
    Agent,
    PreparedAgent,
    ResumableAgent,
    SelectiveAgent,
    close_agent,
    declared_secrets,
)
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, Environment, Snapshot
from pytest_evocode.errors import (
    AgentFault,
    AttemptEnded,
    EnvironmentFault,
    EvocodeError,
    RecordFault,
    ResumeRefused,
    describe_error,
)
from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.results.directory import AttemptDirectory, now
from pytest_evocode.results.records import AttemptState, Fault, RoundRecord, TurnRecord
from pytest_evocode.secrets import Scrubber, withheld_from_agent
from pytest_evocode.tasks import Round, Task, resolve_env
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trial.agent_turns import OUT_OF_REACH, AgentTurns
from pytest_evocode.trial.checkpoints import Checkpoints, Resumption, keep_state, memory_of
from pytest_evocode.trial.held_forks import HeldFork
from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.progress import Progress
from pytest_evocode.trial.round_records import RoundRecords
from pytest_evocode.trial.starting_state import StartingState
from pytest_evocode.trial.suite_runner import SuiteRunner
from pytest_evocode.trial.verdict_pipeline import VerdictPipeline
from pytest_evocode.trial.verifier_slots import VerifierSlots

__all__ = ["Trial", "TrialOptions"]


class Trial:
    """Runs the rounds of one attempt in a thread of its own; verdicts come while later rounds are under way.

    ``name`` is what records call the agent, its own unless said otherwise. ``attempt`` counts from 1. ``wanted`` is the
    index of the first round that is asked for, ``through`` of the last, None for the task's last; rounds before
    ``wanted`` are run where it takes them to get there. ``first`` is the index of the first round that is the agent's,
    1 unless said otherwise: those before are left to the reference solutions, and have no record. ``directory`` is
    where results are written, None for nowhere. Records hold none of the secrets of ``options.environ``.

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
        wanted: int = 1,
        through: int | None = None,
        first: int | None = None,
        directory: AttemptDirectory | None = None,
        options: TrialOptions | None = None,
    ) -> None:
        self.task = task
        self.agent = agent
        self.environment: Environment | None = None
        """The container of the attempt, from its start to its end."""
        self._engine = engine
        self._attempt = attempt
        self._first = first or 1
        self._rounds = task.rounds[:through]
        self._directory = directory
        self._options = options or TrialOptions()
        self._scrubber = directory.scrubber if directory else Scrubber(self._options.environ)
        self._scrubber.learn(self._options.environ, declared_secrets(agent))
        self._ready: Future[Environment] = Future()
        self._begun_after: Future[int] = Future()
        slots = VerifierSlots(self._options.verifiers)
        self._thread = threading.Thread(target=self._run, name=f"trial-{task.name}", daemon=True)
        self._cancelled = threading.Event()
        self._closing = threading.Lock()
        task_hash = hash_directory(task.directory) if directory is not None else ""
        self._state = AttemptState(environment=engine.name, task_hash=task_hash, made_by=dict(self._options.agent))
        self._turns = AgentTurns(
            task,
            agent,
            environ=self._options.environ,
            timeout_multiplier=self._options.timeout_multiplier,
            cancelled=self._cancelled,
            directory=directory,
            spending=AttemptSpending(self._options.budget, run=self._options.run_spending),
            withheld=self._options.withheld,
            begun_by={"made_by": self._state.made_by, "task_hash": task_hash},
        )
        self._withheld = withheld_from_agent(self._options.environ, declared_secrets(agent))
        self._suites = SuiteRunner(
            task,
            environ=self._options.environ,
            withheld=self._withheld,
            timeout_multiplier=self._options.timeout_multiplier,
            slots=slots,
            strict=self._options.strict,
            artifacts=directory.artifacts if directory else None,
            cancelled=self._cancelled,
            hold=self._options.hold_forks,
        )
        # What runs in place needs the processes there, which no snapshot has.
        self._kept_in = directory if self._options.keep_snapshots and not self._suites.in_place else None
        self._checkpoints = Checkpoints(directory, self._state, keep_all=self._kept_in is not None)
        if self._options.hold_last:
            self._checkpoints.hold(len(self._rounds))
        self._beginning = StartingState(
            task,
            agent,
            engine,
            self._options,
            first=self._first,
            wanted=wanted,
            cancelled=self._cancelled,
            play=lambda last, options: Trial(task, OracleAgent(), engine, wanted=last, through=last, options=options),
        )
        self._records = RoundRecords(
            task,
            name or agent.name,
            attempt,
            self._rounds[self._first - 1 :],
            mode=self._options.mode,
            from_round=task.rounds[first - 1].name if first and self._options.mode != "single-round" else None,
            directory=directory,
            scrubber=self._scrubber,
            checkpoints=self._checkpoints,
        )
        self._verdicts = VerdictPipeline(
            self._turns,
            self._suites,
            self._checkpoints,
            self._records,
            self._beginning.kept,
            self._scrubber,
            self._cancelled,
            strict=self._options.strict,
            threads=slots.count,
        )
        self._started = ""
        self._unwritten: Exception | None = None

    # What callers use.

    def run(self) -> Iterator[RoundRecord]:
        """Run the attempt and yield each round's record as soon as it and all before it are there."""
        with self:
            for index in range(self.begun_after() + 1, len(self._rounds) + 1):
                yield self.wait(index)

    def __enter__(self) -> Trial:
        self._started = now()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begun_after(self) -> int:
        """Wait until it is known where the attempt begins: the rounds up to this one are not run and have no record."""
        return self._begun_after.result()

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round (from 1) that is run."""
        return self._records.wait(index)

    def last_state(self) -> Snapshot:
        """The state after the last round that is run, once its record is there; for ``options.hold_last``."""
        return self._checkpoints.snapshot_of(len(self._rounds))

    def wait_environment(self) -> Environment:
        """Wait until the environment has started; raises what kept it from starting.

        That is :class:`~pytest_evocode.errors.AttemptEnded` where a resumed session has nothing left to do.
        """
        return self._ready.result()

    @property
    def progress(self) -> Progress | None:
        """How far the attempt is, None when all its records are there; for any thread to ask."""
        return None if self._records.all_there else replace(self._turns.progress, rounds=len(self._rounds))

    def fork_of(self, index: int) -> HeldFork | None:
        """The fork in which the suite of a failed round was run, once the round's record is there.

        None where it is not held, and where there is none: a suite that ran in place, or in an earlier session.
        """
        return self._suites.fork_of(index)

    def drop_fork(self, index: int) -> None:
        """Let go of a round's fork, if it has one."""
        self._suites.drop_fork(index)
        self._checkpoints.release(index)

    def close(self) -> None:
        """End the attempt now: what still runs is killed, what was recorded stays, nothing is left behind.

        May be called by any thread, and again.
        """
        with self._closing:
            self._close()

    def _close(self) -> None:
        if not self._records.all_there:
            self._cancelled.set()
        while self._thread.is_alive():
            if self._cancelled.is_set():
                # Again and again: what was just about to start when the first call came is stopped by the next.
                self._suites.stop()
                if self.environment is not None:
                    with contextlib.suppress(EnvironmentFault):
                        self.environment.stop()
                self._beginning.stop()
            self._thread.join(0.05)
        for round_ in self._rounds:
            self.drop_fork(round_.index)
        if self.environment is not None:
            self.environment.stop()
        self._checkpoints.close(finished=not self._records.undone)
        if self._unwritten is not None:
            raise EnvironmentFault(f"the attempt's record could not be written: {self._unwritten}")

    # The attempt.

    def _run(self) -> None:
        """The chain: agent's turn, snapshot, and on; suites run beside it and deliver the records."""
        ended = 0
        try:
            self._suites.prepare(self._engine)
            with contextlib.ExitStack() as until_started:
                before = self._look_back(until_started)
                self._begin_after(before.begun_after)
                self._records.restore(before.records)
                if self._records.all_there:
                    self._ready.set_exception(AttemptEnded("the attempt had ended in an earlier session"))
                    return
                environment = self._start(before)
            self._make_ready(environment, before)
            ended = before.last_turn
            for turn in before.turns:
                self._verdicts.begin(environment, self._rounds[turn.index - 1], turn)
            if ended in self._records and not self._goes_on_after(self._rounds[ended - 1]):
                return
            if ended < before.begun_after:
                self._beginning.play_in_place(environment, self._suites)
                ended = before.begun_after
            for round_ in self._rounds[ended:]:
                turn = self._turns.take(environment, round_)
                suite = self._suites.run_in_place(environment, round_) if self._suites.in_place else None
                self._keep(environment, turn)
                ended = round_.index
                if suite is not None:
                    self._verdicts.conclude(round_, turn, suite)
                else:
                    self._verdicts.begin(environment, round_, turn)
                if not self._goes_on_after(round_):
                    return
        except BaseException as error:  # An agent may call sys.exit(): nobody must wait for its records for ever.
            self._break_off(ended + 1, error)
        finally:
            close_agent(self.agent)
            self._finish()

    def _look_back(self, until_started: contextlib.ExitStack) -> Resumption:
        """What there is to go on from: of this attempt, or of reference solutions."""
        own = self._rounds[self._first - 1 :]
        before = self._checkpoints.load(self._engine, own) if self._options.resume else Resumption()
        if before != Resumption():
            return before
        return self._beginning.find(in_place=self._suites.in_place, until_started=until_started)

    def _begin_after(self, index: int) -> None:
        self._records.begin_after(index)
        self._begun_after.set_result(index)

    def _start(self, before: Resumption) -> Environment:
        path = self.task.file
        env = resolve_env(self.task.config.environment.env, self._options.environ, path=path, withheld=self._withheld)
        network = self._rounds[0].agent_network
        if isinstance(self.agent, SelectiveAgent):
            self.agent.check_task(self.task, self._engine.name)
        environment = self._engine.create(
            self.task, env=env, network=network, snapshot=before.start, installation=self._beginning.installation
        )
        self._turns.refuse_when_cancelled()
        self.environment = environment
        environment.start()
        return environment

    def _make_ready(self, environment: Environment, before: Resumption) -> None:
        environment.remove(OUT_OF_REACH)  # An image may have brought them.
        if (check := self.task.config.environment.healthcheck) is not None:
            self._turns.check_health(environment, check, "the environment")
        if isinstance(self.agent, PreparedAgent):
            self.agent.warm_up()
        self._turns.spending.resume(before.spent)
        if before.last_turn > before.begun_after and isinstance(self.agent, ResumableAgent):
            self.agent.load_state(before.agent)
        self._ready.set_result(environment)

    def _keep(self, environment: Environment, turn: TurnRecord) -> None:
        """Take the snapshot that the round is verified in, and that a later session goes on from."""
        memory = memory_of(self.agent)
        snapshot = environment.snapshot(keep_for=self._checkpoints.keep_for)
        if self._kept_in is not None and snapshot.reference:
            strict, timeout_multiplier = self._options.strict, self._options.timeout_multiplier
            keep_state(self._kept_in, self._engine, self.task, turn.index, snapshot, strict, timeout_multiplier)
        ended = turn.model_copy(update={"snapshot": snapshot.reference})
        self._checkpoints.turn_ended(ended, snapshot, memory, self._turns.spending.spent)
        self._turns.settle()

    def _goes_on_after(self, round_: Round) -> bool:
        """Whether the verdict, which is waited for where the mode or the task says so, allows the next round."""
        why = ""
        if self._options.mode == "fail-stop" and not self.wait(round_.index).passed:
            why = f"{round_.name} did not pass, which ends the attempt (fail-stop)"
        elif round_.min_reward is not None and not (
            (verdict := self.wait(round_.index).verdict) and verdict.reaches(round_.min_reward)
        ):
            why = f"{round_.name} stayed below its min_reward"
        if why:
            self._records.skip_after(round_.index, why)
            self._records.undone |= not self._checkpoints.is_done(round_.index)
        return not why

    # Endings.

    def _break_off(self, index: int, error: BaseException) -> None:
        """Put the error on the round it happened in, the first from ``index`` on that has no record."""
        if not self._ready.done():
            self._ready.set_exception(error)
        if not self._begun_after.done():
            self._begin_after(self._first - 1)
        if isinstance(error, ResumeRefused):
            self._checkpoints.leave_alone()
            self._records.leave_alone()
        broke_down = self._turns.under_way and not isinstance(error, EvocodeError)
        fault: Fault = "agent" if broke_down or isinstance(error, AgentFault) else "infrastructure"
        cause = None if self._cancelled.is_set() else describe_error(error)
        self._records.break_off(index, cause, fault, usage=self._turns.unrecorded)

    def _finish(self) -> None:
        """Wait for the suites and write the attempt's record; the environment stays until :meth:`close`."""
        self._verdicts.wait()
        if self._cancelled.is_set():
            return
        try:
            self._records.write_attempt(self._state, self._started)
        except (OSError, RecordFault) as error:
            self._unwritten = error
