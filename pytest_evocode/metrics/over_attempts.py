"""What several attempts tell: the scores' mean, error and variance, and what k of them are expected to reach.

An attempt's share at a task is the unit of the former: the rounds of one attempt depend on each other, and the attempts
at one task share how hard it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from statistics import fmean
from typing import Literal

from pytest_evocode.metrics.grid import Grid, Rounds, TaskRounds, as_grid
from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval, interval
from pytest_evocode.metrics.scores import per_task
from pytest_evocode.metrics.statistics.intervals import hierarchical_interval
from pytest_evocode.metrics.statistics.variance import (
    Spread,
    VarianceComponents,
    rerun_error,
    spread,
    variance_components,
)
from pytest_evocode.metrics.task_values import TaskValue, case_ratio, has_cases, passed
from pytest_evocode.results.records import RoundRecord

Headline = Literal["dataset_score", "case_score", "sr"]
METHOD = "hierarchical bootstrap"


@dataclass(frozen=True, slots=True)
class OverAttempts:
    """One score, 0 to 100, of an agent that has made several attempts."""

    by_attempt: Mapping[int, float]
    """The score of each attempt over all tasks, by number; without attempts that not every task has in full."""
    spread: Spread | None
    """Mean, standard deviation and standard error of these; None below two of them."""
    components: VarianceComponents | None
    """The variance of the attempts' scores at a task, within tasks and between them, in points squared; None where no
    task has two attempts, and for one task.
    """
    rerun_error: float | None
    """The standard error of the score, were the same tasks attempted anew as often, from the variance within tasks. It
    rests on all tasks' attempts, and so is steadier than the one of ``spread``, which rests on a few numbers.
    """
    interval: Interval | None
    """95 %, over tasks and attempts together; None below :data:`~pytest_evocode.metrics.intervals.FEWEST_TASKS`."""


def over_attempts(grid: Grid, *, single_round: bool = False) -> dict[Headline, OverAttempts]:
    """Return the headline scores of an agent over its attempts; empty where it made one at each task.

    Args:
        grid: The rounds of one agent in one mode.
        single_round: Whether that mode is single-round, whose score is SR.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> grid = Grid.of(RoundRecord(task=task, agent="a", attempt=attempt, round="r1", index=1, declared_rounds=1,
    ...     outcome=outcome) for task, attempt, outcome in
    ...     [("t", 1, "passed"), ("t", 2, "passed"), ("u", 1, "passed"), ("u", 2, "failed")])
    >>> found = over_attempts(grid)["dataset_score"]
    >>> found.by_attempt, found.spread.se, found.rerun_error
    ({1: 100.0, 2: 50.0}, 25.0, 25.0)
    """
    if all(len(task.attempts) < 2 for task in grid.tasks):
        return {}
    found: dict[Headline, OverAttempts] = {}
    if (decided := grid.decided()).tasks:
        found["sr" if single_round else "dataset_score"] = _over_attempts(decided, _passed, by_rounds=single_round)
    with_cases = tuple(task for task in grid.tasks if has_cases(task))
    if with_cases and not single_round:
        reporting = {task.task: task.known_suites.cases for task in with_cases}

        def ratio(record: RoundRecord) -> float | None:
            found = case_ratio(record)
            return 0.0 if found is None and record.index in reporting[record.task] else found

        found["case_score"] = _over_attempts(Grid(with_cases), ratio)
    return found


def _passed(record: RoundRecord) -> float:
    return float(record.passed)


def _over_attempts(
    grid: Grid, value: Callable[[RoundRecord], float | None], *, by_rounds: bool = False
) -> OverAttempts:
    """Return a score over attempts: the mean over tasks, or ``by_rounds`` over the rounds of all tasks together."""
    tasks = [(task, shares) for task in grid.tasks if (shares := attempt_shares(task, value))]
    weights = [float(len(task.indices)) if by_rounds else 1.0 for task, _ in tasks]
    whole = [{number for number in shares if set(task.indices) <= set(task.own(number))} for task, shares in tasks]
    by_attempt = {
        number: sum(weight * shares[number] for weight, (_, shares) in zip(weights, tasks, strict=True)) / sum(weights)
        for number in sorted(set.intersection(*whole))
    }
    groups = [list(shares.values()) for _, shares in tasks]
    interval = None
    if len(groups) >= FEWEST_TASKS:
        interval = Interval(*hierarchical_interval(groups, 0, 100, weights=weights), METHOD)
    return OverAttempts(
        by_attempt,
        spread(list(by_attempt.values())),
        variance_components(groups),
        rerun_error(groups, weights),
        interval,
    )


def attempt_shares(task: TaskRounds, value: Callable[[RoundRecord], float | None] = _passed) -> dict[int, float]:
    """Return the mean of a value over the rounds that count, 0 to 100, by attempt; without those that have none.

    Without ``value`` it is the share of passed rounds. Rounds of which it is None are left out.
    """
    found = {}
    for number, attempt in task.attempts.items():
        own = [index for index in task.indices if index in task.own(number)]
        values = [value(attempt[index]) if index in attempt else 0.0 for index in own]
        if known := [each for each in values if each is not None]:
            found[number] = 100 * sum(known) / len(known)
    return found


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
    """Return pass@k and pass^k for each k, up to the largest number of attempts that there are at a round or task.

    Both are estimated without bias from the n attempts that were made. They are means over tasks of either the rounds
    of a task or the task as a whole, which an attempt passes that passes all of its rounds. A round that was not
    reached counts as not passed.

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
    whole = [task.attempts[number] for number in task.whole]
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
