"""Collecting 10,000 rounds: ``pytest --collect-only`` over 1,000 tasks of 10, from process start to process end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.material import scratch, write_task
from benchmarks.tables import Table

TASKS, ROUNDS = 1000, 10


def measure(runs: int) -> Table:
    """Seconds and megabytes."""
    table = Table(f"{TASKS * ROUNDS:,} rounds collected", "s or MB", ("time", "peak memory"))
    with scratch() as directory:
        for number in range(TASKS):
            write_task(directory / "tasks" / f"task-{number:04}", ROUNDS)
        _collect(directory)
        measured = [_collect(directory) for _ in range(runs)]
    table.add("collection", "time", [seconds for seconds, _ in measured], target=1.5)
    table.add("collection", "peak memory", [memory for _, memory in measured], target=300)
    return table


def _collect(directory: Path) -> tuple[float, float]:
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--evocode-agent=nop"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    process = subprocess.Popen([*argv, "tasks"], cwd=directory, stdout=subprocess.PIPE, env=env)
    assert process.stdout is not None
    collected = sum(b"::round-" in line for line in process.stdout)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    seconds = time.perf_counter() - started
    if collected != TASKS * ROUNDS:
        raise RuntimeError(f"{collected} rounds collected")
    return seconds, usage.ru_maxrss / 1024
