"""Time the collection of many tasks: python benchmarks/collection.py [--tasks 1000] [--rounds 10].

What is timed is ``pytest --collect-only -q`` from process start to process end; peak memory is the process's own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from five_rounds import write_task


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.tasks):
            write_task(Path(scratch, "tasks", f"task-{number:04}"), options.rounds)
        argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        started = time.perf_counter()
        process = subprocess.Popen([*argv, "--evocode-agent=oracle", "tasks"], cwd=scratch, stdout=subprocess.PIPE)
        assert process.stdout is not None
        lines = process.stdout.read().decode().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    collected = sum("::round-" in line for line in lines)
    print(f"{collected} rounds of {options.tasks} tasks: {seconds:.2f} s, {usage.ru_maxrss / 1024:.0f} MB at the peak")
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
