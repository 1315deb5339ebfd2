"""What k attempts are expected to reach: pass@k, that any of them passes, and pass^k, that all of them do.

Both are estimated without bias from the n attempts that were made, for every k up to n. They are means over tasks of
either the rounds of a task or the task as a whole, which an attempt passes that passes all of its rounds. A round that
was not reached counts as not passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from statistics import fmean
from typing import Literal

from pytest_evocode.metrics.grid import Grid, Rounds, TaskRounds, as_grid
from pytest_evocode.metrics.intervals import Interval, interval
from pytest_evocode.metrics.scores import per_task
from pytest_evocode.metrics.task_values import TaskValue, passed

Unit = Literal["round", "task"]
"""What an attempt passes or not."""


@dataclass(frozen=True, slots=True)
class PassAtK:
    """Both estimates for one k, 0 to 100."""

    k: int
    pass_at_k: float
    """The chance that at least one of k attempts passes."""
    pass_hat_k: float
    """pass^k, the chance that all k attempts pass."""
    tasks: int
    """How many tasks have k attempts, and so an estimate; the means are over them."""


def any_of(n: int, c: int, k: int) -> float:
    """Return the chance that k attempts, drawn from n of which c passed, have one that passed: 1 - C(n-c,k) / C(n,k).

    It is exact for any n, as numbers of ways are added and divided as integers. Source: Chen et al. 2021 (HumanEval),
    equation 1.

    Raises:
        ValueError: k is not from 1 to n, or c not from 0 to n.

    >>> [round(any_of(4, 1, k), 2) for k in (1, 2, 3, 4)]
    [0.25, 0.5, 0.75, 1.0]
    """
    ways = _ways(n, c, k)
    return (ways - comb(n - c, k)) / ways


def all_of(n: int, c: int, k: int) -> float:
    """Return the chance that k attempts, drawn from n of which c passed, all passed: C(c,k) / C(n,k).

    It is exact for any n. Source: Yao et al. 2024 (tau-bench).

    Raises:
        ValueError: k is not from 1 to n, or c not from 0 to n.

    >>> [round(all_of(4, 3, k), 2) for k in (1, 2, 3, 4)]
    [0.75, 0.5, 0.25, 0.0]
    """
    ways = _ways(n, c, k)
    return comb(c, k) / ways


def _ways(n: int, c: int, k: int) -> int:
    if not (1 <= k <= n and 0 <= c <= n):
        raise ValueError(f"k={k} of n={n} attempts of which c={c} passed: k must be from 1 to n, and c from 0 to n")
    return comb(n, k)


def pass_at_k(rounds: Rounds, unit: Unit) -> list[PassAtK]:
    """Return both estimates for each k, up to the largest number of attempts that there are at a round or task.

    Where tasks have different numbers of attempts, a large k has an estimate at some of them only. A round counts over
    the attempts that it was selected for; a task over those that all of its rounds were selected for.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> rows = [(1, 1, "passed"), (1, 2, "passed"), (2, 1, "passed"), (2, 2, "failed")]
    >>> records = [RoundRecord(task="t", agent="a", attempt=attempt, round=f"r{i}", index=i, declared_rounds=2,
    ...     outcome=outcome) for attempt, i, outcome in rows]
    >>> [(found.pass_at_k, found.pass_hat_k) for found in pass_at_k(records, "round")]
    [(75.0, 75.0), (100.0, 50.0)]
    >>> [(found.pass_at_k, found.pass_hat_k) for found in pass_at_k(records, "task")]
    [(50.0, 50.0), (100.0, 0.0)]
    """
    grid = as_grid(rounds).decided()
    found = []
    for k, values in _values(grid, unit):
        at, hat = (per_task(grid, value) for value in values)
        found.append(PassAtK(k, 100 * fmean(at), 100 * fmean(hat), len(at)))
    return found


def pass_at_k_intervals(rounds: Rounds, unit: Unit) -> list[tuple[Interval | None, Interval | None]]:
    """Return the 95 % intervals of pass@k and pass^k for each k; None where there are too few tasks."""
    grid = as_grid(rounds).decided()
    return [(interval(grid, at), interval(grid, hat)) for _, (at, hat) in _values(grid, unit)]


def counts(task: TaskRounds, unit: Unit) -> list[tuple[int, int]]:
    """Return how many attempts there are, n, and how many of them passed, c, of each round or of the whole task."""
    if unit == "round":
        return [(task.tries(index), task.passes(index)) for index in task.indices]
    whole = [attempt for number, attempt in task.attempts.items() if set(task.indices) <= set(task.own(number))]
    return [(len(whole), sum(all(passed(attempt, index) for index in task.indices) for attempt in whole))]


def _values(grid: Grid, unit: Unit) -> Iterator[tuple[int, tuple[TaskValue, TaskValue]]]:
    """Yield each k with what pass@k and pass^k are the means of."""
    counted = {(task.agent, task.task): counts(task, unit) for task in grid.tasks}
    for k in range(1, 1 + max((n for of_task in counted.values() for n, _ in of_task), default=0)):
        yield k, (partial(_of_task, any_of, counted, k), partial(_of_task, all_of, counted, k))


def _of_task(
    estimator: Callable[[int, int, int], float],
    counted: Mapping[tuple[str, str], Sequence[tuple[int, int]]],
    k: int,
    task: TaskRounds,
) -> float | None:
    found = [estimator(n, c, k) for n, c in counted[task.agent, task.task] if n >= k]
    return fmean(found) if found else None
