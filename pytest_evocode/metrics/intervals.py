"""Confidence intervals: 95 %, over tasks, because the rounds of one task are not independent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from pytest_evocode.metrics import task_values
from pytest_evocode.metrics.grid import Grid, Rounds, are_of_the_same_rounds, as_grid
from pytest_evocode.metrics.scores import per_task, pinned_case_score, whole_tasks
from pytest_evocode.metrics.statistics.intervals import bounded_interval, t_interval
from pytest_evocode.metrics.task_values import MEANS, TaskValue, reward_share
from pytest_evocode.tasks import RewardStrategy

FEWEST_TASKS = 5
NO_INTERVAL = f"no interval below {FEWEST_TASKS} tasks"
"""Why there is none, for a line under a table and for JSON."""
ALL_EQUAL = "no interval of equal values that nothing bounds"
BOUNDED = "Bayesian bootstrap with half a task at the bound"
STUDENT = "Student's t"
_EQUAL = 1e-9  # Rounding makes equal values differ by less.


@dataclass(frozen=True, slots=True)
class Interval:
    """What holds the true number 95 times in 100, on the scale of the number that the interval belongs to."""

    low: float
    high: float
    method: str
    """What it was found by, such as :data:`BOUNDED`."""


def interval_of_differences(differences: Sequence[float], bound: float | None = 100) -> Interval | None:
    """Return the interval of the mean of per-task differences of two sides; None below :data:`FEWEST_TASKS`.

    Args:
        differences: One for each task that both sides have.
        bound: How large a difference can be, such as 100 of scores; None where nothing bounds it, as of tool calls. Of
            equal differences that nothing bounds there is no interval.

    >>> found = interval_of_differences([10, -5, 0, 20, 15])
    >>> f"{found.low:.1f} to {found.high:.1f}"
    '-4.9 to 20.9'
    """
    return _known(_of_differences(differences, inf if bound is None else bound))


def interval(rounds: Rounds, value: TaskValue, scale: float = 100) -> Interval | None:
    """Return the interval of ``scale`` times the mean over tasks of a value; with a scale of 100 it is from 0 to 1."""
    return _known(_of_mean(rounds, value, scale))


def interval_of_ratio(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the interval, 0 to 100, of a sum over a sum, of independent parts such as tasks, each with both.

    Parts with 0 below count as none; None where there are fewer than :data:`FEWEST_TASKS` others.
    """
    return _known(_of_ratio(pairs))


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value, many times as fast as the exact one of :mod:`statistics`."""
    return sum(values) / len(values)


def intervals(
    rounds: Rounds, single_round: Rounds = (), strategies: Mapping[str, RewardStrategy] | None = None
) -> dict[str, Interval | None]:
    """Return the intervals of all :func:`~pytest_evocode.metrics.scores.scores` that have one; None where it is n/a."""
    return {name: _known(found) for name, found in intervals_or_reasons(rounds, single_round, strategies).items()}


def intervals_or_reasons(
    rounds: Rounds, single_round: Rounds = (), strategies: Mapping[str, RewardStrategy] | None = None
) -> dict[str, Interval | str]:
    """Return the same with the reason in place of None, which is empty where the score itself is n/a."""
    chain, single = as_grid(rounds), as_grid(single_round)
    found: dict[str, Interval | str] = {name: _of_mean(chain, *mean_of) for name, mean_of in MEANS.items()}
    pinned = bool(chain.tasks) and pinned_case_score(chain) is not None
    return {
        **found,
        "pinned_case_score": found["pinned_case_score"] if pinned else "",
        "avg_rounds": found["avg_rounds"] if chain.tasks else _of_mean(single, *MEANS["avg_rounds"]),
        # As a number of tasks, as in the scores.
        "perfect_tasks": _scaled(found["perfect_tasks"], whole_tasks(chain) / 100),
        "mean_reward": _of_mean(chain, partial(reward_share, strategies=strategies)),
        "reliability": _of_ratio(per_task(chain, task_values.all_of_any)),
        "sr": _of_ratio(per_task(single, task_values.passed_of)),
        "sr_macro": _of_mean(single, task_values.passed_share),
        "gap": _of_gap(chain, single),
    }


def _known(found: Interval | str) -> Interval | None:
    return found if isinstance(found, Interval) else None


def _scaled(found: Interval | str, scale: float) -> Interval | str:
    return found if isinstance(found, str) else Interval(scale * found.low, scale * found.high, found.method)


def _of_mean(rounds: Rounds, value: TaskValue, scale: float = 100) -> Interval | str:
    values = [float(each) for each in per_task(rounds, value)]
    # A reward is what its suite says, which may be beyond 0 and 1.
    high = 1.0 if scale == 100 and max(values, default=0) <= 1 else inf
    return _scaled(_found(values, low=0.0 if min(values, default=0) >= 0 else -inf, high=high), scale)


def _of_ratio(pairs: Sequence[tuple[float, float]]) -> Interval | str:
    """Return the interval of a sum over a sum; what is nothing of nothing tells nothing."""
    some = [(part, whole) for part, whole in pairs if whole]
    return _scaled(_found([part for part, _ in some], sizes=[whole for _, whole in some]), 100)


def _of_gap(chain: Grid, single: Grid) -> Interval | str:
    """Return the interval of a ratio less a mean, of which each task has its share, as in the delta method."""
    if not chain.tasks or not are_of_the_same_rounds(chain, single):
        return ""
    chain, single = chain.decided(), single.decided()
    through = {task.task: share for task in chain.tasks if (share := task_values.fail_stop_share(task)) is not None}
    pairs = {task.task: pair for task in single.tasks if (pair := task_values.passed_of(task)) is not None}
    if not through or through.keys() != pairs.keys():
        return ""
    passed, rounds = task_values.totals(pairs.values())
    rate, size = passed / rounds, rounds / len(pairs)
    values = [rate + (part - rate * whole) / size - through[task] for task, (part, whole) in pairs.items()]
    return _scaled(_of_differences(values, 1), 100)


def _of_differences(values: Sequence[float], bound: float) -> Interval | str:
    """Return the interval of a mean of differences: Student's t, or where most tasks are tied as of bounded values.

    For then too few values would tell how large the differences are of those tasks that are not.
    """
    tied = sum(abs(value) < _EQUAL for value in values)
    few = 2 * tied > len(values) or max(values, default=0) - min(values, default=0) < _EQUAL
    # One in a sum of ratios can be beyond the bound, where its task is larger than the others.
    low, high = (min([-bound, *values]), max([bound, *values])) if few else (-inf, inf)
    return _within(_found(values, low=low, high=high), -bound, bound)


def _found(
    values: Sequence[float], *, low: float = 0.0, high: float = 1.0, sizes: Sequence[float] | None = None
) -> Interval | str:
    """Return the interval of the mean of some tasks' values, or of the ratio to their sizes, or why there is none."""
    if len(values) < FEWEST_TASKS:
        return NO_INTERVAL if values else ""
    if -inf < low and high < inf:
        return Interval(*bounded_interval(values, low, high, sizes=sizes), BOUNDED)
    if max(values) - min(values) < _EQUAL:
        return ALL_EQUAL
    return _within(Interval(*t_interval(values), STUDENT), low, high)


def _within(found: Interval | str, low: float, high: float) -> Interval | str:
    return found if isinstance(found, str) else Interval(max(low, found.low), min(high, found.high), found.method)
