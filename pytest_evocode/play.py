"""Play a task from Python: a task as an environment, such as for training, on what the benchmark itself runs on.

>>> async with play("example_tasks/ledger", env="sandbox") as episode:  # doctest: +SKIP
...     observation = await episode.reset()
...     while observation is not None:
...         await episode.exec(policy(observation.instruction))
...         result = await episode.finish_round()
...         observation = result.observation
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS
from pytest_evocode.environments import Engine, ExecResult, choose_engine
from pytest_evocode.environments.protocol import read_environment_file
from pytest_evocode.errors import EpisodeFault, RecordFault, UsageError
from pytest_evocode.results.directory import STATE_FILE, AttemptDirectory
from pytest_evocode.results.parsing import parse_object, read_record
from pytest_evocode.results.records import RECORD_VERSION, ResultsRecord, RoundRecord
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action
from pytest_evocode.trial import Trial, TrialOptions
from pytest_evocode.trial.context import MidTurn

T = TypeVar("T")
_LOOK = 0.5  # seconds between two looks at whether the attempt was stopped
_READ = 16 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class RoundObservation:
    """What an agent is told when its turn at a round begins."""

    round: str
    """The round's name."""
    index: int
    """Its place in the task, from 1."""
    instruction: str
    workdir: str
    """The directory that commands start in."""
    limit: float | None
    """Seconds for the turn; None for no limit. When they are over, the turn ends as it is."""


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What came of a round."""

    record: RoundRecord
    """As in ``result.json``, with its cases."""
    observation: RoundObservation | None
    """Of the next round, whose turn has begun; None where the episode is over."""

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.observation is None

    @property
    def passed(self) -> bool:
        """Whether the round passed."""
        return self.record.passed

    @property
    def reward(self) -> float | None:
        """The reward that decides, 0 where there is no verdict; None where that is the infrastructure's fault."""
        return _reward(self.record)

    @property
    def case_rewards(self) -> dict[str, float]:
        """1 for each case that passed and 0 for any other, by its id; of an invalid verdict nothing."""
        verdict = self.record.verdict
        cases = () if verdict is None or verdict.void else verdict.cases
        return {case.id: float(case.status == "passed") for case in cases}


class EpisodeState(ResultsRecord):
    """The file ``state.json`` of a directory that :meth:`Episode.save` wrote."""

    version: int = RECORD_VERSION
    environment: str
    """The engine's name."""
    task: str
    """The task's directory."""
    task_hash: str
    image: str
    """Identifies the contents of the task's image."""
    reference: str
    """The engine's reference of the snapshot."""
    index: int
    """The round whose turn is under way, from 1."""
    rounds: tuple[RoundRecord, ...]
    """The records of those before."""


def play(
    task: Task | Path | str,
    env: Engine | str = "auto",
    *,
    name: str = "play",
    results: Path | None = None,
    options: TrialOptions | None = None,
) -> Episode:
    """Return an episode of a task, to be entered as an asynchronous context; :meth:`Episode.reset` begins it.

    Args:
        task: The task, or its directory.
        env: The engine, which stays open; or the name of one, as ``--evocode-env`` takes it. All episodes of a process
            share the engine of a name, and the last one that ends closes it.
        name: What records call the agent.
        results: The directory of an attempt, where records and trajectories are written; None writes none.
        options: How the attempt is run, such as ``TrialOptions(timeout_multiplier=2)``.
    """
    loaded = task if isinstance(task, Task) else load_task(Path(task))
    return Episode(_Setting(loaded, env, name, results, options or TrialOptions()))


@dataclass(frozen=True, slots=True)
class _Setting:
    """What an episode has in common with its forks."""

    task: Task
    env: Engine | str
    name: str
    results: Path | None
    options: TrialOptions


