"""Facts about the tasks of others, read from task.toml as leniently as their own scripts read it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli

from pytest_evocode.errors import UsageError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.results.task_facts import TaskFacts, keys_by_round, texts_in
from pytest_evocode.tasks import find_tasks


def read_facts(path: Path) -> TaskFacts | None:
    """Return the facts in one task.toml, or None where it does not exist or is not TOML."""
    try:
        task = tomli.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    metadata = table_in(task.get("metadata"))
    names = tuple(str(step["name"]) for step in tables_in(task.get("steps")) if step.get("name"))
    if not names and isinstance(count := table_in(metadata.get("multiround")).get("num_rounds"), int):
        names = tuple(old_round_name(number) for number in range(1, count + 1))
    names = names or ("round-1",)
    steps = {str(step["name"]): step.get("min_reward") for step in tables_in(task.get("steps")) if step.get("name")}
    changes = {
        str(step.get("step")): _texts(step.get("change_types"))
        for step in tables_in(table_in(metadata.get("requirement_chain")).get("steps"))
    }
    return TaskFacts(
        rounds=names,
        change_types=tuple(changes.get(name, ()) for name in names),
        reward_key=key if isinstance(key := table_in(metadata.get("evocode")).get("reward_key"), str) else "",
        minimum_keys=keys_by_round(table_in(steps.get(name)) for name in names),
        reward_strategy="final" if task.get("multi_step_reward_strategy") == "final" else "mean",
        **texts_in(metadata),
    )


def old_round_name(number: int) -> str:
    """Return the name of a round in the layout from before Harbor had steps, where rounds have numbers only."""
    return f"round_{number}"


def read_task_directories(directory: Path) -> dict[str, TaskFacts]:
    """Return the facts about all tasks in a directory, by name; raises UsageError where there is no task."""
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory}")
    found = {
        name: facts
        for name, place in find_tasks(directory).items()
        if (facts := read_facts(place / TASK_FILE)) is not None
    }
    if not found:
        raise UsageError(f"{directory} is not a task and has none in it: there is no {TASK_FILE}")
    return found


class TaskLookup:
    """Finds facts about tasks by name: the given ones first, then those of a task.toml that results point to."""

    def __init__(self, given: Mapping[str, TaskFacts]) -> None:
        self._given = given
        self._read: dict[Path, TaskFacts | None] = {}

    def find(self, task: str, *directories: Path) -> TaskFacts | None:
        """Return the facts about a task that may lie in one of the directories, or None."""
        if task in self._given:
            return self._given[task]
        for directory in directories:
            path = directory / TASK_FILE
            if path not in self._read:
                self._read[path] = read_facts(path)
            if (facts := self._read[path]) is not None:
                return facts
        return None


def table_in(value: Any) -> dict[str, Any]:
    """Return a table, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def tables_in(value: Any) -> list[dict[str, Any]]:
    """Return the tables of a list, without anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(each for each in values if isinstance(each, str))
