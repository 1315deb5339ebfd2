"""Correlate process with outcome, paired by task, with the number of points and a bootstrapped interval."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

#: Resamples of the bootstrap, and the seed of its random numbers.
RESAMPLES = 10_000
SEED = 0

#: RigorScore and outcome, by agent and task.
Pairs = Mapping[str, Mapping[str, tuple[float, float]]]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r over ``n`` points."""

    r: float
    n: int
    tasks: int
    interval: tuple[float, float] | None
    """The interval that holds 95 % of the resamples; None for fewer than three tasks."""


def within_agent(pairs: Mapping[str, Point]) -> Correlation | None:
    """Correlate over the tasks of one agent; None for fewer than two tasks, or where one side does not vary.

    >>> within_agent({"a": (0.1, 0.2), "b": (0.5, 0.6), "c": (0.9, 1.0)}).r > 0.999
    True
    """
    return _bootstrapped({task: [point] for task, point in pairs.items()})


def within_tasks(pairs: Pairs) -> Correlation | None:
    """Correlate over all agents how far each is above or below the mean of all agents at the same task.

    That removes the influence of how hard a task is. Tasks that only one agent attempted are left out.
    """
    tasks: dict[str, list[Point]] = {}
    for points in pairs.values():
        for task, point in points.items():
            tasks.setdefault(task, []).append(point)
    centred = {}
    for task, found in tasks.items():
        if len(found) > 1:
            process, outcome = fmean(point[0] for point in found), fmean(point[1] for point in found)
            centred[task] = [(point[0] - process, point[1] - outcome) for point in found]
    return _bootstrapped(centred)


def _bootstrapped(tasks: Mapping[str, Sequence[Point]]) -> Correlation | None:
    points = [point for found in tasks.values() for point in found]
    r = _pearson(points)
    if r is None:
        return None
    interval = _interval(list(tasks.values()), _pearson) if len(tasks) > 2 else None
    return Correlation(r, len(points), len(tasks), interval)


def _interval(
    groups: Sequence[Sequence[Point]], statistic: Callable[[Sequence[Point]], float | None]
) -> tuple[float, float] | None:
    generator = random.Random(SEED)
    found = []
    for _ in range(RESAMPLES):
        sample = [point for group in generator.choices(groups, k=len(groups)) for point in group]
        value = statistic(sample)
        if value is not None:  # A sample may consist of one task only.
            found.append(value)
    found.sort()
    if len(found) < RESAMPLES / 2:
        return None
    return found[int(0.025 * (len(found) - 1))], found[int(0.975 * (len(found) - 1) + 0.5)]


def _pearson(points: Sequence[Point]) -> float | None:
    """Return Pearson's correlation; None where one side does not vary."""
    if len(points) < 2:
        return None
    left, right = fmean(point[0] for point in points), fmean(point[1] for point in points)
    above = [(x - left, y - right) for x, y in points]
    scale = math.sqrt(sum(x * x for x, _ in above) * sum(y * y for _, y in above))
    if scale <= 1e-9:
        return None
    return max(-1.0, min(1.0, sum(x * y for x, y in above) / scale))