class Episode:
    """One attempt at a task, whose turns are taken from outside; it ends with its asynchronous context.

    Its methods are called one after the other, in one event loop. Where a coroutine is cancelled, all that runs in the
    environment is killed, as at a command's deadline.
    """

    def __init__(self, setting: _Setting, beginning: MidTurn | None = None) -> None:
        self.task = setting.task
        self.observation: RoundObservation | None = None
        """Of the turn that is under way; None where there is none."""
        self.records: list[RoundRecord] = []
        """Those of the rounds so far, with the ones that a fork has from before."""
        self._setting = setting
        self._beginning = beginning
        """Where :meth:`reset` of a fork goes back to."""
        self._engine: Engine | None = None
        self._trial: Trial | None = None
        self._turns = _Turns(setting.task.rounds, records=setting.results is not None)

    async def __aenter__(self) -> Episode:
        self._engine = await asyncio.to_thread(_engines.open, self._setting.env)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the episode: what still runs is killed, and nothing is left behind but ``results``. May be called again.

        Raises EnvironmentFault where the record of the attempt could not be written.
        """
        try:
            await self._end()
        finally:
            beginning, self._beginning = self._beginning, None
            if beginning is not None and beginning.is_own:
                await asyncio.to_thread(beginning.snapshot.discard)
            engine, self._engine = self._engine, None
            if engine is not None:
                await asyncio.to_thread(_engines.close, self._setting.env)

    async def _end(self) -> None:
        trial, self._trial, self.observation = self._trial, None, None
        if trial is not None:
            self._turns.stop()
            await asyncio.to_thread(trial.close)

    # Where episodes begin.

    async def reset(self) -> RoundObservation:
        """Begin at the first round, or a fork where it was made, and return what the agent is told.

        What was done before is given up.

        Raises:
            EpisodeFault: The environment could not be started.
            UsageError: The task cannot be played like this.
        """
        await self._end()
        self.records = list(self._beginning.inherited) if self._beginning is not None else []
        return await self._begin(self._beginning)

    async def load(self, directory: Path | str) -> RoundObservation:
        """Go on where :meth:`save` wrote a state, in this process or another on the same machine.

        Raises:
            RecordFault: There is none that can be read.
            UsageError: It is of another task, engine or image, or its files are gone.
            EpisodeFault: The environment could not be started.
        """
        await self._end()
        beginning = await asyncio.to_thread(self._read, Path(directory))
        self.records = list(beginning.inherited)
        return await self._begin(beginning)

    async def _begin(self, beginning: MidTurn | None) -> RoundObservation:
        if self._engine is None:
            raise UsageError("an episode begins inside of its context: async with play(...) as episode")
        index = 1 if beginning is None else beginning.index
        setting = self._setting
        self._turns = _Turns(self.task.rounds, records=setting.results is not None)
        agent = _PlayedAgent(setting.name, self._turns)
        self._trial = Trial(
            self.task,
            agent,
            self._engine,
            rounds=RoundSelection(index, index) if index > 1 else None,
            directory=AttemptDirectory(setting.results) if setting.results is not None else None,
            options=replace(setting.options, mid_turn=beginning),
        )
        self._trial.__enter__()
        observation = await self._next(index)
        if observation is None:
            raise EpisodeFault(self.records[-1].cause)
        return observation

    async def _next(self, index: int) -> RoundObservation | None:
        """Wait for the turn of a round, or for the record that says that there is none; return what the agent knows."""
        assert self._trial is not None
        began = asyncio.wrap_future(self._turns.begun[index])
        ended = asyncio.wrap_future(self._trial.record_of(index))
        await asyncio.wait((began, ended), return_when=asyncio.FIRST_COMPLETED)
        if not began.done():
            self.records.append(ended.result())
            self.observation = None
            return None
        context = began.result()
        self.observation = RoundObservation(
            context.round.name, index, context.instruction, context.environment.workdir, context.timeout
        )
        return self.observation

    # What is done in a turn.

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> ExecResult:
        """Run a command as the task's agent and wait for it; see :meth:`Environment.exec`.

        Raises:
            EpisodeFault: No turn is under way, or its time is over: :meth:`finish_round` says what came of it.
            EnvironmentFault: The environment is gone.
        """
        return await self._ask(lambda turn: turn.exec(command, timeout=timeout, env=env, cwd=cwd))

    async def read_file(self, path: str, limit: int = _READ) -> bytes | None:
        """Return the contents of a file, None where there is none; raises as :meth:`exec`, and UnreadableFile.

        Args:
            path: Absolute, or relative to the working directory.
            limit: Bytes that it may have.
        """
        return await self._ask(lambda turn: read_environment_file(turn.environment, turn.absolute(path), limit))

    async def write_file(self, path: str, data: bytes | str) -> None:
        """Write a file as the task's agent; missing directories are made. Raises as :meth:`exec`, and OSError."""
        content = data.encode() if isinstance(data, str) else data
        await self._ask(lambda turn: turn.write(path, content))

    async def finish_round(self) -> RoundResult:
        """End the turn, have the round verified, and return the result when the next turn has begun.

        Raises :class:`~pytest_evocode.errors.EpisodeFault` where no turn is under way.
        """
        if self.observation is None or self._trial is None:
            raise EpisodeFault(_NO_TURN)
        index, self.observation = self.observation.index, None
        self._turns.finish(index)
        record = await asyncio.wrap_future(self._trial.record_of(index))
        self.records.append(record)
        is_last = index == len(self.task.rounds)
        following = None if is_last else await self._next(index + 1)
        return RoundResult(record, following)

    # What came of it.

    @property
    def rewards(self) -> dict[str, float] | None:
        """The rewards of the whole episode by key, by the task's strategy over all of its rounds, as it is so far.

        A round without a verdict counts 0. None where a round has none by the infrastructure's fault.
        """
        if any(_reward(record) is None for record in self.records):
            return None
        counting = range(1, len(self.task.rounds) + 1)
        return trial_rewards(self.records, counting, self.task.reward_strategy)

    # Other episodes that go on from here.

    async def fork(self) -> Episode:
        """Return another episode that goes on from this moment, with the same files and records; to be closed as well.

        The image's ENTRYPOINT is started in it, and nothing else runs there: what this episode has running goes on here
        alone. Raises as :meth:`exec` and :meth:`reset`.
        """
        index, inherited = self._index(), tuple(self.records)
        snapshot = await self._ask(lambda turn: turn.environment.snapshot())
        other = Episode(replace(self._setting, results=None), MidTurn(index, snapshot, inherited, is_own=True))
        try:
            await other.__aenter__()
            await other.reset()
        except BaseException:
            await other.close()
            raise
        return other

    async def save(self, directory: Path | str) -> None:
        """Write the state of this moment into a directory, from which :meth:`load` goes on.

        The files stay in the engine for as long as the directory's ``state.json`` names them: remove the directory when
        it is of no use any more. Raises as :meth:`exec`, and OSError.
        """
        place, index = Path(directory).resolve(), self._index()
        assert self._engine is not None
        engine = self._engine

        def write(turn: _Turn) -> None:
            place.mkdir(parents=True, exist_ok=True)
            snapshot = turn.environment.snapshot(keep_for=place)
            state = EpisodeState(
                environment=engine.name,
                task=str(self.task.directory.resolve()),
                task_hash=content_hash(self.task.directory),
                image=engine.image_key(self.task),
                reference=snapshot.reference,
                index=index,
                rounds=tuple(self.records),
            )
            write_atomically(place / STATE_FILE, state.model_dump_json(indent=1) + "\n")

        await self._ask(write)

    def _read(self, directory: Path) -> MidTurn:
        assert self._engine is not None
        path = directory / STATE_FILE
        try:
            state = read_record(EpisodeState, parse_object(path.read_bytes()))
        except OSError as error:
            raise RecordFault(f"{path}: {error.strerror}") from None
        except RecordFault as error:
            raise RecordFault(f"{path}: {error}") from None
        if state.environment != self._engine.name:
            raise UsageError(f"{path}: it is of {state.environment}; play it with env={state.environment!r}")
        if state.task_hash != content_hash(self.task.directory):
            raise UsageError(f"{path}: it is of {state.task} as it was; {self.task.directory} is another task now")
        if state.image != self._engine.image_key(self.task):
            raise UsageError(f"{path}: the image of {self.task.directory} is another one now")
        snapshot = self._engine.find_snapshot(state.reference)
        if snapshot is None:
            raise UsageError(f"{path}: its files are not on this machine, or were removed by evocode clean --kept")
        return MidTurn(state.index, snapshot, state.rounds)

    def _index(self) -> int:
        if self.observation is None:
            raise EpisodeFault(_NO_TURN)
        return self.observation.index

    async def _ask(self, act: Callable[[_Turn], T]) -> T:
        """Have something done by the thread that takes the agent's turn, and return what it gave."""
        turn = self._turns.turn(self._index())
        answer = asyncio.wrap_future(turn.ask(act))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            if not answer.done():
                answer.add_done_callback(lambda done: done.cancelled() or done.exception())
                with contextlib.suppress(Exception):
                    await asyncio.to_thread(turn.environment.kill_processes)
            raise


