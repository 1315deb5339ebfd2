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
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS
from pytest_evocode.environments import Engine, ExecResult, Snapshot, choose_engine
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import AgentFault, EnvironmentFault, EpisodeFault, RecordFault, UsageError
from pytest_evocode.results.directory import SNAPSHOT_FILE, AttemptDirectory
from pytest_evocode.results.parsing import parse_object, read_record
from pytest_evocode.results.records import RECORD_VERSION, ResultsRecord, RoundRecord, Spent
from pytest_evocode.results.rewards import reward_of, trial_rewards
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action
from pytest_evocode.trial import Trial, TrialOptions
from pytest_evocode.trial.context import MidTurn

T = TypeVar("T")
_LOOK = 0.5  # seconds between two looks at whether the attempt was stopped
_AGAIN = 0.05  # seconds after which what was just about to start is killed once more


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
    """Seconds for the turn, those between two calls included; None for no limit. When they are over, all that runs is
    killed, and only :meth:`Episode.finish_round` is left to do."""


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
        """The reward that decides, 0 where there is no verdict; None where that is no fault of the agent's."""
        return reward_of(self.record)

    @property
    def case_rewards(self) -> dict[str, float]:
        """1 for each case that passed and 0 for any other, by its id; of an invalid verdict nothing."""
        verdict = self.record.verdict
        cases = () if verdict is None or verdict.void else verdict.cases
        return {case.id: float(case.status == "passed") for case in cases}


class EpisodeState(ResultsRecord):
    """The file ``snapshot.json`` of a directory that :meth:`Episode.save` wrote."""

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
    seconds: float
    """Those of the turn so far."""
    spent: Spent
    """What the turns before have used."""
    rounds: tuple[RoundRecord, ...]
    """The records of those before."""


