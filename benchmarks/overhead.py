"""What the harness adds to a round and to an attempt, by differences to the bare loop in the same process.

The bare loop is ``bash solve.sh; bash test.sh`` (or the latter alone, for an agent whose turn takes no time) for every
round, by one command in one environment. Attempts of few and of many rounds are run, each beside a bare loop of the
same rounds; the slope of the difference over the rounds is the overhead of a round, what is left at no rounds that of
an attempt: making and removing its container, and writing its records.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.material import ENVIRONMENTS, available, scratch, write_task
from benchmarks.tables import Table
from pytest_evocode.agents import make_agent
from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial.trial import Trial

FEW, MANY = 2, 22
TARGETS = {"docker": (0.12, 0.5), "sandbox": (0.02, 0.1)}


def measure(runs: int) -> Table:
    """Seconds."""
    table = Table("overhead against the bare loop", "s", ("per round", "per attempt", "per round, oracle"), digits=3)
    with scratch() as directory:
        tasks = {}
        for rounds in (FEW, MANY):
            write_task(directory / f"rounds-{rounds}", rounds)
            tasks[rounds] = load_task(directory / f"rounds-{rounds}")
        for environment in ENVIRONMENTS:
            if available(environment):
                engine, _ = choose_engine(environment)
                try:
                    _measure(table, environment, engine, tasks, runs)
                finally:
                    engine.close()
    return table


def _measure(table: Table, environment: str, engine: Engine, tasks: dict[int, Task], runs: int) -> None:
    for agent in ("nop", "oracle"):
        slopes, fixed = [], []
        for run in range(-1, runs):
            extra = {
                rounds: _attempt(engine, task, agent) - _bare(engine, task, agent) for rounds, task in tasks.items()
            }
            slope = (extra[MANY] - extra[FEW]) / (MANY - FEW)
            if run >= 0:  # The first builds the image.
                slopes.append(slope)
                fixed.append(extra[FEW] - FEW * slope)
        if agent == "nop":
            table.add(environment, "per round", slopes, TARGETS[environment][0])
            table.add(environment, "per attempt", fixed, TARGETS[environment][1])
        else:
            table.add(environment, "per round, oracle", slopes)


def _attempt(engine: Engine, task: Task, agent: str) -> float:
    """Seconds of a whole attempt, records and all."""
    with tempfile.TemporaryDirectory() as results:
        started = time.perf_counter()
        directory = AttemptDirectory.of(Path(results), task.name, agent, "run", 1)
        for record in Trial(task, make_agent(agent), engine, directory=directory).run():
            if record.verdict is None:
                raise RuntimeError(record.cause)
        return time.perf_counter() - started


def _bare(engine: Engine, task: Task, agent: str) -> float:
    """Seconds of all scripts of a task, in an environment that is there already."""
    environment = engine.create(task, env={}, network="no-network")
    environment.start()
    try:
        environment.make_directories(["/logs/verifier"])
        scripts = []
        for round_ in task.rounds:
            if agent == "oracle":
                assert round_.solution is not None
                environment.upload([round_.solution], f"/bare/{round_.name}/solution")
                scripts.append(f"bash /bare/{round_.name}/solution/solve.sh")
            environment.upload(round_.tests, f"/bare/{round_.name}/tests")
            scripts.append(f"bash /bare/{round_.name}/tests/test.sh")
        loop = "; ".join(scripts)
        environment.exec("true")
        started = time.perf_counter()
        environment.exec(loop)
        return time.perf_counter() - started
    finally:
        environment.stop()
