"""Tiny tasks, written on the spot, of which each round appends a line to a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

DOCKERFILE = "FROM python:3.11-slim-bookworm\nWORKDIR /app\n"
#: For native suites that look at the workspace from their own process.
FORK = '[metadata.evocode]\nverify_in = "clean"\n'


class WriteTask(Protocol):
    """Writes a task below ``tasks/`` and returns its directory.

    Round i appends ``line-i`` to ``log.txt``; its suite has one case for each line up to i. The mappings replace by
    round number: ``solve`` and ``test`` the scripts (None: no solution), ``step`` more keys of its [[steps]] entry,
    ``workdir`` files that the round brings. Rounds in ``native`` have that as their ``test_native.py`` and no script;
    they run in the fork unless ``toml`` has a ``verify_in``. ``toml`` goes to the top of task.toml, ``files`` anywhere
    in the task.
    """

    def __call__(
        self,
        name: str = "a",
        rounds: int = 2,
        *,
        solve: Mapping[int, str | None] = ...,
        test: Mapping[int, str] = ...,
        native: Mapping[int, str] = ...,
        step: Mapping[int, str] = ...,
        workdir: Mapping[int, Mapping[str, str]] = ...,
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = ...,
    ) -> Path: ...


def suite_up_to(last: int) -> str:
    """A test.sh with one case per line that rounds 1 to ``last`` append."""
    return "\n".join(
        (
            "reward=1",
            "for i in $(seq " + str(last) + "); do",
            '  if grep -qx "line-$i" log.txt; then status=success; else status=fail; reward=0; fi',
            '  echo "CASE_RESULT case_id=has-line-$i origin_step=round-$i case_type=core status=$status'
            ' intent=\\"line $i is kept\\" expected=\\"line-$i\\" actual=\\"$(tail -n1 log.txt)\\""',
            "done",
            "echo $reward > /logs/verifier/reward.txt",
        )
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")


def task_writer(root: Path) -> WriteTask:
    """Return what writes tasks below ``tasks/`` in a directory."""

    def write(
        name: str = "a",
        rounds: int = 2,
        *,
        solve: Mapping[int, str | None] = {},
        test: Mapping[int, str] = {},
        native: Mapping[int, str] = {},
        step: Mapping[int, str] = {},
        workdir: Mapping[int, Mapping[str, str]] = {},
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = {},
    ) -> Path:
        task = root / "tasks" / name
        entries = [f'[[steps]]\nname = "round-{index}"\n{step.get(index, "")}' for index in range(1, rounds + 1)]
        fork = FORK if native and "verify_in" not in toml else ""
        _write(task / "task.toml", "\n\n".join([toml, fork, *entries]))
        _write(task / "environment/Dockerfile", dockerfile)
        for index in range(1, rounds + 1):
            directory = task / f"steps/round-{index}"
            _write(directory / "instruction.md", f"Append line-{index} to log.txt.")
            script = solve.get(index, f"echo line-{index} >> log.txt")
            if script is not None:
                _write(directory / "solution/solve.sh", script)
            if index in native:
                _write(directory / "tests/test_native.py", native[index])
            else:
                _write(directory / "tests/test.sh", test.get(index, suite_up_to(index)))
            for relative, text in workdir.get(index, {}).items():
                _write(directory / "workdir" / relative, text)
        for relative, text in files.items():
            _write(task / relative, text)
        return task

    return write


class WriteNative(Protocol):
    """Writes a task that native suites verify below ``tasks/`` and returns its directory.

    Round i appends ``line-i`` to ``log.txt``; its test requires that and has ``line-i`` as its requirement. ``solve``
    and ``test`` replace scripts and test modules by round number, ``files`` anything in the task.
    """

    def __call__(
        self,
        name: str = "a",
        rounds: int = 1,
        *,
        solve: Mapping[int, str] = ...,
        test: Mapping[int, str] = ...,
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = ...,
    ) -> Path: ...


def native_test(index: int) -> str:
    """The test module of a round: its line is there."""
    return f"""import pytest

@pytest.mark.requirement("line-{index}")
def test_line_{index}():
    with open("log.txt") as log:
        assert "line-{index}" in log.read().split()
"""


def native_writer(root: Path) -> WriteNative:
    """Return what writes tasks with native suites below ``tasks/`` in a directory."""

    def write(
        name: str = "a",
        rounds: int = 1,
        *,
        solve: Mapping[int, str] = {},
        test: Mapping[int, str] = {},
        toml: str = "",
        dockerfile: str = DOCKERFILE,
        files: Mapping[str, str] = {},
    ) -> Path:
        task = root / "tasks" / name
        entries = [f'[[steps]]\nname = "round-{index}"' for index in range(1, rounds + 1)]
        _write(task / "task.toml", "\n\n".join([toml, FORK, *entries]))
        _write(task / "environment/Dockerfile", dockerfile)
        for index in range(1, rounds + 1):
            directory = task / f"steps/round-{index}"
            _write(directory / "instruction.md", f"Append line-{index} to the log.")
            script = f"#!/bin/bash\n{solve.get(index, f'echo line-{index} >> log.txt')}"
            _write(directory / "solution/solve.sh", script)
            (directory / "solution/solve.sh").chmod(0o755)
            _write(directory / f"tests/test_line_{index}.py", test.get(index, native_test(index)))
        for relative, text in files.items():
            _write(task / relative, text)
        return task

    return write
