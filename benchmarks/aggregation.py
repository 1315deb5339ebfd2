"""Metrics of 100,000 round records: 250 tasks of ten rounds, four attempts by each of ten agents, ten cases a round.

The records are in memory; what it takes to load them is not measured here. An interval is that of 26 tasks, which is
what a benchmark of today has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from benchmarks.tables import Table
from pytest_evocode.metrics.analyses import first_failures, pass_rates, solvable
from pytest_evocode.metrics.breakdown import breakdown
from pytest_evocode.metrics.comparison import compare
from pytest_evocode.metrics.failures import failure_kinds, worst_requirements
from pytest_evocode.metrics.grid import Grid, by_agent
from pytest_evocode.metrics.intervals import intervals
from pytest_evocode.metrics.scores import scores
from pytest_evocode.metrics.spending import spending_by, token_ratios
from pytest_evocode.results.records import Case, Outcome, RoundRecord, Usage, Verdict

AGENTS, TASKS, ROUNDS, ATTEMPTS, CASES = 10, 250, 10, 4, 10


def measure(runs: int) -> Table:
    """Seconds."""
    records = _records()
    agents = by_agent(records)
    first, second = list(agents.values())[:2]
    few = {f"task-{number:03}" for number in range(26)}
    small = [record for record in first if record.task in few]
    work: dict[str, tuple[Callable[[], object], float | None]] = {
        "scores of all agents": (lambda: [scores(of_agent) for of_agent in agents.values()], 5),
        "breakdown by task": (lambda: [breakdown(of_agent, "task") for of_agent in agents.values()], None),
        "breakdown by round": (lambda: [breakdown(of_agent, "round") for of_agent in agents.values()], None),
        "spending by task": (lambda: spending_by(records, "task"), None),
        "pass rates, first failures": (lambda: (pass_rates(records), first_failures(records)), None),
        "solvable, token ratios": (lambda: (solvable(records, records), token_ratios(records)), None),
        "failure kinds": (lambda: failure_kinds(records), None),
        "worst requirements": (lambda: worst_requirements(records), None),
        "comparison of two": (lambda: compare(first, second), None),
        "all intervals of one, 26 tasks": (lambda: intervals(Grid.of(small)), None),
        "one interval, 26 tasks": (lambda: compare(small, small).interval, 0.5),
    }
    table = Table(f"metrics of {len(records):,} round records", "s", ("time",), digits=3)
    for name, (function, target) in work.items():
        table.add(name, "time", [_seconds(function) for _ in range(runs)], target)
    return table


def _seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _records() -> list[RoundRecord]:
    random = Random(0)
    passed = [Case(id=f"c{number}", status="passed", requirement=f"r{number % 4}") for number in range(CASES)]
    failed = [case.model_copy(update={"status": "failed", "failure": "new miss"}) for case in passed]
    verdicts: dict[Outcome, Verdict] = {
        "passed": Verdict(reward=1, rewards={"reward": 1}, cases=tuple(passed)),
        "failed": Verdict(reward=0, rewards={"reward": 0}, cases=(*failed[:3], *passed[3:])),
    }
    outcomes: tuple[Outcome, ...] = ("passed", "passed", "failed")
    return [
        RoundRecord(
            task=f"task-{task:03}",
            agent=f"agent-{agent}",
            attempt=attempt,
            round=f"round-{index}",
            index=index,
            declared_rounds=ROUNDS,
            outcome=outcome,
            verdict=verdicts[outcome],
            tool_calls=random.randrange(40),
            usage=Usage(prompt_tokens=random.randrange(100_000), completion_tokens=random.randrange(5000)),
            agent_seconds=60.0,
            verifier_seconds=2.0,
        )
        for agent in range(AGENTS)
        for task in range(TASKS)
        for attempt in range(1, ATTEMPTS + 1)
        for index in range(1, ROUNDS + 1)
        for outcome in [random.choice(outcomes)]
    ]
