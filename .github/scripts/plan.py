"""Print what a benchmark is expected to cost and to take, and write its matrix of agents and shards for GitHub.

The estimates come from the results of an earlier run, where there is one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pytest_evocode.metrics.spending import ExpectedAmounts, cost_of, seconds_of
from pytest_evocode.plugin.collection import share
from pytest_evocode.results.foreign import read_task_directories
from pytest_evocode.results.loading import load_results

_MOST_JOBS = 256  # of a matrix, by GitHub's limits


def main() -> int:
    """Plan from the environment: AGENTS, TASKS, ATTEMPTS, SHARDS, and BASELINE, which may be empty."""
    agents = os.environ["AGENTS"].split()
    attempts, shards = int(os.environ["ATTEMPTS"]), int(os.environ["SHARDS"])
    if not agents or attempts < 1 or shards < 1:
        print("plan: name an agent; attempts and shards have to be 1 or more", file=sys.stderr)
        return 2
    if (jobs := len(agents) * shards) > _MOST_JOBS:
        print(
            f"plan: {len(agents)} agents by {shards} shards are {jobs} jobs, and GitHub takes {_MOST_JOBS} in "
            "a matrix; name fewer agents or shards",
            file=sys.stderr,
        )
        return 2
    tasks = {name: len(facts.rounds) for name, facts in read_task_directories(Path(os.environ["TASKS"])).items()}
    baseline = os.environ.get("BASELINE", "")
    earlier = load_results([Path(baseline)]).attempts if baseline and Path(baseline).is_dir() else []
    lines = plan_lines(
        agents, tasks, attempts, shards, ExpectedAmounts(earlier, seconds_of), ExpectedAmounts(earlier, cost_of)
    )
    print("\n".join(lines))
    matrix = [{"agent": agent, "shard": shard} for agent in agents for shard in range(1, shards + 1)]
    _append("GITHUB_STEP_SUMMARY", "\n".join(lines))
    _append("GITHUB_OUTPUT", f"matrix={json.dumps({'include': matrix})}")
    return 0


def plan_lines(
    agents: list[str],
    tasks: dict[str, int],
    attempts: int,
    shards: int,
    seconds: ExpectedAmounts,
    costs: ExpectedAmounts,
) -> list[str]:
    """Return a Markdown table with a line for each agent; what nothing is known of is said to be unknown."""
    lines = [
        "| agent | attempts | jobs | hours of the longest job | cost in US$ |",
        "| --- | --- | --- | --- | --- |",
    ]
    for agent in agents:
        name = agent.replace("/", "-")
        rounds = {task: range(1, 1 + number) for task, number in tasks.items()}
        hours, cost = "unknown", "unknown"
        if seconds:
            # Dealt out as the jobs will be, because one long attempt can be more than the share of a job.
            each_takes: dict[tuple[str, ...], float] = {
                (task, f"{number:09}"): seconds.of_attempt(name, task, each)
                for task, each in rounds.items()
                for number in range(attempts)
            }
            jobs = (share(each_takes, (number, shards)) for number in range(1, shards + 1))
            hours = f"{max(sum(each_takes[attempt] for attempt in job) for job in jobs) / 3600:.2f}"
        if any(costs.knows(name, task) for task in tasks):
            cost = f"{sum(costs.of_attempt(name, task, each) for task, each in rounds.items()) * attempts:.2f}"
        lines.append(f"| {agent} | {len(tasks) * attempts} | {shards} | {hours} | {cost} |")
    return lines


def _append(variable: str, text: str) -> None:
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