def play(
    task: Task | Path | str,
    env: Engine | str = "auto",
    *,
    name: str = "play",
    results: Path | str | None = None,
    options: TrialOptions | None = None,
) -> Episode:
    """Return an episode of a task, to be entered as an asynchronous context; :meth:`Episode.reset` begins it.

    Args:
        task: The task, or its directory.
        env: The engine, which stays open; or the name of one, as ``--evocode-env`` takes it. All episodes of a process
            share the engine of a name, and the last one that ends closes it.
        name: What records call the agent.
        results: The directory of one attempt, where records and trajectories are written; None writes none.
        options: How the attempt is run, such as ``TrialOptions(timeout_multiplier=2)``.

    Raises:
        TaskError: The task cannot be read.
        UsageError: The budget in ``options`` limits what nobody counts here, which is all but minutes; or the name is
            no text.
    """
    if not isinstance(name, str):
        raise UsageError(f"a name is a text, and not {name!r}")
    loaded = task if isinstance(task, Task) else load_task(Path(task))
    options = options or TrialOptions()
    if options.budget.limits_cost or options.budget.limits_tokens or options.budget.limits_turns:
        raise UsageError("the budget of an episode limits minutes alone: its tokens, cost and turns are yours to count")
    place = None if results is None else Path(results)
    return Episode(_Setting(loaded, env, name, place, replace(options, speculate=False)))


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

    Commands wait for those before. Where a command is cancelled that has begun, all that runs in the environment is
    killed, as at a command's deadline; any other method that is cancelled may be called again.
    """

    def __init__(self, setting: _Setting, beginning: MidTurn | None = None) -> None:
        """Prepare an episode that begins at the first round, or in the middle of a turn."""
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
        self._turns = _Turns(setting)
        self._finishing: int | None = None
        """The round whose verdict :meth:`finish_round` waits for, or has waited for when it was cancelled."""
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Episode:
        if self._engine is None:
            opening = asyncio.ensure_future(_in_thread(_engines.open, self._setting.env))
            try:
                self._engine = await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(self._close_unused)
                raise
        return self

    def _close_unused(self, opening: asyncio.Future[Engine]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            _threads.submit(_engines.close, self._setting.env)

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
                await _in_thread(beginning.snapshot.discard)
            engine, self._engine = self._engine, None
            if engine is not None:
                await _in_thread(_engines.close, self._setting.env)

    async def _end(self) -> None:
        trial, self._trial = self._trial, None
        self.observation = self._finishing = None
        if trial is not None:
            self._turns.stop()
            await _in_thread(partial(trial.close, for_good=True))

    # Where episodes begin.

    async def reset(self) -> RoundObservation:
        """Begin at the first round, or a fork where it was made, and return what the agent is told.

        What was done before is given up.

        Raises:
            EpisodeFault: The environment could not be started.
            UsageError: The task cannot be played like this, or ``results`` has an attempt.
        """
        async with self._starting:
            self._opened()
            results = self._setting.results
            if results is not None and any((results / name).exists() for name in ("result.json", "steps")):
                raise UsageError(f"{results} has an attempt; give each a directory of its own")
            await self._end()
            return await self._begin(self._beginning)

    async def load(self, directory: Path | str) -> RoundObservation:
        """Go on where :meth:`save` wrote a state, in this process or another on the same machine.

        What was done before is given up, unless an error is raised.

        Raises:
            RecordFault: There is none that can be read.
            UsageError: It is of another task, engine or image, its files are gone, or ``results`` are to be written,
                which are of whole attempts.
            EpisodeFault: The environment could not be started.
        """
        async with self._starting:
            engine = self._opened()
            if self._setting.results is not None:
                raise UsageError("results are of whole attempts: play what was loaded without them")
            beginning = await _in_thread(_read, Path(directory), self.task, engine)
            await self._end()
            return await self._begin(beginning)

    def _opened(self) -> Engine:
        if self._engine is None:
            raise UsageError("an episode begins inside of its context: async with play(...) as episode")
        return self._engine

    async def _begin(self, beginning: MidTurn | None) -> RoundObservation:
        setting, index = self._setting, 1 if beginning is None else beginning.index
        self.records = [] if beginning is None else list(beginning.inherited)
        self._turns = turns = _Turns(setting, beginning)
        self._trial = trial = Trial(
            self.task,
            _PlayedAgent(setting.name, turns),
            self._opened(),
            rounds=RoundSelection(index, index) if index > 1 else None,
            directory=AttemptDirectory(setting.results) if setting.results is not None else None,
            options=replace(setting.options, mid_turn=beginning),
        )
        trial.__enter__()
        observation, unplayed = await _next(trial, turns, index)
        self._refuse_other(trial)
        self.observation = observation
        self.records += unplayed
        if observation is None:
            raise EpisodeFault(unplayed[0].cause)
        return observation

    def _refuse_other(self, trial: Trial) -> None:
        if self._trial is not trial:
            raise EpisodeFault("the episode was closed, or begun anew")

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
            EpisodeFault: No turn is under way, or its time is over, or the agent has left nothing to run commands with:
                :meth:`finish_round` says what came of it.
            EnvironmentFault: The environment is gone.
            UsageError: The command or a variable is no text.
        """
        _check_texts(command, env or {})
        turn, answer = self._ask(lambda turn: turn.exec(command, timeout=timeout, env=env, cwd=cwd))
        try:
            return await _result_of(answer)
        except asyncio.CancelledError:
            if not answer.cancel():
                _threads.submit(turn.kill_until, answer)
            raise
        except AgentFault as fault:
            raise EpisodeFault(f"{fault}; finish_round() says what came of it") from fault

    async def finish_round(self) -> RoundResult:
        """End the turn, have the round verified, and return the result when the next turn has begun.

        Where it is cancelled, the next call returns the result. Raises :class:`~pytest_evocode.errors.EpisodeFault`
        where no turn is under way.
        """
        trial, turns = self._trial, self._turns
        if self._finishing is None:
            self._finishing, self.observation = self._index(), None
            turns.finish(self._finishing)
        if trial is None:
            raise EpisodeFault(_NO_TURN)
        index = self._finishing
        record = await _result_of(trial.record_of(index))
        self._refuse_other(trial)
        observation: RoundObservation | None = None
        unplayed: list[RoundRecord] = []
        if index < len(self.task.rounds):
            observation, unplayed = await _next(trial, turns, index + 1)
        self._refuse_other(trial)
        if self._finishing == index:  # Not where two have waited.
            self._finishing, self.observation = None, observation
            self.records += [record, *unplayed]
        return RoundResult(record, observation)

    # What came of it.

    @property
    def rewards(self) -> dict[str, float] | None:
        """The rewards of the whole episode by key, by the task's strategy over all of its rounds, as it is so far.

        A round without a verdict counts 0. None where a round has none by no fault of the agent's.
        """
        if any(reward_of(record) is None for record in self.records):
            return None
        counting = range(1, len(self.task.rounds) + 1)
        return trial_rewards(self.records, counting, self.task.reward_strategy)

    @property
    def reward(self) -> float | None:
        """The reward of the whole episode: what :attr:`rewards` are by key, of those that decide the rounds."""
        rewards = {record.index: reward_of(record) for record in self.records}
        decided = {index: reward for index, reward in rewards.items() if reward is not None}
        if len(decided) < len(rewards):
            return None
        declared = len(self.task.rounds)
        if self.task.reward_strategy == "final":
            return decided.get(declared, 0.0)
        return sum(decided.values()) / declared

    # Other episodes that go on from here.

    async def fork(self) -> Episode:
        """Return another episode that goes on from this moment; it is to be closed as well, or entered as a context.

        It has the files and records of this one, and what is left of the turn's time. The image's ENTRYPOINT is started
        in it, and nothing else runs there: what this episode has running goes on here alone. It writes no results.

        Raises as :meth:`exec` and :meth:`reset`.
        """
        beginning = await self._moment(is_own=True)
        other = Episode(replace(self._setting, results=None), beginning)
        try:
            await other.__aenter__()
            await other.reset()
        except BaseException:
            await other.close()
            raise
        return other

    async def save(self, directory: Path | str) -> None:
        """Write the state of this moment into a directory, from which :meth:`load` goes on.

        The files stay in the engine for as long as the directory's ``snapshot.json`` names them: remove the directory
        when it is of no use any more. Raises as :meth:`exec`, OSError, and UsageError for a task whose suites run where
        the agent works: of such a round processes count, too.
        """
        if self.task.in_place:
            raise UsageError("suites that run in place need processes, and only files are saved")
        engine, place = self._opened(), Path(directory).resolve()
        await _in_thread(partial(place.mkdir, parents=True, exist_ok=True))
        moment = await self._moment(keep_for=place)
        await _in_thread(_write, moment, place, self.task, engine)

    async def _moment(self, *, keep_for: Path | None = None, is_own: bool = False) -> MidTurn:
        """Return this moment as one to go on from; nothing of it is left where that is cancelled."""
        _, answer = self._ask(
            lambda turn: turn.mid_turn(turn.environment.snapshot(keep_for=keep_for), self.records, is_own=is_own)
        )
        try:
            return await _result_of(answer)
        except asyncio.CancelledError:
            if not answer.cancel():
                answer.add_done_callback(_discard)
            raise

    def _index(self) -> int:
        if self.observation is None:
            raise EpisodeFault(_NO_TURN)
        return self.observation.index

    def _ask(self, act: Callable[[_Turn], T]) -> tuple[_Turn, Future[T]]:
        """Have something done by the thread that takes the agent's turn."""
        turn = self._turns.turn(self._index())
        return turn, turn.ask(act)


