"""The headline scores over several attempts: their mean and standard error, and the variance within and between tasks.

An attempt's share at a task is the unit here: the rounds of one attempt depend on each other, and the attempts at one
task share how hard it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_evocode.metrics.grid import Grid, TaskRounds
from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval
from pytest_evocode.metrics.statistics.hierarchical import hierarchical_interval
from pytest_evocode.metrics.statistics.variance import (
    Spread,
    VarianceComponents,
    rerun_error,
    spread,
    variance_components,
)
from pytest_evocode.metrics.task_values import case_ratio, has_cases
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
