"""How the memory of a session grows: resident, of pytest's own process, from the 20th round on, and how long it takes.

Over 1,000 rounds of an agent that does nothing; and over the oracle's 227 rounds of 26 tasks, as many as EvoCode-Bench
has. Its solutions and suites take next to no time, so nearly all of it is the harness's.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.material import ENVIRONMENTS, available, run_pytest, scratch, write_task
from benchmarks.tables import Table

SIZES = {"nop": [10] * 100, "oracle": [9] * 19 + [8] * 7}
"""The rounds of each task, by agent."""
TARGET, GROWTH = 60, 20
_WATCH = """
import os, pathlib
def pytest_runtest_logfinish(nodeid, location):
    resident = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with open(pathlib.Path(__file__).parent / "resident", "a") as file:
        file.write(f"{resident}\\n")
"""


def measure(runs: int) -> Table:
    """Megabytes, and seconds; one run each, because it is hundreds of rounds already."""
    columns = ("at the 20th", "at the last", "growth", "session, s")
    table = Table("resident memory over many rounds", "MB", columns, digits=1)
    for agent, sizes in SIZES.items():
        with scratch() as directory:
            with (directory / "conftest.py").open("a") as file:
                file.write(_WATCH)
            for number, rounds in enumerate(sizes):
                write_task(directory / "tasks" / f"task-{number:03}", rounds)
            for environment in ENVIRONMENTS:
                if available(environment):
                    _measure(table, directory, environment, agent, sum(sizes))
    return table


def _measure(table: Table, directory: Path, environment: str, agent: str, rounds: int) -> None:
    resident = directory / "resident"
    resident.unlink(missing_ok=True)
    status = 0 if agent == "oracle" else 1
    arguments = (f"--evocode-agent={agent}", f"--evocode-env={environment}", "tasks")
    seconds = run_pytest(directory, *arguments, statuses=(status,))
    seen = [int(line) / 2**20 for line in resident.read_text().splitlines()]
    if len(seen) != rounds:
        raise RuntimeError(f"{len(seen)} rounds were run")
    row = f"{environment}, {rounds:,} rounds of {agent}"
    table.add(row, "at the 20th", [seen[19]])
    table.add(row, "at the last", [seen[-1]])
    table.add(row, "growth", [seen[-1] - seen[19]], GROWTH)
    table.add(row, "session, s", [seconds], TARGET if agent == "oracle" else None)
