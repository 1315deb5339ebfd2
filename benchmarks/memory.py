"""How the memory of a session grows over 1,000 rounds: resident, of pytest's own process, from the 20th round on."""

from __future__ import annotations

from benchmarks.material import ENVIRONMENTS, available, run_pytest, scratch, write_task
from benchmarks.tables import Table

TASKS, ROUNDS = 100, 10
_WATCH = """
import gc, os, pathlib
def pytest_runtest_logfinish(nodeid, location):
    resident = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with open(pathlib.Path(__file__).parent / "resident", "a") as file:
        file.write(f"{resident}\\n")
"""


def measure(runs: int) -> Table:
    """Megabytes; one run each, because it is a thousand rounds already."""
    columns = ("at the 20th", "at the last", "growth")
    table = Table(f"resident memory over {TASKS * ROUNDS:,} rounds", "MB", columns, digits=1)
    with scratch() as directory:
        with (directory / "conftest.py").open("a") as file:
            file.write(_WATCH)
        for number in range(TASKS):
            write_task(directory / "tasks" / f"task-{number:03}", ROUNDS)
        for environment in ENVIRONMENTS:
            if available(environment):
                resident = directory / "resident"
                resident.unlink(missing_ok=True)
                run_pytest(directory, "--evocode-agent=nop", f"--evocode-env={environment}", "tasks", statuses=(1,))
                seen = [int(line) / 2**20 for line in resident.read_text().splitlines()]
                if len(seen) != TASKS * ROUNDS:
                    raise RuntimeError(f"{len(seen)} rounds were run")
                for column, value in zip(columns, (seen[19], seen[-1], seen[-1] - seen[19]), strict=True):
                    table.add(environment, column, [value], 20 if column == "growth" else None)
    return table
