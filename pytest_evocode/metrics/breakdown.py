"""Scores, and where the time went, by what tasks or rounds have in common, such as an activity or a kind of change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from pytest_evocode.metrics.grid import Grid, Rounds, TaskRounds, as_grid, narrowed, was_begun
from pytest_evocode.metrics.scores import (
    avg_rounds,
    case_score,
    dataset_score,
    mt_at_k,
    perfect_tasks,
    pinned_case_score,
    sr,
    sr_macro,
    whole_tasks,
)
from pytest_evocode.results.phases import PHASES
from pytest_evocode.results.records import RoundRecord, TaskFacts

Dimension = Literal["task", "round", "activity", "interaction", "change", "category"]
PARTS_OF_TASKS: tuple[Dimension, ...] = ("round", "change")
"""Those by which a task's rounds are in several groups."""
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
    """None by round and by kind of change: it is of whole chains, which failures outside of such a group end, too."""
    sr: float | None = None
    sr_macro: float | None = None
    decided_tasks: int = 0
    """How many tasks have rounds that a reward decides, which passed rounds are counted over."""
    whole_tasks: int = 0
    """How many of them Perfect Tasks is over; see :class:`~pytest_evocode.metrics.scores.Scores`."""


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
    of_chains = not single_rounds and by not in PARTS_OF_TASKS
    return {name: _group(grid, single_rounds, of_chains) for name, grid in group_grids(rounds, by, facts).items()}


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


def _group(grid: Grid, single: bool, of_chains: bool) -> Group:
    whole = whole_tasks(grid)
    return Group(
        tasks=len(grid.tasks),
        rounds=sum(len(task.indices) for task in grid.tasks),
        dataset_score=None if single else dataset_score(grid),
        case_score=None if single else case_score(grid),
        pinned_case_score=None if single else pinned_case_score(grid),
        avg_rounds=avg_rounds(grid),
        perfect_tasks=perfect_tasks(grid) if whole and not single else None,
        mt_at_k=mt_at_k(grid) if of_chains else None,
        sr=sr(grid) if single else None,
        sr_macro=sr_macro(grid) if single else None,
        decided_tasks=len(grid.decided().tasks),
        whole_tasks=0 if single else whole,
    )


@dataclass(frozen=True, slots=True)
class Duration:
    """What one phase took in the rounds where it is known; seconds."""

    median: float
    mean: float
    total: float
    known: int
    """In how many rounds it is known: where a phase did not happen, or the record does not say, it is not."""


@dataclass(frozen=True, slots=True)
class Times:
    """Where the time of some rounds went."""

    rounds: int
    """How many rounds were begun."""
    silent: int
    """How many of them took a time of which their records do not say where it went, because they are older."""
    durations: Mapping[str, Duration]
    """By name: ``agent``, ``verifier``, ``waiting`` and ``overhead``, and the other phases of records; without those
    that are known of no round.
    """


def times(records: Iterable[RoundRecord]) -> Times:
    """Return where the time of some rounds went; those that were not reached took none.

    ``agent`` is the agent's turn, ``verifier`` the suite with what was brought into its environment and read from it,
    ``waiting`` the suite's for a slot, and ``overhead`` what the round cost where the agent works beside its setup and
    the turn.

    >>> from pytest_evocode.results.phases import Phases
    >>> rounds = [RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=3,
    ...     outcome="passed", agent_seconds=seconds, phases=phases)
    ...     for index, seconds, phases in [(1, 4.0, Phases(snapshot=0.5)), (2, 2.0, None), (3, 9.0, None)]]
    >>> found = times(rounds)
    >>> found.rounds, found.silent, found.durations["agent"].median, found.durations["overhead"].known
    (3, 2, 4.0, 1)
    """
    begun = list(filter(was_begun, records))
    phases = [each.phases for each in begun if each.phases is not None]
    found = {
        "agent": _duration(each.agent_seconds for each in begun),
        "verifier": _duration(each.verifier_seconds for each in begun),
        "waiting": _duration(each.waiting for each in phases),
        "overhead": _duration(each.overhead_seconds for each in phases),
    }
    for name in PHASES:
        found.setdefault(name, _duration(getattr(each, name) for each in phases))
    silent = sum(each.phases is None and (each.agent_seconds, each.verifier_seconds) != (None, None) for each in begun)
    return Times(len(begun), silent, {name: each for name, each in found.items() if each is not None})


def times_by(rounds: Rounds, by: Dimension, facts: Mapping[str, TaskFacts] | None = None) -> dict[str, Times]:
    """Return where the time went by group, as :func:`~pytest_evocode.metrics.breakdown.breakdown` has the groups."""
    return {
        name: times(record for task in grid.tasks for record in task.records)
        for name, grid in group_grids(rounds, by, facts).items()
    }


def _duration(values: Iterable[float | None]) -> Duration | None:
    known = [value for value in values if value is not None]
    return Duration(median(known), fmean(known), sum(known), len(known)) if known else None
