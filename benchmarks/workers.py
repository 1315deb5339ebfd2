"""Eight attempts of five rounds, whose agent and suite sleep for 0.4 s each, on one, two and four workers."""

from __future__ import annotations

from benchmarks.material import ENVIRONMENTS, available, run_pytest, scratch, write_task
from benchmarks.tables import Table

ATTEMPTS, ROUNDS = 8, 5


def measure(runs: int) -> Table:
    """Seconds."""
    columns = ("no xdist", "-n1", "-n2", "-n4")
    table = Table(f"{ATTEMPTS} attempts of {ROUNDS} rounds", "s", columns, digits=1)
    with scratch() as directory:
        write_task(directory / "task", ROUNDS, suite="sleep 0.4")
        for environment in ENVIRONMENTS:
            if available(environment):
                for column in columns:
                    arguments = [] if column == "no xdist" else [column]
                    arguments += ["--evocode-agent=sleeper", f"--evocode-env={environment}"]
                    arguments += [f"--evocode-attempts={ATTEMPTS}", "task"]
                    times = [
                        run_pytest(directory, *arguments, env={"TURN": "0.4"}, statuses=(1,))
                        for _ in range(max(1, runs // 2))
                    ]
                    table.add(environment, column, times)
    return table
