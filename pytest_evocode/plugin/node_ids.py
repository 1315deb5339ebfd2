"""How to read node ids like ``tasks/ledger/task.toml::oracle::round-3`` in processes without the node itself."""

from __future__ import annotations

from pathlib import Path

from pytest_evocode.names import TASK_FILE


def is_in_task(nodeid: str) -> bool:
    """Tell whether a test is a round of an attempt, or a check of a task."""
    return f"{TASK_FILE}::" in nodeid


def task_directory(nodeid: str, root: Path) -> Path:
    """Return the directory of the task that a test belongs to; ``root`` is what node ids are relative to."""
    return (root / nodeid.partition(f"{TASK_FILE}::")[0]).resolve()
