"""A whole session of a task like real ones, against its bare commands in one container, one after the other.

The task has an image of 1 GB and a project with a virtual environment. Its first turn writes 300 MB. Its suites install
pytest from a package index when they run, and start the program 15 to 100 times as another user; every round has a
``min_reward``. The oracle plays it: in a session whose image is built and nothing else is known, and in a second one.
The bare commands are ``solve.sh`` and ``test.sh`` of every round by ``docker exec``; copying them in is not counted.
The phases are those of the records of the first session of each run.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.material import available, run_pytest, scratch
from benchmarks.real_suite_task import CASES, fetch_wheels, package_index, write_real_task
from benchmarks.tables import Table

FIRST, SECOND, HARNESS, SUITES = 0.6, 0.45, 0.5, 1.1


def measure(runs: int) -> Table:
    """Seconds; shares are of the bare commands' time."""
    columns = ("bare", "first session", "share", "second session", "its share")
    table = Table("a task like real ones, in Docker", "s", columns)
    if not available("docker"):
        return table
    with scratch() as directory:
        wheels = fetch_wheels(directory)
        with package_index(wheels) as index:
            write_real_task(directory / "task", wheels, index)
            _session(directory, directory / "built", "--collect-only")
            for _ in range(min(runs, 3)):
                _measure(table, directory)
    return table


def _measure(table: Table, directory: Path) -> None:
    bare = _bare(directory / "task")
    with tempfile.TemporaryDirectory(dir=directory) as cache:
        first, rounds = _session(directory, Path(cache))
        second, again = _session(directory, Path(cache))
    suites = sum(bare["suites"])
    _append(table, "wall time", "bare", bare["wall"])
    for name, share, seconds, target in (
        ("first session", "share", first, FIRST),
        ("second session", "its share", second, SECOND),
    ):
        _append(table, "wall time", name, seconds)
        _append(table, "wall time", share, seconds / bare["wall"], target)
    _append(table, "suites' own seconds", "bare", suites)
    for name, share, records in (("first session", "share", rounds), ("second session", "its share", again)):
        own = sum(each["phases"]["suite"] for each in records)
        _append(table, "suites' own seconds", name, own)
        _append(table, "suites' own seconds", share, own / suites, SUITES)
    print(json.dumps({"bare": bare, "rounds": [each["phases"] for each in rounds]}))


def _append(table: Table, row: str, column: str, value: float, target: float | None = None) -> None:
    table.add(row, column, [*table.rows.get(row, {}).get(column, []), value], target)


def _session(directory: Path, cache: Path, *arguments: str) -> tuple[float, list[dict[str, Any]]]:
    """Run a session of the oracle; return its seconds, and the records of its rounds."""
    with tempfile.TemporaryDirectory(dir=directory) as results:
        options = ["--evocode-agent=oracle", "--evocode-env=docker", f"--evocode-results={results}", "task"]
        seconds = run_pytest(directory, *options, *arguments, env={"EVOCODE_CACHE": str(cache)})
        found = list(Path(results).glob("task/harbor_jobs/*/*/*/result.json"))
        return seconds, [each for file in found for each in json.loads(file.read_text())["rounds"]]


def _bare(task: Path) -> dict[str, Any]:
    """Run all commands of a task in one container of its image; return seconds."""
    _docker("build", "--quiet", "--tag", "evocode-benchmark", str(task / "environment"))
    container = _docker("run", "--detach", "--init", "evocode-benchmark", "sleep", "infinity").strip()
    try:
        turns, suites = [], []
        for number in range(1, len(CASES) + 1):
            step = task / "steps" / f"round-{number}"
            _docker("cp", str(step / "solution"), f"{container}:/solution-{number}")
            _docker("exec", container, "rm", "-rf", "/tests", "/logs/verifier")
            _docker("exec", container, "mkdir", "-p", "/logs/verifier")
            _docker("cp", str(step / "tests"), f"{container}:/tests")
            turns.append(_timed(container, f"/solution-{number}/solve.sh"))
            suites.append(_timed(container, "/tests/test.sh"))
            reward = json.loads(_docker("exec", container, "cat", "/logs/verifier/reward.json"))
            if reward["reward"] != 1:
                raise RuntimeError(f"the bare suite of round {number} fails")
    finally:
        _docker("rm", "--force", container)
    return {"wall": sum(turns) + sum(suites), "turns": turns, "suites": suites}


def _timed(container: str, script: str) -> float:
    started = time.perf_counter()
    _docker("exec", container, "bash", script)
    return time.perf_counter() - started


def _docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"docker {arguments[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
