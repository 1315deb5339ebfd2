"""From the start of pytest's process to the first turn of the agent, and the whole session of five trivial rounds.

Each is run beside a pytest that has one empty test, of which the whole session is so many times the time.
"""

from __future__ import annotations

import time

from benchmarks.material import ENVIRONMENTS, available, run_pytest, scratch, write_task
from benchmarks.tables import Table

TARGETS = {"docker": (0.8, 8), "sandbox": (0.6, 3.5)}


def measure(runs: int) -> Table:
    """Seconds, and how many times an empty pytest."""
    columns = ("to the first turn", "whole session", "times an empty pytest")
    table = Table("a session of five trivial rounds, image warm", "s", columns)
    with scratch() as directory:
        write_task(directory / "task", 5)
        (directory / "test_nothing.py").write_text("def test_nothing(): pass\n")
        for environment in ENVIRONMENTS:
            if available(environment):
                first, whole, times = [], [], []
                for run in range(-1, runs):
                    (directory / "first-turn").unlink(missing_ok=True)
                    empty = run_pytest(directory, "test_nothing.py")
                    started = time.time()
                    arguments = ("--evocode-agent=sleeper", f"--evocode-env={environment}", "task")
                    seconds = run_pytest(directory, *arguments, statuses=(1,))
                    if run >= 0:
                        first.append(float((directory / "first-turn").read_text()) - started)
                        whole.append(seconds)
                        times.append(seconds / empty)
                table.add(environment, columns[0], first, TARGETS[environment][0])
                table.add(environment, columns[1], whole)
                table.add(environment, columns[2], times, TARGETS[environment][1])
    return table