def _check_texts(command: object, env: Mapping[str, object]) -> None:
    """Raise UsageError for what would come back as the failure of a command that was never started."""
    words = [command] if isinstance(command, str) else command
    if not isinstance(words, Sequence) or not words or not all(isinstance(word, str) for word in words):
        raise UsageError(f"a command is a text, or a list of texts that is not empty, and not {command!r}")
    if not all(isinstance(text, str) for text in (*env, *env.values())):
        raise UsageError(f"names and values of env are texts, and not {env!r}")


_NO_TURN = "no turn is under way: the episode has not begun, or is over"
_OVER = "the turn's time is over; finish_round() says what came of it"
#: For what blocks; asyncio's own has few threads, and its users may need them all.
_threads = ThreadPoolExecutor(256, "evocode-episodes")


async def _in_thread(act: Callable[..., T], *arguments: Any) -> T:
    return await _result_of(_threads.submit(act, *arguments))


async def _result_of(future: Future[T]) -> T:
    """Wait for a future, which stays as it is where the wait is cancelled."""
    await _first_of(future)
    return future.result()


async def _first_of(*futures: Future[Any]) -> None:
    """Wait until one of some futures is done."""
    loop, is_done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # Nobody waits any more, and the loop is closed.
            loop.call_soon_threadsafe(is_done.set)

    for future in futures:
        future.add_done_callback(tell)
    await is_done.wait()


