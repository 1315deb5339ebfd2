"""What results keep of a task, without its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_evocode.tasks.task import RewardStrategy, Task


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What results keep of a task, without its files; a text is empty where the task does not say."""

    rounds: tuple[str, ...]
    """The names of the rounds, in order."""
    change_types: tuple[tuple[str, ...], ...] = ()
    """How the requirements changed in each round, in the same order."""
    activity: str = ""
    interaction: str = ""
    category: str = ""
    difficulty: str = ""
    reward_strategy: RewardStrategy = "mean"
    reward_key: str = ""
    """The reward that decides where a suite writes several; empty where nothing was said."""
    minimum_keys: tuple[tuple[str, ...], ...] = ()
    """The keys of each round's ``min_reward``, in the order of the rounds; empty where no round has any."""

    @property
    def declared(self) -> int:
        """How many rounds the task has."""
        return len(self.rounds)

    def minimum(self, index: int) -> tuple[str, ...]:
        """Return the keys of the ``min_reward`` of a round, whose index counts from 1."""
        return self.minimum_keys[index - 1] if 0 < index <= len(self.minimum_keys) else ()

    def changes(self, index: int) -> tuple[str, ...]:
        """Return the change types of a round, whose index counts from 1.

        >>> TaskFacts(rounds=("r1", "r2"), change_types=(("extension",), ("conflict", "extension"))).changes(2)
        ('conflict', 'extension')
        >>> TaskFacts(rounds=("r1", "r2")).changes(2)
        ()
        """
        return self.change_types[index - 1] if 0 < index <= len(self.change_types) else ()


def task_facts(task: Task) -> TaskFacts:
    """Return the facts about a task."""
    return TaskFacts(
        rounds=tuple(round_.name for round_ in task.rounds),
        change_types=tuple(round_.change_types for round_ in task.rounds),
        reward_strategy=task.reward_strategy,
        reward_key=task.reward_key or "",
        minimum_keys=keys_by_round(round_.min_reward for round_ in task.rounds),
        **texts_in(task.config.metadata.model_extra or {}),
    )


def keys_by_round(minimums: Iterable[Mapping[str, float] | None]) -> tuple[tuple[str, ...], ...]:
    """Return the keys of each ``min_reward``; nothing at all where none has any."""
    keys = tuple(tuple(minimum or ()) for minimum in minimums)
    return keys if any(keys) else ()


def texts_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a ``[metadata]`` by their fields here; what is not text there counts as not said."""
    found = {key: metadata.get(key) for key in ("activity", "interaction", "category", "difficulty")}
    return {key: text.strip() for key, text in found.items() if isinstance(text, str)}
