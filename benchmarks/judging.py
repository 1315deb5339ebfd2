"""What a clean environment costs: until a suite could start in one, beside a fork with all of the agent's system.

Both are made of one snapshot in turn, of a workspace of some size, with directories for the suite made and one command
run in them. Nothing is repaired in the whole fork.

The files of a clean environment are copied into its layer, some 0.1 ms each: an overlay renames no directory of a layer
below it, which programs do. On ext4 without a journal a new file costs up to ten times as much where others
were removed in the last minutes, as forks are.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.material import ENVIRONMENTS, available, scratch, write_task
from benchmarks.tables import Table
from pytest_evocode.environments import (
    Engine,
    Environment,
    Snapshot,
    choose_engine,
)
from pytest_evocode.environments.task_environment import VERIFIER_DIRECTORIES
from pytest_evocode.tasks import load_task

#: Bytes and files below the workspace, and files outside of it that come along one by one.
WORK = {
    "one file": (1000, 1, 0),
    "20 MB, 1,000 files": (20 * 10**6, 1000, 0),
    "one file, 500 outside": (1000, 1, 500),
}
FILLING = """set -e; mkdir -p work /opt/own
for i in $(seq {files}); do head -c {bytes} /dev/urandom > work/$i; done
for i in $(seq {outside}); do echo $i > /opt/own/$i; done"""
COLUMNS = ("clean", "whole fork")


def measure(runs: int) -> Table:
    """Milliseconds."""
    table = Table("until a suite could start, by the agent's work", "ms", COLUMNS, digits=0)
    with scratch() as directory:
        write_task(directory / "task", 1)
        for name in ENVIRONMENTS:
            if available(name):
                engine, _ = choose_engine(name)
                try:
                    for work, (size, files, outside) in WORK.items():
                        script = FILLING.format(files=files, bytes=size // files, outside=outside)
                        _measure(table, f"{name}, {work}", engine, directory, script, runs)
                finally:
                    engine.close()
    return table


def _measure(table: Table, row: str, engine: Engine, directory: Path, script: str, runs: int) -> None:
    environment = engine.create(load_task(directory / "task"), env={}, network=None)
    environment.start()
    try:
        assert environment.exec(script, user="0").ok
        snapshot = environment.snapshot()
        exact = [path for path in snapshot.changed_paths((environment.workdir,)) if path.startswith("/opt/own/")]
        times: dict[str, list[float]] = {column: [] for column in COLUMNS}
        for _ in range(runs + 1):
            clean = (environment.workdir,)
            times[COLUMNS[0]].append(_until_ready(environment, snapshot, clean, exact))
            times[COLUMNS[1]].append(_until_ready(environment, snapshot, None, ()))
        for column, values in times.items():
            table.add(row, column, values[1:])  # The first of each finds nothing in the machine's memory.
        snapshot.discard()
    finally:
        environment.stop()


def _until_ready(
    environment: Environment, snapshot: Snapshot, only: tuple[str, ...] | None, exact: list[str] | tuple[str, ...]
) -> float:
    started = time.perf_counter()
    fork = environment.fork(snapshot, network="no-network", only=only, exact=exact)
    try:
        fork.start()
        fork.make_directories(VERIFIER_DIRECTORIES)
        fork.exec(["true"], user="0")
        return 1000 * (time.perf_counter() - started)
    finally:
        fork.stop()
