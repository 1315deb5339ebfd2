"""Episodes from Python (:mod:`pytest_evocode.play`): 128 at once in the sandbox, with a policy that is a script.

Each has three rounds with five commands, of which the last one does what the round asks; suites share slots as always.
"CPU per step" is what all cores work meanwhile, over the commands and the ends of rounds, so nothing else may run.
Memory is the proportional share of this process and all below it when all episodes are in their second turn, less that
before. A fork is one of an episode that is under way, until its first command has ended.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from pathlib import Path

from benchmarks.material import available, processor_seconds, scratch, write_task
from benchmarks.tables import Table
from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.play import play
from pytest_evocode.tasks import Task, load_task

EPISODES, ROUNDS, COMMANDS = 128, 3, 5


def measure(runs: int) -> Table:
    """Units by column."""
    columns = ("a minute", "CPU per step, ms", "memory each, MB", "fork, ms")
    table = Table(f"{EPISODES} episodes at once in the sandbox", "units by column", columns, digits=1)
    if not available("sandbox"):
        return table
    with scratch() as directory:
        write_task(directory / "task", ROUNDS)
        task = load_task(directory / "task")
        engine, _ = choose_engine("sandbox")
        try:
            asyncio.run(_play(task, engine, 1, []))
            measured = [_measure(task, engine) for _ in range(runs)]
        finally:
            engine.close()
    for number, column in enumerate(columns):
        table.add("scripted policy", column, [each[number] for each in measured])
    return table


def _measure(task: Task, engine: Engine) -> tuple[float, float, float, float]:
    before, began = processor_seconds(), time.perf_counter()
    memory: list[float] = [_memory()]
    asyncio.run(_play(task, engine, EPISODES, memory))
    seconds, worked = time.perf_counter() - began, processor_seconds() - before
    steps = EPISODES * ROUNDS * (COMMANDS + 1)
    forks = asyncio.run(_forks(task, engine))
    return 60 * EPISODES / seconds, 1000 * worked / steps, (max(memory) - memory[0]) / EPISODES, 1000 * forks


async def _play(task: Task, engine: Engine, episodes: int, memory: list[float]) -> None:
    in_second = asyncio.Barrier(episodes)

    async def one() -> None:
        async with play(task, engine) as episode:
            observation = await episode.reset()
            while True:
                if observation.index == 2 and await in_second.wait() == 0:
                    memory.append(_memory())
                for _ in range(COMMANDS - 1):
                    await episode.exec("ls -la")
                await episode.exec(f"echo {observation.index} >> lines.txt")
                result = await episode.finish_round()
                if not result.passed:
                    raise RuntimeError(result.record.cause or "a round is failed")
                if result.observation is None:
                    return
                observation = result.observation

    await asyncio.gather(*(one() for _ in range(episodes)))


async def _forks(task: Task, engine: Engine) -> float:
    """Return the median of the seconds of twenty forks."""
    seconds = []
    async with play(task, engine) as episode:
        await episode.reset()
        await episode.exec("sleep 600 >/dev/null 2>&1 &")
        for _ in range(20):
            began = time.perf_counter()
            async with await episode.fork() as fork:
                await fork.exec("true")
                seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _memory() -> float:
    """The megabytes of this process and of all that it has started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # It has ended meanwhile.
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    found = 0
    for pid in own:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        found += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return found / 1024
