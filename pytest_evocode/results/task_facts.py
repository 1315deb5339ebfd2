"""The few facts about a task that results are broken down by."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def declared(self) -> int:
        """How many rounds the task has."""
        return len(self.rounds)

    def changes(self, index: int) -> tuple[str, ...]:
        """Return the change types of a round, whose index counts from 1.

        >>> TaskFacts(rounds=("r1", "r2"), change_types=(("extension",), ("conflict", "extension"))).changes(2)
        ('conflict', 'extension')
        >>> TaskFacts(rounds=("r1", "r2")).changes(2)
        ()
        """
        return self.change_types[index - 1] if 0 < index <= len(self.change_types) else ()


def task_facts(task: Task) -> TaskFacts:
    """Return the facts about a task; what is not text below ``[metadata]``, which is free, counts as not said."""
    metadata = task.config.metadata.model_extra or {}

    def text(key: str) -> str:
        value = metadata.get(key)
        return value.strip() if isinstance(value, str) else ""

    return TaskFacts(
        rounds=tuple(round_.name for round_ in task.rounds),
        change_types=tuple(round_.change_types for round_ in task.rounds),
        activity=text("activity"),
        interaction=text("interaction"),
        category=text("category"),
        difficulty=text("difficulty"),
        reward_strategy=task.reward_strategy,
    )
