"""Survival: the share of what is followed that gets past each step, where some is lost from sight on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from operator import mul
from random import Random
from statistics import NormalDist

from pytest_evocode.metrics.statistics.intervals import quantile


@dataclass(frozen=True, slots=True)
class LifeTableRow:
    """One step of those that are followed, a row of a life table; numbers are fractions where several count as one."""

    at_risk: float = 0.0
    """How many took the step, having got past all before it."""
    failed: float = 0.0
    """How many of them did not get past it."""
    censored: float = 0.0
    """How many got as far and were lost from sight before it; they are not at risk there."""

    def __add__(self, other: LifeTableRow) -> LifeTableRow:
        """Return the step of both together."""
        return LifeTableRow(self.at_risk + other.at_risk, self.failed + other.failed, self.censored + other.censored)


@dataclass(frozen=True, slots=True)
class Survival:
    """The estimate at one step."""

    share: float
    """Of all, those that get past this step and all before it, 0 to 1."""
    low: float | None
    """The lower end of the 95 % interval; None, like ``high``, where the share is 0 or 1."""
    high: float | None


def kaplan_meier(steps: Mapping[int, LifeTableRow], confidence: float = 0.95) -> dict[int, Survival]:
    """Return the Kaplan-Meier estimate by step, up to the last that anything is known of.

    S(i) is the product of 1 - failed / at risk over the steps up to i (E. Kaplan and P. Meier 1958, Nonparametric
    estimation from incomplete observations). Its interval is that of log(-log S), with Greenwood's variance (1926), so
    that it stays within 0 and 1 (J. Kalbfleisch and R. Prentice 1980).

    >>> found = kaplan_meier({1: LifeTableRow(10, failed=2), 2: LifeTableRow(7, failed=1, censored=1)})
    >>> [round(each.share, 3) for each in found.values()]
    [0.8, 0.686]
    >>> round(found[1].low, 3), round(found[1].high, 3)
    (0.409, 0.946)
    """
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    share, greenwood = 1.0, 0.0
    found = {}
    for index, step in sorted(steps.items()):
        if step.at_risk <= 0:
            break
        share *= 1 - step.failed / step.at_risk
        low = high = None
        if share > _NOTHING:
            greenwood += step.failed / (step.at_risk * (step.at_risk - step.failed))
        else:
            share = 0.0
        if 0 < share < 1:
            reach = exp(normal * sqrt(greenwood) / abs(log(share)))
            low, high = share**reach, share ** (1 / reach)
        found[index] = Survival(share, low, high)
        if not share:
            break
    return found


_NOTHING = 1e-9
"""What rounding leaves of a share of 0."""


def added(tables: Iterable[Mapping[int, LifeTableRow]]) -> dict[int, LifeTableRow]:
    """Return the steps of all tables together.

    >>> added([{1: LifeTableRow(2, failed=1)}, {1: LifeTableRow(1), 2: LifeTableRow(1)}])
    {1: LifeTableRow(at_risk=3.0, failed=1.0, censored=0.0), 2: LifeTableRow(at_risk=1.0, failed=0.0, censored=0.0)}
    """
    found: dict[int, LifeTableRow] = {}
    for table in tables:
        for index, step in table.items():
            found[index] = found.get(index, LifeTableRow()) + step
    return dict(sorted(found.items()))


LifeTable = Mapping[int, LifeTableRow]
"""The steps of those that are followed, by number."""


def clustered_intervals(
    clusters: Sequence[LifeTable],
    *,
    unseen: float = 0.5,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> dict[int, tuple[float, float]]:
    """Return the intervals of the Kaplan-Meier estimate by step where what is followed comes in independent clusters.

    Greenwood's variance takes all that are at risk for independent, as the requirements of one task are not. Here the
    clusters get random weights, Dirichlet's, as in the Bayesian bootstrap (A. Lo 1993, A Bayesian bootstrap for
    censored data). To them comes a part of one that was not seen, of the mean size, as in
    :func:`~pytest_evocode.metrics.statistics.intervals.bounded_interval`, whose interval of the first step this is. For
    the upper end nothing of it fails, and for the lower end all of it at the step where that costs most.

    Args:
        clusters: The steps of each.
        unseen: How many clusters at the end of the range are added to those that were seen.
        confidence: How often an interval shall hold the true share.
        resamples: How often to draw.
        seed: Of the random numbers: the same seed gives the same intervals.

    >>> clusters = [{1: LifeTableRow(4, failed=number), 2: LifeTableRow(4 - number)} for number in (0, 0, 1, 1, 2)]
    >>> [[round(end, 1) for end in interval] for interval in clustered_intervals(clusters).values()]
    [[0.5, 0.9], [0.5, 0.9]]
    """
    random = Random(seed)
    steps = {}
    for step in sorted({step for each in clusters for step in each}):
        rows = {place: each[step] for place, each in enumerate(clusters) if step in each and each[step].at_risk > 0}
        if rows:
            steps[step] = [*rows], [row.at_risk for row in rows.values()], [row.failed for row in rows.values()]
    drawn: dict[int, tuple[list[float], list[float]]] = {step: ([], []) for step in steps}
    for _ in range(resamples):
        weights = [random.expovariate(1.0) for _ in clusters]
        extra = random.gammavariate(unseen, 1.0)
        share = kept = upper = 1.0
        for step, (places, at_risk, failed) in steps.items():
            own = [weights[place] for place in places]
            of, part = sum(map(mul, own, at_risk)), sum(map(mul, own, failed))
            more = extra * sum(at_risk) / len(at_risk)
            share *= 1 - part / of
            kept = min(kept, of / (of + more))
            upper *= 1 - part / (of + more)
            drawn[step][0].append(share * kept)
            drawn[step][1].append(upper)
    side = (1 - confidence) / 2
    return {
        step: (max(0.0, quantile(sorted(lows), side)), quantile(sorted(highs), 1 - side))
        for step, (lows, highs) in drawn.items()
    }
