"""Time the whole command over a task of five trivial rounds, image warm: python benchmarks/five_rounds.py [--runs 5].

What is timed is ``pytest --evocode-agent=oracle TASK`` from process start to process end, so it holds Python's and
pytest's own start as well as every engine call. Prints one line per environment that this machine has, and for scale
what the same machine takes at that moment for pytest collecting nothing and for one bare ``docker exec``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5


def write_task(directory: Path, rounds: int = ROUNDS) -> None:
    """A task whose round i wants line i in a file."""
    toml = ['schema_version = "1.4"', "[environment]", 'network_mode = "no-network"']
    (directory / "environment").mkdir(parents=True)
    (directory / "environment" / "Dockerfile").write_text("FROM python:3.11-slim-bookworm\nWORKDIR /app\n")
    for index in range(1, rounds + 1):
        toml += ["[[steps]]", f'name = "round-{index}"']
        step = directory / "steps" / f"round-{index}"
        for name in ("solution", "tests"):
            (step / name).mkdir(parents=True)
        (step / "instruction.md").write_text(f"Add the line {index} to lines.txt.\n")
        (step / "solution" / "solve.sh").write_text(f"echo {index} >> lines.txt\n")
        (step / "tests" / "test.sh").write_text(
            f"if grep -qx {index} lines.txt; then r=1; s=success; else r=0; s=fail; fi\n"
            f"echo CASE_RESULT case_id=line-{index} origin_step=round-{index} status=$s\n"
            "echo $r > /logs/verifier/reward.txt\n"
        )
    (directory / "task.toml").write_text("\n".join(toml) + "\n")


def time_command(task: Path, environment: str, results: Path) -> float:
    """Seconds that one run takes; raises CalledProcessError when a round does not pass."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--evocode-agent=oracle"]
    argv += [f"--evocode-env={environment}", f"--evocode-results={results}", str(task)]
    # With this variable every run would compile every module again, which an installed package's users never see.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(argv, cwd=task.parent, stdout=subprocess.DEVNULL, env=env, check=True)
    return time.perf_counter() - started


def median_of(runs: int, argv: list[str], directory: str) -> float:
    """Median seconds of a command that succeeds."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(argv, cwd=directory, stdout=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def print_scale(runs: int, scratch: str) -> None:
    """Print how fast this machine is at things that are not ours."""
    nothing = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", scratch]
    print(f"for scale: pytest that collects nothing {median_of(runs, nothing, scratch):.2f} s", end="")
    run = ["docker", "run", "--rm", "--detach", "python:3.11-slim-bookworm", "sleep", "60"]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        container = done.stdout.strip()
        print(f", one docker exec {median_of(runs, ['docker', 'exec', container, 'true'], scratch):.2f} s", end="")
        subprocess.run(["docker", "rm", "--force", container], capture_output=True, check=False)
    print()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as scratch:
        task = Path(scratch, "five-rounds")
        write_task(task)
        print(f"{ROUNDS} trivial rounds, whole command, image warm, {runs} runs")
        print("environment  median     min     max")
        for environment in ("docker", "sandbox"):
            try:
                time_command(task, environment, Path(scratch, "results"))  # Builds the image.
            except subprocess.CalledProcessError as error:
                print(f"{environment:11}  not measured: pytest ended with exit code {error.returncode}")
                continue
            times = [time_command(task, environment, Path(scratch, "results")) for _ in range(runs)]
            print(
                f"{environment:11}  {statistics.median(times):4.2f} s  {min(times):4.2f} s  {max(times):4.2f} s",
                flush=True,
            )
        empty = Path(scratch, "empty")
        empty.mkdir()
        print_scale(runs, str(empty))


if __name__ == "__main__":
    main()
