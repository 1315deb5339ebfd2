"""What one program costs that a native suite runs in its workspace: by run_program, against a bare exec of the same.

A call is to add 8 ms to the bare command in Docker and 2 ms in the sandbox, where a thousand calls of ``true`` are to
take less than 6 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.material import ENVIRONMENTS, available, scratch, write_task
from benchmarks.tables import Table
from pytest_evocode.environments import Command, Environment, choose_engine
from pytest_evocode.tasks import load_task

CALLS = 100  # of each kind a run; a thousand of `true`
TRUE = Command(("true",))
THOUSAND = {"sandbox": 6000.0, "docker": None}


def measure(runs: int) -> Table:
    """Milliseconds; one value a run, the mean of its calls."""
    columns = ("exec", "run_program", "with input", "beside a server", "another user", "write a file", "1,000 calls")
    table = Table("one program in the workspace of a suite", "ms", columns)
    with scratch() as directory:
        write_task(directory / "task", 1)
        for name in ENVIRONMENTS:
            if available(name):
                _measure(table, name, directory, runs)
    return table


def _measure(table: Table, name: str, directory: Path, runs: int) -> None:
    engine, _ = choose_engine(name)
    try:
        environment = engine.create(load_task(directory / "task"), env={}, network=None)
        programs: Environment = environment
        programs.start()
        server = programs.open_program(Command(("sleep", "infinity")), lambda *_: None)
        calls: dict[str, Callable[[], object]] = {
            "exec": lambda: programs.exec(["true"]),
            "beside a server": lambda: programs.run_program(TRUE, alongside=[server]),
            "run_program": lambda: programs.run_program(TRUE),
            "with input": lambda: programs.run_program(Command(("cat",)), input=b"a line\n" * 50),
            "another user": lambda: programs.run_program(Command(("true",), user="nobody")),
            "write a file": lambda: programs.write_files("/tmp/files", {f"{time.monotonic_ns()}": b"a line\n" * 50}),
        }
        for column, call in calls.items():
            _mean(call, 3)
            table.add(name, column, [_mean(call, CALLS) for _ in range(runs)])
        seconds = [_mean(calls["run_program"], 1000) for _ in range(runs)]
        table.add(name, "1,000 calls", [1000 * each for each in seconds], THOUSAND[name])
        environment.stop()
    finally:
        engine.close()


def _mean(call: Callable[[], object], times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        call()
    return 1000 * (time.perf_counter() - started) / times
