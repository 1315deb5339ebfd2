"""How long the agent's next turn waits for a snapshot, by the size of what was written since the image."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.material import ENVIRONMENTS, available, scratch, write_task
from benchmarks.tables import Table
from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.tasks import load_task

SIZES = {
    "1 MB, 20 files": (1, 20),
    "30 MB, 530 files": (30, 530),
    "300 MB, 3 files": (300, 3),
    "300 MB, 5,300 files": (300, 5300),
}
FILLING = """set -e; mkdir -p /data; cd /data
for i in $(seq {files}); do d=$((i / 100)); [ -d $d ] || mkdir $d; head -c {bytes} /dev/urandom > $d/$i; done"""
COLUMN = "snapshot"


def measure(runs: int) -> Table:
    """Milliseconds."""
    table = Table("a snapshot by what was written before", "ms", (COLUMN,), digits=0)
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
        started = time.perf_counter()
        snapshot = environment.snapshot()
        values = table.rows.get(row, {}).get(COLUMN, [])
        table.add(row, COLUMN, [*values, 1000 * (time.perf_counter() - started)])
        snapshot.discard()
    finally:
        environment.stop()
