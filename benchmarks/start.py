"""From the start of pytest's process to the first turn of the agent, and the whole session of five trivial rounds."""

from __future__ import annotations

import time

from benchmarks.material import ENVIRONMENTS, available, run_pytest, scratch, write_task
from benchmarks.tables import Table

TARGETS = {"docker": 0.8, "sandbox": 0.6}


def measure(runs: int) -> Table:
    """Seconds."""
    table = Table("a session of five trivial rounds, image warm", "s", ("to the first turn", "whole session"))
    with scratch() as directory:
        write_task(directory / "task", 5)
        for environment in ENVIRONMENTS:
            if available(environment):
                first, whole = [], []
                for run in range(-1, runs):
                    (directory / "first-turn").unlink(missing_ok=True)
                    started = time.time()
                    arguments = ("--evocode-agent=sleeper", f"--evocode-env={environment}", "task")
                    seconds = run_pytest(directory, *arguments, statuses=(1,))
                    if run >= 0:
                        first.append(float((directory / "first-turn").read_text()) - started)
                        whole.append(seconds)
                table.add(environment, "to the first turn", first, TARGETS[environment])
                table.add(environment, "whole session", whole)
    return table