_NO_TURN = "no turn is under way: the episode has not begun, or is over"
_OVER = "the turn's time is over; finish_round() says what came of it"


def _reward(record: RoundRecord) -> float | None:
    if record.outcome == "error" and record.fault != "agent":
        return None
    return (record.verdict.reward if record.verdict is not None else None) or 0.0


class _Turn:
    """A turn that is under way: what is asked of it is done by the thread that has to take it."""

    def __init__(self, context: RoundContext, *, records: bool) -> None:
        self.context = context
        self.environment = context.environment
        self._records = records
        self._calls = 0
        self._asked: queue.SimpleQueue[tuple[Callable[[_Turn], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_over = False

    def ask(self, act: Callable[[_Turn], T]) -> Future[T]:
        """Have something done after what was asked before; raises EpisodeFault when the turn is over."""
        answer: Future[T] = Future()
        with self._lock:
            if self._is_over:
                raise EpisodeFault(_OVER)
            self._asked.put((act, answer))
        return answer

    def finish(self) -> None:
        """End the turn after what was asked before."""
        self._asked.put(None)

    def take(self) -> RoundTranscript:
        """Do what is asked until the turn is to end, by itself or because its time is over."""
        began, context = time.monotonic(), self.context
        try:
            while not context.cancelled.is_set():
                left = _LOOK
                if context.timeout is not None:
                    left = min(left, began + context.timeout - time.monotonic())
                    if left <= 0:
                        return RoundTranscript(timed_out=True)
                try:
                    asked = self._asked.get(timeout=left)
                except queue.Empty:
                    continue
                if asked is None:
                    return RoundTranscript()
                self._answer(*asked)
            return RoundTranscript(stopped="the episode was closed")
        finally:
            self._refuse()

    def _answer(self, act: Callable[[_Turn], Any], answer: Future[Any]) -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(act(self))
            except BaseException as error:
                answer.set_exception(error)

    def _refuse(self) -> None:
        """Refuse what was asked too late."""
        with self._lock:
            self._is_over = True
        with contextlib.suppress(queue.Empty):
            while True:
                if (asked := self._asked.get_nowait()) is not None:
                    asked[1].set_exception(EpisodeFault(_OVER))

    def absolute(self, path: str) -> str:
        """Return a path from the root."""
        return path if path.startswith("/") else f"{self.environment.workdir}/{path}"

    def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None,
        env: Mapping[str, str] | None,
        cwd: str | None,
    ) -> ExecResult:
        """Run a command as the agent, for no longer than the turn has left."""
        limits = [limit for limit in (timeout, self.context.seconds_left()) if limit is not None]
        call = self._begin_call(command)
        result = self.environment.exec(
            command,
            user=self.context.round.agent_user,
            env=env,
            cwd=cwd,
            timeout=min(limits, default=None),
        )
        if call is not None:
            action = Action(result.exit_code, result.seconds, result.timed_out)
            self.context.recorder.observe(call, result.output, action)
        return result

    def write(self, path: str, content: bytes) -> None:
        """Write a file as the agent."""
        directory, _, name = self.absolute(path).rpartition("/")
        self.environment.write_files(directory or "/", {name: content}, user=self.context.round.agent_user)

    def _begin_call(self, command: str | Sequence[str]) -> str | None:
        """Record a call of a shell, and return its id; None where nothing is recorded."""
        if not self._records:
            return None
        self._calls += 1
        shown = command if isinstance(command, str) else " ".join(command)
        call = ToolCall(tool_call_id=f"call-{self._calls}", function_name="bash", arguments={"command": shown})
        self.context.recorder.begin()
        self.context.recorder.reply("", [call])
        return call.tool_call_id


class _Turns:
    """The turns of an attempt, each from the moment when it begins."""

    def __init__(self, rounds: Sequence[Round], *, records: bool) -> None:
        self.begun: dict[int, Future[RoundContext]] = {round_.index: Future() for round_ in rounds}
        self._turns: dict[int, _Turn] = {}
        self._records = records

    def take(self, context: RoundContext) -> RoundTranscript:
        """Take a turn."""
        turn = self._turns[context.round.index] = _Turn(context, records=self._records)
        self.begun[context.round.index].set_result(context)
        return turn.take()

    def turn(self, index: int) -> _Turn:
        """Return the turn of a round, which has begun."""
        return self._turns[index]

    def finish(self, index: int) -> None:
        """End the turn of a round."""
        self._turns[index].finish()

    def stop(self) -> None:
        """End the turn that is under way."""
        for turn in [*self._turns.values()]:
            turn.finish()


class _PlayedAgent:
    """The agent of an episode, whose turns are taken from outside."""

    takes_conversations = True
    takes_skills = True
    mcp_transports = ALL_TRANSPORTS

    def __init__(self, name: str, turns: _Turns) -> None:
        self.name = name
        self._turns = turns

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return self._turns.take(context)


@dataclass
class _Engines:
    """The engines of this process by name, each with how many episodes use it."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: dict[str, tuple[Engine, int]] = field(default_factory=dict)

    def open(self, env: Engine | str) -> Engine:
        """Return the engine of a name, which is started for the first one that asks."""
        if not isinstance(env, str):
            return env
        with self._lock:
            engine, users = self._open.get(env) or (choose_engine(env)[0], 0)
            self._open[env] = engine, users + 1
            return engine

    def close(self, env: Engine | str) -> None:
        """Let go of the engine of a name."""
        if not isinstance(env, str):
            return
        with self._lock:
            engine, users = self._open.pop(env)
            if users > 1:
                self._open[env] = engine, users - 1
                return
        engine.close()


_engines = _Engines()
