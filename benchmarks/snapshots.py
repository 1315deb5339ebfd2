"""What a snapshot costs by the size of what was written since the image: the wait for it, and until a fork can start.

The agent's next turn waits for ``snapshot()`` alone. The second snapshot is taken after one more small file. In Docker
the commit is the engine's own way, which copies everything every time with the container paused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from benchmarks.material import ENVIRONMENTS, available, scratch, write_task
from benchmarks.tables import Table
from pytest_evocode.environments import Engine, Environment, choose_engine
from pytest_evocode.tasks import load_task

_Result = TypeVar("_Result")
SIZES = {
    "1 MB, 20 files": (1, 20),
    "30 MB, 530 files": (30, 530),
    "300 MB, 3 files": (300, 3),
    "300 MB, 5,300 files": (300, 5300),
}
FILLING = """set -e; mkdir -p /data; cd /data
for i in $(seq {files}); do d=$((i / 100)); [ -d $d ] || mkdir $d; head -c {bytes} /dev/urandom > $d/$i; done"""
COLUMNS = ("first", "until a fork", "second", "until a fork of it", "commit")


def measure(runs: int) -> Table:
    """Milliseconds."""
    table = Table("a snapshot by what was written before", "ms", COLUMNS, digits=0)
    with scratch() as directory:
        write_task(directory / "task", 1)
        for name in ENVIRONMENTS:
            if available(name):
                engine, _ = choose_engine(name)
                try:
                    for size, (megabytes, files) in SIZES.items():
                        script = FILLING.format(files=files, bytes=megabytes * 10**6 // files)
                        for _ in range(runs):
                            _measure(table, f"{name}, {size}", engine, directory, script)
                finally:
                    engine.close()
    return table


def _measure(table: Table, row: str, engine: Engine, directory: Path, script: str) -> None:
    environment = engine.create(load_task(directory / "task"), env={}, network=None)
    environment.start()
    try:
        assert environment.exec(script, user="0").ok
        time.sleep(0.1)  # An agent's turn does not end with the write of its last file.
        for columns in (COLUMNS[:2], COLUMNS[2:4]):
            snapshot = _time(table, row, columns[0], environment.snapshot)
            _time(table, row, columns[1], snapshot.made().result)
            environment.exec("echo x > /data/another", user="0")
        if engine.name == "docker":
            _time(table, row, COLUMNS[4], lambda: _commit(environment))
    finally:
        environment.stop()


def _time(table: Table, row: str, column: str, call: Callable[[], _Result]) -> _Result:
    started = time.perf_counter()
    result = call()
    values = table.rows.get(row, {}).get(column, [])
    table.add(row, column, [*values, 1000 * (time.perf_counter() - started)])
    return result


def _commit(environment: Environment) -> None:
    from pytest_evocode.environments.docker.environment import DockerEnvironment
    from pytest_evocode.environments.docker.snapshots import commit_container

    docker = cast(DockerEnvironment, environment)
    settings = docker._settings
    commit_container(settings.client, docker._id, image_layers=settings.image_layers)