async def _next(trial: Trial, turns: _Turns, index: int) -> tuple[RoundObservation | None, list[RoundRecord]]:
    """Wait for the turn of a round, and return what the agent is told; or None and the records that say why not."""
    begun, ended = turns.begun[index], trial.record_of(index)
    await _first_of(begun, ended)
    if not begun.done():
        left = range(index, len(turns.begun) + 1)
        return None, [await _result_of(trial.record_of(each)) for each in left]
    context = begun.result()
    workdir = context.environment.workdir
    return RoundObservation(context.round.name, index, context.instruction, workdir, context.timeout), []


def _discard(answer: Future[MidTurn]) -> None:
    if not answer.cancelled() and answer.exception() is None:
        _threads.submit(answer.result().snapshot.discard)


def _write(moment: MidTurn, directory: Path, task: Task, engine: Engine) -> None:
    """Write the state of a moment; see :meth:`Episode.save`."""
    state = EpisodeState(
        environment=engine.name,
        task=str(task.directory.resolve()),
        task_hash=content_hash(task.directory),
        image=engine.image_key(task),
        reference=moment.snapshot.reference,
        index=moment.index,
        seconds=moment.seconds,
        spent=moment.spent,
        rounds=moment.inherited,
    )
    write_atomically(directory / SNAPSHOT_FILE, state.model_dump_json(indent=1) + "\n")


def _read(directory: Path, task: Task, engine: Engine) -> MidTurn:
    """Return the moment whose state was written; raises as :meth:`Episode.load`."""
    path = directory / SNAPSHOT_FILE
    try:
        state = read_record(EpisodeState, parse_object(path.read_bytes()))
    except OSError as error:
        raise RecordFault(f"{path}: {error.strerror}") from None
    except RecordFault as error:
        raise RecordFault(f"{path}: {error}") from None
    if not 1 <= state.index <= len(task.rounds):
        raise RecordFault(f"{path}: it is of round {state.index}, and the task has {len(task.rounds)}")
    if state.environment != engine.name:
        raise UsageError(f"{path}: it is of {state.environment}; play it with env={state.environment!r}")
    if state.task_hash != content_hash(task.directory):
        raise UsageError(f"{path}: it is of {state.task} as it was; {task.directory} is another task now")
    if state.image != engine.image_key(task):
        raise UsageError(f"{path}: the image of {task.directory} is another one now")
    snapshot = engine.find_snapshot(state.reference)
    if snapshot is None:
        raise UsageError(f"{path}: its files are not on this machine, or were removed by evocode clean --kept")
    return MidTurn(state.index, snapshot, state.rounds, state.seconds, state.spent)


