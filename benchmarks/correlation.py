"""False alarms of ``evocode process``: how often its interval excludes 0 where agents differ on average only.

Each agent has a level of its own, so a better one is better on both sides, and each task has another. What is added to
them at each agent and task is noise that has nothing to do with the other side, so there is nothing within tasks to be
found; 5 % is what a 95 % interval may get wrong. Some agents lack a tenth of the tasks. No time is measured.
"""

from __future__ import annotations

from random import Random

from benchmarks.tables import Table
from pytest_evocode.process.scores.summary import Point, within_tasks

SIMULATIONS = 200
DESIGNS = [(tasks, agents) for tasks in (7, 26) for agents in (2, 3, 5)]


def measure(runs: int) -> Table:
    """Percent of :data:`SIMULATIONS`, with other random numbers in each run."""
    table = Table(f"false alarms within tasks, in {SIMULATIONS} simulations", "%", ("false alarms",), digits=1)
    for tasks, agents in DESIGNS:
        rates = [100 * _false_alarms(tasks, agents, Random(seed)) / SIMULATIONS for seed in range(runs)]
        table.add(f"{tasks} tasks, {agents} agents", "false alarms", rates)
    return table


def _false_alarms(tasks: int, agents: int, random: Random) -> int:
    alarms = 0
    for _ in range(SIMULATIONS):
        found = within_tasks(unrelated_pairs(tasks, agents, random, missing=0.1 if agents > 2 else 0))
        alarms += found.interval is not None and not found.interval.low <= 0 <= found.interval.high
    return alarms


def unrelated_pairs(tasks: int, agents: int, random: Random, missing: float = 0) -> dict[str, dict[str, Point]]:
    """Return points of agents that differ on average only; ``missing`` is the share of points that are not there."""
    of_tasks = [(random.gauss(0, 1), random.gauss(0, 1)) for _ in range(tasks)]
    return {
        f"agent-{agent}": {
            f"task-{number}": (agent + x + random.gauss(0, 1), agent + y + random.gauss(0, 1))
            for number, (x, y) in enumerate(of_tasks)
            if random.random() >= missing
        }
        for agent in range(agents)
    }
