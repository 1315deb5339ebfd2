"""One attempt of one agent through one task, from the first round to the last; knows nothing of pytest."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from pytest_evocode.agents import Agent, RoundContext, RoundTranscript, declared_secrets
from pytest_evocode.environments import Engine, Environment, Snapshot
from pytest_evocode.errors import Cancelled, EnvironmentFault, EvocodeError, TaskError
from pytest_evocode.metrics.failures import judge_cases
from pytest_evocode.metrics.scores import trial_rewards
from pytest_evocode.results.models import AttemptRecord, RoundRecord, Verdict
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.results.store import AttemptDirectory, now
from pytest_evocode.secrets import Scrubber, withheld_from_agent
from pytest_evocode.tasks import Healthcheck, Round, Task, resolve_env
from pytest_evocode.verifier import FRESH, SuiteRun, run_suite

_STOPPED = "the session was stopped"
_SETUP_TIMEOUT = 600.0  # seconds for a round's setup.sh


@dataclass(frozen=True, slots=True)
class _Turn:
    """An agent's finished turn."""

    transcript: RoundTranscript
    seconds: float

    @property
    def tool_calls(self) -> int | None:
        trajectory = self.transcript.trajectory
        return None if trajectory is None else trajectory.tool_call_count


class Trial:
    """Runs the rounds of one attempt in a thread of its own; verdicts come while later rounds are under way.

    ``attempt`` counts from 1. ``through`` is the index of the last round to run, None for all. ``directory`` is where
    results are written, None for nowhere. ``environ`` resolves the ``${VAR}`` of task.toml; records hold none of its
    secrets.

    >>> for record in Trial(task, agent, engine).run():  # doctest: +SKIP
    ...     print(record.round, record.outcome)
    """

    def __init__(
        self,
        task: Task,
        agent: Agent,
        engine: Engine,
        *,
        attempt: int = 1,
        through: int | None = None,
        directory: AttemptDirectory | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.task = task
        self.agent = agent
        self.environment: Environment | None = None
        """The container of the attempt, from its start to its end."""
        self._engine = engine
        self._attempt = attempt
        self._rounds = task.rounds[:through]
        self._directory = directory
        self._environ = environ
        self._scrubber = directory.scrubber if directory else Scrubber(environ)
        self._scrubber.learn(environ, declared_secrets(agent))
        self._records: dict[int, Future[RoundRecord]] = {round_.index: Future() for round_ in self._rounds}
        self._ready: Future[Environment] = Future()
        self._verifiers = ThreadPoolExecutor(os.cpu_count() or 2, thread_name_prefix=f"verifier-{task.name}")
        self._thread = threading.Thread(target=self._run, name=f"trial-{task.name}", daemon=True)
        self._cancelled = threading.Event()
        self._forks: set[Environment] = set()
        self._started = ""
        self._unwritten: OSError | None = None

    # What callers use.

    def run(self) -> Iterator[RoundRecord]:
        """Run the attempt and yield each round's record as soon as it and all before it are there."""
        with self:
            for index in self._records:
                yield self.wait(index)

    def __enter__(self) -> Trial:
        self._started = now()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round (from 1)."""
        return self._records[index].result()

    def wait_environment(self) -> Environment:
        """Wait until the environment has started; raises what kept it from starting."""
        return self._ready.result()

    def close(self) -> None:
        """End the attempt now: what still runs is killed, what was recorded stays, nothing is left behind."""
        if not all(record.done() for record in self._records.values()):
            self._cancelled.set()
        while self._thread.is_alive():
            if self._cancelled.is_set():
                # Again and again: what was just about to start when the first call came is stopped by the next.
                for environment in [*self._forks, *([self.environment] if self.environment else [])]:
                    with contextlib.suppress(EnvironmentFault):
                        environment.stop()
            self._thread.join(0.05)
        if self.environment is not None:
            self.environment.stop()
        if self._unwritten is not None:
            raise EnvironmentFault(f"the attempt's record could not be written: {self._unwritten}")

    # The attempt.

    def _run(self) -> None:
        """The chain: agent's turn, snapshot, and on; suites run beside it and deliver the records."""
        submitted = 0
        try:
            environment = self._start()
            for round_ in self._rounds:
                turn = self._take_turn(environment, round_)
                snapshot = environment.snapshot()
                self._verifiers.submit(self._verify, environment, round_, turn, snapshot)
                submitted = round_.index
                if round_.min_reward is not None and not self._reaches(round_, round_.min_reward):
                    self._skip_after(round_.index, f"{round_.name} stayed below its min_reward")
                    break
        except BaseException as error:  # An agent may call sys.exit(): nobody must wait for its records for ever.
            self._break_off(submitted + 1, error)
        finally:
            self._finish()

    def _start(self) -> Environment:
        wanted = self.task.config.environment
        withheld = withheld_from_agent(self._environ, declared_secrets(self.agent))
        env = resolve_env(wanted.env, self._environ, path=self.task.directory / "task.toml", withheld=withheld)
        environment = self._engine.create(self.task, env=env, network=self._rounds[0].agent_network)
        self._refuse_when_cancelled()
        self.environment = environment
        environment.start()
        if wanted.healthcheck is not None:
            self._check_health(environment, wanted.healthcheck, "the environment")
        self._ready.set_result(environment)
        return environment

    def _take_turn(self, environment: Environment, round_: Round) -> _Turn:
        self._refuse_when_cancelled()
        self._prepare(environment, round_)
        context = RoundContext(
            task=self.task,
            round=round_,
            instruction=_read_instruction(round_),
            environment=environment,
            solution_env=self._resolved(round_.solution_env),
            timeout=round_.agent_timeout,
        )
        started = time.monotonic()
        transcript = self.agent.run_round(context)
        if transcript.timed_out:
            environment.kill_processes()
        return _Turn(transcript, time.monotonic() - started)

    def _prepare(self, environment: Environment, round_: Round) -> None:
        """Bring the round's files and make sure that the workspace is ready for the agent."""
        if round_.workdir is not None:
            # An agent that is not root, by the task or by the image, has to be able to edit what it is given.
            environment.upload([round_.workdir], environment.workdir, writable=True)
            if (round_.workdir / "setup.sh").is_file():
                result = environment.exec(["bash", "setup.sh"], timeout=_SETUP_TIMEOUT)
                if not result.ok:
                    ending = "did not end in time" if result.timed_out else f"ended with exit code {result.exit_code}"
                    tail = "\n".join(result.output.splitlines()[-20:])
                    raise TaskError(f"{ending}; correct it. Its last lines:\n{tail}", round_.workdir / "setup.sh")
        if round_.healthcheck is not None:
            self._check_health(environment, round_.healthcheck, round_.name)

    def _check_health(self, environment: Environment, check: Healthcheck, what: str) -> None:
        """Docker's rules: failures within the start period do not count, then so many in a row are one too many."""
        started = time.monotonic()
        failures = 0
        while True:
            self._refuse_when_cancelled()
            result = environment.exec(check.command, timeout=check.timeout_sec)
            if result.ok:
                return
            starting = time.monotonic() - started < check.start_period_sec
            failures += not starting
            if failures >= check.retries:
                raise TaskError(
                    f"the healthcheck of {what} failed {failures} times in a row: {check.command}\n"
                    f"{result.output[-2000:]}",
                    self.task.directory / "task.toml",
                )
            self._cancelled.wait(check.start_interval_sec if starting else check.interval_sec)

    def _resolved(self, env: Mapping[str, str]) -> dict[str, str]:
        return resolve_env(env, self._environ, path=self.task.directory / "task.toml")

    def _refuse_when_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled(_STOPPED)

    # Verdicts.

    def _verify(self, environment: Environment, round_: Round, turn: _Turn, snapshot: Snapshot) -> None:
        """Run a round's suite in a fork and deliver its record, after those of the rounds before."""
        suite: SuiteRun | None = None
        try:
            try:
                self._refuse_when_cancelled()
                fork = environment.fork(snapshot, network=round_.verifier_network, fresh=FRESH)
                artifacts = self._directory.artifacts(round_.name) if self._directory else None
                with self._alive(fork):
                    suite = run_suite(
                        fork, self.task, round_, env=self._resolved(round_.verifier_env), artifacts=artifacts
                    )
            finally:
                with contextlib.suppress(EnvironmentFault):
                    snapshot.discard()
            record = self._judge(round_, turn, suite)
        except Exception as error:
            stopped = self._cancelled.is_set()  # Then what was killed under it is to blame, and not the engine.
            record = self._record(
                round_,
                outcome="not reached" if stopped else "error",
                cause=_STOPPED if stopped else _describe(error),
                tool_calls=turn.tool_calls,
                agent_seconds=turn.seconds,
            )
        self._deliver(record, suite, turn)

    @contextlib.contextmanager
    def _alive(self, fork: Environment) -> Iterator[None]:
        """Make the fork known to :meth:`close` while it runs, and stop it in the end."""
        self._forks.add(fork)
        try:
            yield
        finally:
            self._forks.discard(fork)
            with contextlib.suppress(EnvironmentFault):  # The verdict counts; the engine clears up when it closes.
                fork.stop()

    def _judge(self, round_: Round, turn: _Turn, suite: SuiteRun) -> RoundRecord:
        transcript = turn.transcript
        # Here and not only when it is delivered: cases are compared by name with those of rounds that were.
        verdict = scrubbed(suite.verdict, self._scrubber)
        timed_out = "agent" if transcript.timed_out else "verifier" if verdict and verdict.timed_out else None
        causes = []
        if transcript.timed_out:
            # Without a deadline of the task's it is the agent's own, such as its model's.
            limit = round_.agent_timeout
            causes.append(
                f"the agent was stopped at its timeout of {limit:g} s" if limit else "the agent ran out of time"
            )
        if verdict is not None and verdict.timed_out:
            causes.append(f"the suite was stopped at its timeout of {round_.verifier_timeout:g} s")
        if suite.fault:
            causes.append(suite.fault)
        if verdict is not None:
            earlier = [self._records[index].result() for index in range(1, round_.index)]
            cases = judge_cases(verdict.cases, earlier)
            left_out = (f"artifact left out: {reason}" for reason in suite.left_out)
            verdict = verdict.model_copy(update={"cases": cases, "flags": (*verdict.flags, *left_out)})
        return self._record(
            round_,
            outcome="error" if verdict is None else "passed" if verdict.passed else "failed",
            cause="\n".join(causes),
            verdict=verdict,
            timed_out=timed_out,
            tool_calls=turn.tool_calls,
            agent_seconds=turn.seconds,
            verifier_seconds=suite.seconds,
        )

    def _record(self, round_: Round, **values: object) -> RoundRecord:
        return RoundRecord.model_validate(
            {
                "task": self.task.name,
                "agent": self.agent.name,
                "attempt": self._attempt,
                "round": round_.name,
                "index": round_.index,
                "declared_rounds": len(self.task.rounds),
                **values,
            }
        )

    def _deliver(self, record: RoundRecord, suite: SuiteRun | None = None, turn: _Turn | None = None) -> None:
        record = scrubbed(record, self._scrubber)
        try:
            if self._directory is not None:
                self._directory.write_round(
                    record,
                    output=suite.output if suite else None,
                    trajectory=turn.transcript.trajectory if turn else None,
                )
        except (OSError, ValueError) as error:  # A trajectory may hold what JSON has no form for.
            cause = self._scrubber.text(f"the results could not be written: {error}")
            record = record.model_copy(update={"outcome": "error", "cause": cause})
        self._records[record.index].set_result(record)

    def _reaches(self, round_: Round, minimum: Mapping[str, float]) -> bool:
        """Whether the verdict, which the chain has to wait for here, is good enough to go on."""
        verdict: Verdict | None = self.wait(round_.index).verdict
        if verdict is None:
            return False
        rewards = {"reward": verdict.reward, **verdict.rewards}
        return all(rewards.get(key, 0.0) >= least for key, least in minimum.items())

    # Endings.

    def _skip_after(self, index: int, cause: str) -> None:
        for round_ in self._rounds[index:]:
            self._deliver(self._record(round_, outcome="not reached", cause=cause))

    def _break_off(self, index: int, error: BaseException) -> None:
        """Put the error on the round it happened in; the chain never reaches the others."""
        if not self._ready.done():
            self._ready.set_exception(error)
        if self._cancelled.is_set():
            self._skip_after(index - 1, _STOPPED)
            return
        round_ = self._rounds[index - 1]
        self._deliver(self._record(round_, outcome="error", cause=_describe(error)))
        self._skip_after(index, f"the attempt ended in {round_.name} with an error")

    def _finish(self) -> None:
        """Wait for the suites and write the attempt's record; the environment stays until :meth:`close`."""
        self._verifiers.shutdown(wait=True)
        if self._directory is None or self._cancelled.is_set():
            return
        records = tuple(record.result() for record in self._records.values())
        attempt = AttemptRecord(
            task=self.task.name,
            agent=self.agent.name,
            attempt=self._attempt,
            environment=self._engine.name,
            started=self._started,
            finished=now(),
            declared_rounds=tuple(round_.name for round_ in self.task.rounds),
            rewards=trial_rewards(records, len(self.task.rounds), self.task.reward_strategy),
            rounds=records,
        )
        try:
            self._directory.write_attempt(attempt)
        except OSError as error:
            self._unwritten = error


def _read_instruction(round_: Round) -> str:
    try:
        return round_.instruction.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"the instruction cannot be read: {error}; save it as UTF-8", round_.instruction) from None


def _describe(error: BaseException) -> str:
    """An error of ours speaks for itself; anything else is a defect of this program and shows where."""
    if isinstance(error, EvocodeError):
        return str(error)
    return "".join(traceback.format_exception(error))
