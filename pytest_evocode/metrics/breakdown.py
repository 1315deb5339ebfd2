"""Scores by what tasks or rounds have in common: activity, interaction, category, round index or kind of change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_evocode.metrics.grid import Grid, Rounds, TaskRounds, as_grid, narrowed
from pytest_evocode.metrics.scores import (
    avg_rounds,
    case_score,
    dataset_score,
    mt_at_k,
    perfect_tasks,
    pinned_case_score,
    sr,
    sr_macro,
)
from pytest_evocode.results.records import TaskFacts

Dimension = Literal["task", "round", "activity", "interaction", "change", "category"]
#: The group of tasks or rounds where it is not given.
NOT_GIVEN = "not given"


@dataclass(frozen=True, slots=True)
class Group:
    """The scores over the rounds of one group, each but SR the mean over the tasks that have such rounds; 0 to 100.

    Single rounds have SR, and chains have what depends on how rounds follow each other.
    """

    tasks: int
    rounds: int
    dataset_score: float | None
    case_score: float | None
    pinned_case_score: float | None
    avg_rounds: float | None
    perfect_tasks: int | None
    """How many tasks have an attempt that passed all of their rounds in the group."""
    mt_at_k: float | None
    """An attempt ends at its first round that is not passed, even where that round is not in the group."""
    sr: float | None = None
    sr_macro: float | None = None
    decided_tasks: int = 0
    """How many tasks have rounds that a reward decides, which passed rounds are counted over."""


def breakdown(
    rounds: Rounds, by: Dimension, facts: Mapping[str, TaskFacts] | None = None, *, single_rounds: bool = False
) -> dict[str, Group]:
    """Return the groups by name: rounds by index, others in alphabetical order, and last those that are not given.

    ``facts`` are the facts about tasks by name. A round with several change types is in the group of each of them. With
    ``single_rounds`` the rounds are of that mode.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> records = [RoundRecord(task=task, agent="a", attempt=1, round="r1", index=1, declared_rounds=2,
    ...     outcome="passed") for task in "tu"]
    >>> facts = {"t": TaskFacts(rounds=("r1", "r2"), activity="Migration")}
    >>> {name: (group.tasks, group.dataset_score) for name, group in breakdown(records, "activity", facts).items()}
    {'Migration': (1, 50.0), 'not given': (1, 50.0)}
    >>> [(name, group.dataset_score) for name, group in breakdown(records, "round").items()]
    [('1', 100.0), ('2', 0.0)]
    """
    group = _single_group if single_rounds else _group
    return {name: group(grid) for name, grid in group_grids(rounds, by, facts).items()}


def group_grids(rounds: Rounds, by: Dimension, facts: Mapping[str, TaskFacts] | None = None) -> dict[str, Grid]:
    """Return the rounds of each group, in the order of :func:`breakdown`."""
    parts: dict[str, list[TaskRounds]] = defaultdict(list)
    for task in as_grid(rounds).tasks:
        for name, indices in _groups(task, by, (facts or {}).get(task.task)).items():
            parts[name].append(narrowed(task, tuple(indices)))
    order = sorted(parts, key=lambda name: (name == NOT_GIVEN, int(name) if by == "round" else 0, name))
    return {name: Grid(tuple(parts[name])) for name in order}


def _groups(task: TaskRounds, by: Dimension, facts: TaskFacts | None) -> dict[str, list[int]]:
    """Return the indices of a task's rounds by the group that they are in."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index in task.indices:
        for name in _names(task, index, by, facts):
            groups[name].append(index)
    return groups


def _names(task: TaskRounds, index: int, by: Dimension, facts: TaskFacts | None) -> tuple[str, ...]:
    match by:
        case "task":
            return (task.task,)
        case "round":
            return (str(index),)
        case "change":
            return (facts.changes(index) if facts else ()) or (NOT_GIVEN,)
        case _:
            value: str = getattr(facts, by, "")
            return (value or NOT_GIVEN,)


def _group(grid: Grid) -> Group:
    return Group(
        tasks=len(grid.tasks),
        rounds=sum(len(task.indices) for task in grid.tasks),
        dataset_score=dataset_score(grid),
        case_score=case_score(grid),
        pinned_case_score=pinned_case_score(grid),
        avg_rounds=avg_rounds(grid),
        perfect_tasks=perfect_tasks(grid) if grid.decided().tasks else None,
        mt_at_k=mt_at_k(grid),
        decided_tasks=len(grid.decided().tasks),
    )


def _single_group(grid: Grid) -> Group:
    return Group(
        tasks=len(grid.tasks),
        rounds=sum(len(task.indices) for task in grid.tasks),
        dataset_score=None,
        case_score=None,
        pinned_case_score=None,
        avg_rounds=avg_rounds(grid),
        perfect_tasks=None,
        mt_at_k=None,
        sr=sr(grid),
        sr_macro=sr_macro(grid),
        decided_tasks=len(grid.decided().tasks),
    )
