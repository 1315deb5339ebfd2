"""What it saves that suites run beside the agent and beside each other: whole sessions of six rounds, all sleeping.

One after the other, agent and suite of 5 s take 60 s, and suites of 5 s after an agent that takes no time 30 s.
"""

from __future__ import annotations

from benchmarks.material import ENVIRONMENTS, available, run_pytest, scratch, write_task
from benchmarks.tables import Table

ROUNDS, SECONDS = 6, 5
TARGETS = {"docker": (37, 18), "sandbox": (36, 16)}


def measure(runs: int) -> Table:
    """Seconds."""
    columns = (f"agent {SECONDS} s, suite {SECONDS} s", f"instant agent, suite {SECONDS} s, two slots")
    table = Table(f"{ROUNDS} rounds", "s", columns, digits=1)
    with scratch() as directory:
        write_task(directory / "task", ROUNDS, suite=f"sleep {SECONDS}")
        (directory / "pytest.ini").write_text("[pytest]\nevocode_verifiers = 2\n")
        for environment in ENVIRONMENTS:
            if available(environment):
                arguments = ("--evocode-agent=sleeper", f"--evocode-env={environment}", "task")
                run_pytest(
                    directory, "--evocode-agent=sleeper", f"--evocode-env={environment}", "--collect-only", "task"
                )
                for column, turn, target in zip(columns, (SECONDS, 0), TARGETS[environment], strict=True):
                    env = {"TURN": str(turn)}
                    times = [
                        run_pytest(directory, *arguments, env=env, statuses=(1,)) for _ in range(max(1, runs // 2))
                    ]
                    table.add(environment, column, times, target)
    return table
