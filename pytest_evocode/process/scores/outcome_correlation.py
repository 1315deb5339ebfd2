"""Correlate process with outcome, paired by task, with the number of points and a bootstrapped interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pytest_evocode.metrics.intervals import Interval, bootstrap

#: RigorScore and outcome, by agent and task.
Pairs = Mapping[str, Mapping[str, tuple[float, float]]]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r over ``n`` points."""

    r: float
    n: int
    tasks: int
    interval: Interval | None
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
    r = _pearson(list(tasks.values()))
    if r is None:
        return None
    interval = bootstrap(list(tasks.values()), _pearson) if len(tasks) > 2 else None
    return Correlation(r, sum(map(len, tasks.values())), len(tasks), interval)


# Not statistics.correlation, which takes noise from rounding for variation.
def _pearson(groups: Sequence[Sequence[Point]]) -> float | None:
    """Return Pearson's correlation; None where one side does not vary."""
    points = [point for group in groups for point in group]
    if len(points) < 2:
        return None
    left, right = fmean(point[0] for point in points), fmean(point[1] for point in points)
    above = [(x - left, y - right) for x, y in points]
    scale = math.sqrt(sum(x * x for x, _ in above) * sum(y * y for _, y in above))
    if scale <= 1e-9:
        return None
    return max(-1.0, min(1.0, sum(x * y for x, y in above) / scale))
