"""A whole session of a task like real ones, against its bare commands in one container, one after the other.

The task has an image of 1 GB and a project with a virtual environment. Its first turn writes 300 MB. Its suites install
pytest from a package index when they run, and start the program 15 to 100 times as another user; every round has a
``min_reward``. The oracle plays it: in a first session, whose image is built and nothing else is known; in a warm one;
in one that reuses the states of the reference solutions (``--evocode-reuse``); and in another one like that with one
slot, where no suite shares the machine with anything, as in the bare container. The bare commands are ``solve.sh`` and
``test.sh`` of every round by ``docker exec``; copying them in is not counted. The same suites, bare, in as many
containers side by side as there are cores, the longest first, are what no harness can be faster than without turns.

"No core idle" is the time that the processors worked, over the number of cores: with turns, no harness can be faster
than that of the bare commands. Nothing else may run on the machine. The phases that are printed are those of the
records of the warm session.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.material import available, processor_seconds, run_pytest, scratch
from benchmarks.real_suite_task import CASES, fetch_wheels, package_index, write_real_task
from benchmarks.tables import Table

FIRST, WARM, REUSING, OVERHEAD, SUITES = 0.75, 0.6, 0.45, 0.5, 1.1


def measure(runs: int) -> Table:
    """Seconds; shares are of the bare commands' time."""
    table = Table(
        "a task like real ones, in Docker",
        "s",
        ("wall time", "share", "share, no core idle", "suites' own", "their share"),
    )
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
    before = processor_seconds()
    bare = _bare(directory / "task")
    suites = sum(bare["suites"])
    floor = (processor_seconds() - before) / (os.cpu_count() or 1)
    _append(table, "bare commands", "wall time", bare["wall"])
    _append(table, "bare commands", "suites' own", suites)
    _append(table, "bare commands", "share, no core idle", floor / bare["wall"])
    together = _bare_side_by_side(directory / "task")
    _append(table, "bare suites side by side", "wall time", together["wall"])
    _append(table, "bare suites side by side", "share", together["wall"] / bare["wall"])
    _append(table, "bare suites side by side", "suites' own", together["suites"])
    _append(table, "bare suites side by side", "their share", together["suites"] / suites)
    with tempfile.TemporaryDirectory(dir=directory) as cache:
        for name, options, target in (
            ("first session", (), FIRST),
            ("warm session", (), WARM),
            ("reusing states", ("--evocode-reuse",), REUSING),
            ("reusing states, one slot", ("--evocode-reuse", "-o", "evocode_verifiers=1"), None),
        ):
            before = processor_seconds()
            seconds, rounds = _session(directory, Path(cache), *options)
            floor = (processor_seconds() - before) / (os.cpu_count() or 1)
            own = sum(each["phases"]["suite"] for each in rounds)
            _append(table, name, "wall time", seconds)
            _append(table, name, "share", seconds / bare["wall"], target)
            _append(table, name, "share, no core idle", floor / bare["wall"])
            _append(table, name, "suites' own", own)
            _append(table, name, "their share", own / suites, SUITES if "one slot" in name else None)
            if name == "warm session":
                phases = [each["phases"] for each in rounds]
                overhead = max((each["snapshot"] or 0) + (each["bookkeeping"] or 0) for each in phases)
                _append(table, "overhead of the worst round, warm", "wall time", overhead, OVERHEAD)
                print(json.dumps({"bare": bare, "rounds": phases}))


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
    with _container() as container:
        turns, suites = [], []
        for number in range(1, len(CASES) + 1):
            turns.append(_turn(container, task, number))
            suites.append(_suite(container, task, number))
    return {"wall": sum(turns) + sum(suites), "turns": turns, "suites": suites}


def _bare_side_by_side(task: Path) -> dict[str, float]:
    """Run the suites in containers in which the last solution was played and the tools are installed."""
    left = list(range(1, len(CASES) + 1))
    spent: list[float] = []

    def work(container: str) -> None:
        while left:
            spent.append(_suite(container, task, left.pop()))

    with contextlib.ExitStack() as stack:
        containers = [stack.enter_context(_container()) for _ in range(os.cpu_count() or 1)]
        for container in containers:
            _turn(container, task, len(CASES))
            _suite(container, task, 1)
        started = time.perf_counter()
        with ThreadPoolExecutor(len(containers)) as pool:
            list(pool.map(work, containers))
        return {"wall": time.perf_counter() - started, "suites": sum(spent)}


@contextlib.contextmanager
def _container() -> Iterator[str]:
    container = _docker("run", "--detach", "--init", "evocode-benchmark", "sleep", "infinity").strip()
    try:
        yield container
    finally:
        _docker("rm", "--force", container)


def _turn(container: str, task: Path, number: int) -> float:
    _docker("cp", str(task / "steps" / f"round-{number}" / "solution"), f"{container}:/solution-{number}")
    return _timed(container, f"/solution-{number}/solve.sh")


def _suite(container: str, task: Path, number: int) -> float:
    _docker("exec", container, "rm", "-rf", "/tests", "/logs/verifier")
    _docker("exec", container, "mkdir", "-p", "/logs/verifier")
    _docker("cp", str(task / "steps" / f"round-{number}" / "tests"), f"{container}:/tests")
    seconds = _timed(container, "/tests/test.sh")
    reward = json.loads(_docker("exec", container, "cat", "/logs/verifier/reward.json"))
    if reward["reward"] != 1:
        raise RuntimeError(f"the bare suite of round {number} fails")
    return seconds


def _timed(container: str, script: str) -> float:
    started = time.perf_counter()
    _docker("exec", container, "bash", script)
    return time.perf_counter() - started


def _docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"docker {arguments[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
