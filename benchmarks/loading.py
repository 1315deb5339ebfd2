"""Results of 100,000 rounds, from process start to a leaderboard: 250 tasks of ten rounds, four attempts by ten agents.

``evocode leaderboard`` loads them, and nothing else is done with them. Their cases lie beside the records, as sessions
leave them, and are not read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from random import Random

from benchmarks.material import scratch
from benchmarks.tables import Table
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.phases import PHASES, Phases
from pytest_evocode.results.records import AttemptRecord, RoundRecord, Usage, Verdict

AGENTS, TASKS, ROUNDS, ATTEMPTS = 10, 250, 10, 4
_RUN = "2026-01-02__03-04-05"


def measure(runs: int) -> Table:
    """Seconds and megabytes."""
    records = AGENTS * TASKS * ROUNDS * ATTEMPTS
    table = Table(f"a leaderboard of {records:,} rounds on disk", "s or MB", ("time", "peak memory"))
    with scratch() as directory:
        _write(directory / "evocode-results")
        _leaderboard(directory)
        measured = [_leaderboard(directory) for _ in range(runs)]
    table.add("leaderboard", "time", [seconds for seconds, _ in measured], target=2.5)
    table.add("leaderboard", "peak memory", [memory for _, memory in measured], target=200)
    return table


def _write(results: Path) -> None:
    draw = Random(0)
    for task, agent, number in product(range(TASKS), range(AGENTS), range(1, ATTEMPTS + 1)):
        names = f"task-{task:03}", f"agent-{agent}"
        rounds = tuple(_round(*names, number, index, draw) for index in range(1, ROUNDS + 1))
        record = AttemptRecord(
            task=names[0],
            agent=names[1],
            attempt=number,
            environment="docker",
            started="2026-01-02T03:04:05.678+00:00",
            finished="2026-01-02T04:04:05.678+00:00",
            declared_rounds=tuple(round_.round for round_ in rounds),
            rewards={"reward": 0.5},
            rounds=rounds,
        )
        AttemptDirectory.of(results, *names, _RUN, number).write_attempt(record)


def _round(task: str, agent: str, attempt: int, index: int, draw: Random) -> RoundRecord:
    passed = draw.random() < 0.6
    reward = float(passed)
    return RoundRecord(
        task=task,
        agent=agent,
        attempt=attempt,
        round=f"round-{index}",
        index=index,
        declared_rounds=ROUNDS,
        outcome="passed" if passed else "failed",
        verdict=Verdict(reward=reward, rewards={"reward": reward}, counts=(draw.randint(0, 10), 10)),
        tool_calls=draw.randint(1, 50),
        usage=Usage(prompt_tokens=draw.randint(1000, 100_000), completion_tokens=draw.randint(100, 5000)),
        agent_seconds=draw.random() * 600,
        verifier_seconds=draw.random() * 60,
        phases=Phases(**{name: round(draw.random() * 10, 4) for name in PHASES}),
    )


def _leaderboard(directory: Path) -> tuple[float, float]:
    argv = [sys.executable, "-c", "from pytest_evocode.cli import main; main()", "leaderboard"]
    started = time.perf_counter()
    process = subprocess.Popen(argv, cwd=directory, stdout=subprocess.PIPE)
    assert process.stdout is not None
    rows = sum(b"| agent-" in line for line in process.stdout)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    seconds = time.perf_counter() - started
    if rows != AGENTS:
        raise RuntimeError(f"a leaderboard of {rows} agents")
    return seconds, usage.ru_maxrss / 1024