class _Turn:
    """A turn that is under way: what is asked of it is done by the thread that has to take it."""

    def __init__(self, context: RoundContext, *, records: bool, seconds: float) -> None:
        """Begin a turn of which so many seconds have passed, and whose commands are recorded or not."""
        self.context = context
        self.environment = context.environment
        self._records = records
        self._calls = 0
        self._asked: queue.SimpleQueue[tuple[Callable[[_Turn], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._is_over = False
        self._answering = threading.Lock()
        """Held while an answer is given, and while what it waits for is killed: nothing of the next thing asked is."""
        context.spending.set_back(seconds)

    # What any thread may ask.

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
        self._finished.set()
        self._asked.put(None)

    def kill_until(self, answer: Future[Any]) -> None:
        """Kill all that runs, again and again until something that was asked is done: it may be about to start."""
        while not self.context.cancelled.is_set():
            with self._answering, contextlib.suppress(EnvironmentFault):
                if answer.done():
                    return
                self._kill()
            time.sleep(_AGAIN)

    # What the turn's own thread does.

    def take(self) -> RoundTranscript:
        """Do what is asked until the turn is to end, by itself or because its time is over."""
        try:
            while not self.context.cancelled.is_set():
                left = self.context.seconds_left()
                if left is not None and left <= 0:
                    return self._out_of_time()
                try:
                    asked = self._asked.get(timeout=_LOOK if left is None else min(_LOOK, left))
                except queue.Empty:
                    continue
                if asked is None:
                    return RoundTranscript()
                act, answer = asked
                if answer.set_running_or_notify_cancel():
                    self._answer(act, answer)
            return RoundTranscript(stopped=STOPPED)
        finally:
            self._refuse()

    def _answer(self, act: Callable[[_Turn], T], answer: Future[T]) -> None:
        try:
            result = act(self)
        except BaseException as error:
            with self._answering:
                answer.set_exception(error)
        else:
            with self._answering:
                answer.set_result(result)

    def _out_of_time(self) -> RoundTranscript:
        """Kill all that runs, and wait until the turn is finished from outside: only then the next one may begin."""
        self._refuse()
        self._kill()
        began = time.monotonic()
        while not (self.context.cancelled.is_set() or self._finished.wait(_LOOK)):
            pass
        self.context.spending.set_back(began - time.monotonic())
        return RoundTranscript(timed_out=True)

    def _kill(self) -> None:
        self.environment.kill_processes()
        self.environment.enter(killed=True)

    def _refuse(self) -> None:
        """Refuse what was asked too late."""
        with self._lock:
            self._is_over = True
        with contextlib.suppress(queue.Empty):
            while True:
                asked = self._asked.get_nowait()
                if asked is not None and asked[1].set_running_or_notify_cancel():
                    asked[1].set_exception(EpisodeFault(_OVER))

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
        user = self.context.round.agent_user
        call = self._begin_call(command)
        result = self.environment.exec(command, user=user, env=env, cwd=cwd, timeout=min(limits, default=None))
        if call is not None:
            action = Action(result.exit_code, result.seconds, result.timed_out)
            self.context.recorder.observe(call, result.output, action)
        return result

    def mid_turn(self, snapshot: Snapshot, records: Sequence[RoundRecord], *, is_own: bool = False) -> MidTurn:
        """Return this moment as one to go on from."""
        seconds = self.context.spending.turn_seconds
        spent = self.context.spending.spent
        before = spent.model_copy(update={"seconds": spent.seconds - seconds})
        return MidTurn(self.context.round.index, snapshot, tuple(records), seconds, before, is_own=is_own)

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

    def __init__(self, setting: _Setting, beginning: MidTurn | None = None) -> None:
        self.begun: dict[int, Future[RoundContext]] = {round_.index: Future() for round_ in setting.task.rounds}
        self._turns: dict[int, _Turn] = {}
        self._records = setting.results is not None
        self._beginning = beginning

    def take(self, context: RoundContext) -> RoundTranscript:
        """Take a turn."""
        index = context.round.index
        seconds = self._beginning.seconds if self._beginning is not None and self._beginning.index == index else 0.0
        turn = self._turns[index] = _Turn(context, records=self._records, seconds=seconds)
        self.begun[index].set_result(context)
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
