"""Tasks as an environment of verifiers (https://github.com/primeintellect-ai/verifiers); needs the extra ``verifiers``.

A module of your own, which has to be at the top level, names the environment: ``docs/examples/my_tasks.py``, which says
how it is evaluated as well. The runtime has nothing to do: commands run in the episode's own sandbox or container.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from openai import APIStatusError, AsyncOpenAI
from verifiers.v1.harnesses.utils.compaction import is_context_overflow
from verifiers.v1.runtimes import ProgramResult, Runtime

from pytest_evocode.agents.shell.tools import coerced, complaint_about
from pytest_evocode.agents.words import TOOLS
from pytest_evocode.bridges.bash_tool import SECONDS, shown
from pytest_evocode.errors import EpisodeFault
from pytest_evocode.llm.protocol import RequestedCall
from pytest_evocode.play import Episode, RoundObservation, RoundResult, play
from pytest_evocode.results.rewards import reward_of
from pytest_evocode.tasks import load_task

__all__ = ["EvocodeHarness", "EvocodeTaskset"]

_SYSTEM_PROMPT = """\
You are a software engineer at work on a project whose requirements change, in the directory {workdir} of a Linux
machine. You reach it through the tool `bash`, each call of which runs one script in a new shell; a script has
{seconds:g} seconds unless you ask for more. Requests build on each other: what was asked for before still holds. When
you have finished with one, answer without calling the tool; that ends your turn."""
_BASH: Any = {"type": "function", "function": asdict(TOOLS["bash"])}
_TOO_LATE = "This was not run: the time for the request is over."


class EvocodeTasksetConfig(vf.TasksetConfig):
    """Which tasks are played, and where."""

    tasks: list[str] = []
    """The directories of the tasks."""
    engine: str = "auto"
    """As for :func:`~pytest_evocode.play.play`."""


class EvocodeTaskData(vf.TaskData):
    """What is written of a task; its prompt is the first instruction."""

    directory: str
    engine: str
    rounds: int


class EpisodeOutcome(vf.State):
    """What came of the rounds of an episode that are finished."""

    reward: float = 0.0
    """That of the episode; the rounds that are not finished count 0."""
    rounds: dict[str, float] = {}
    """Those of the rounds, by name."""


class EvocodeTask(vf.Task[EvocodeTaskData, EpisodeOutcome]):
    """A task, whose reward is that of the benchmark: by the task's strategy over its rounds."""

    @vf.reward
    async def episode(self, trace: vf.Trace) -> float:
        """Return the reward of the episode."""
        return float(trace.state.reward)

    @vf.metric
    async def rounds(self, trace: vf.Trace) -> dict[str, float]:
        """Return the rewards of the rounds."""
        return {f"round/{name}": reward for name, reward in trace.state.rounds.items()}


class EvocodeTaskset(vf.Taskset[EvocodeTask, EvocodeTasksetConfig]):
    """The tasks whose directories are configured."""

    def load(self) -> Iterator[EvocodeTask]:
        """Read the tasks; raises TaskError for one that cannot be read, and ValueError where there are none."""
        if not self.config.tasks:
            raise ValueError(
                """name the directories of tasks, such as --env.taskset.tasks '["example_tasks/ledger"]'"""
            )
        for directory in self.config.tasks:
            task = load_task(Path(directory))
            data = EvocodeTaskData(
                name=task.name,
                prompt=task.rounds[0].instruction.read_text(encoding="utf-8"),
                directory=str(task.directory.resolve()),
                engine=self.config.engine,
                rounds=len(task.rounds),
            )
            yield EvocodeTask(data, self.config.task)


class EvocodeHarnessConfig(vf.HarnessConfig):
    """Nothing of its own."""


class EvocodeHarness(vf.Harness[EvocodeHarnessConfig]):
    """Plays an episode: each round's instruction is a message of the user, and a reply without a call ends the turn.

    Where verifiers ends the turn, such as at its ``max_turns``, or the model's window is full, the round is verified as
    it is, and those after it count 0; at its timeout, the round counts 0 as well. Where the infrastructure is at fault,
    the rollout ends with an error, and verifiers gives it no reward.
    """

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: EvocodeTaskData,
    ) -> ProgramResult:
        """Play the episode; raises EpisodeFault where the infrastructure is at fault."""
        model = AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None)
        async with model, play(data.directory, data.engine) as episode:
            begun = await episode.reset()
            prompt = data.system_prompt or _SYSTEM_PROMPT.format(workdir=begun.workdir, seconds=SECONDS)
            messages: list[Any] = [{"role": "system", "content": prompt}]
            observation: RoundObservation | None = begun
            goes_on = True
            while observation is not None and goes_on:
                messages.append({"role": "user", "content": observation.instruction})
                goes_on = await _take_turn(model, ctx.model, messages, episode, trace)
                result = await episode.finish_round()
                _note(trace.state, result, episode)
                observation = result.observation
        return ProgramResult(0, "", "")


def _note(outcome: EpisodeOutcome, result: RoundResult, episode: Episode) -> None:
    """Keep what came of a round; raises EpisodeFault where nothing came of it by no fault of the model's."""
    if result.reward is None or episode.reward is None:
        at_fault = next(record for record in episode.records if reward_of(record) is None)
        raise EpisodeFault(f"round {at_fault.round} has no reward by no fault of the model's: {at_fault.cause}")
    outcome.rounds[result.record.round] = result.reward
    outcome.reward = episode.reward


async def _take_turn(model: AsyncOpenAI, name: str, messages: list[Any], episode: Episode, trace: vf.Trace) -> bool:
    """Have the model take the turn of a round, and return whether it may take another."""
    while True:
        try:
            completion = await model.chat.completions.create(model=name, messages=messages, tools=[_BASH])
        except APIStatusError as error:
            if trace.stop_condition is None and not is_context_overflow(error):
                raise
            return False
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        is_over = not message.tool_calls
        for call in message.tool_calls or ():
            try:
                seen = await _run(call, episode)
            except EpisodeFault:
                seen, is_over = _TOO_LATE, True
            messages.append({"role": "tool", "tool_call_id": call.id, "content": seen})
        if is_over:
            return True


async def _run(call: Any, episode: Episode) -> str:
    """Do what a call asks for, and return what the model sees of it."""
    try:
        arguments = json.loads(call.function.arguments)
    except ValueError:
        arguments = None
    requested = RequestedCall(
        call.id, call.function.name, arguments if isinstance(arguments, dict) else None, call.function.arguments
    )
    if complaint := complaint_about(requested):
        return complaint
    given = coerced(requested.arguments or {})
    return shown(await episode.exec(given["command"], timeout=given.get("timeout", SECONDS)))
