"""How values of several attempts vary, and what follows for a comparison: the difference it shows, the tasks it takes.

Power is that of the two-sided paired t-test, which can be computed, at the largest p-value up to alpha that the
permutation test of so many pairs can come to. From 7 pairs on the two find normal differences equally often, within
2 points in 100; at 6 pairs, which must all differ in the same direction, power is that of the permutation test.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erf, exp, fsum, lgamma, log, sqrt
from statistics import NormalDist, fmean, stdev

from pytest_evocode.metrics.statistics.intervals import first_at, t_quantile
from pytest_evocode.metrics.statistics.significance import smallest_p_value


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean of independent values of one thing, and how far it is off by chance."""

    mean: float
    sd: float
    """The standard deviation of the values, with n - 1 in the denominator."""
    se: float
    """The standard error of the mean: ``sd / sqrt(n)``."""
    count: int


def spread(values: Sequence[float]) -> Spread | None:
    """Return mean, standard deviation and standard error; None for fewer than two values, which tell nothing.

    >>> spread([60.0, 70.0, 65.0])
    Spread(mean=65.0, sd=5.0, se=2.886751345948129, count=3)
    """
    if len(values) < 2:
        return None
    deviation = stdev(values)
    return Spread(fmean(values), deviation, deviation / sqrt(len(values)), len(values))


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """The variance of a value, such as an attempt's share of passed rounds, split into two parts that add up to it."""

    within: float
    """Between the values of one group, such as the attempts at one task."""
    between: float
    """Between the groups' expected values; at least 0."""
    groups: int
    values: int
    """How many values there are in all groups together."""

    @property
    def within_share(self) -> float | None:
        """The share of the variance that is within groups, which is 1 - ICC; None where nothing varies.

        >>> VarianceComponents(within=1.0, between=3.0, groups=7, values=14).within_share
        0.25
        """
        total = self.within + self.between
        return self.within / total if total else None


def variance_components(groups: Sequence[Sequence[float]]) -> VarianceComponents | None:
    """Return the variance components of a one-way random-effects model, by analysis of variance.

    The method of moments for groups of any sizes: ``within`` is the mean square within groups, and ``between`` is
    (mean square between - within) / n0 with n0 = (n - sum n_t^2 / n) / (groups - 1), or 0 where that is negative
    (Searle, Casella and McCulloch, Variance Components, 1992, chapter 3). For groups of one size that is what a mixed
    model fitted by REML gives, except where ``between`` is cut off at 0: there ``within`` stays unbiased.

    Returns:
        None for fewer than two groups, and where no group has two values: the parts cannot be told apart.

    >>> variance_components([[1.0, 3.0], [5.0, 7.0]])
    VarianceComponents(within=2.0, between=7.0, groups=2, values=4)
    >>> variance_components([[1.0], [5.0]]) is None
    True
    """
    groups = [group for group in groups if group]
    sizes = [len(group) for group in groups]
    count = sum(sizes)
    if len(groups) < 2 or count == len(groups):
        return None
    means = [fmean(group) for group in groups]
    mean = fsum(value for group in groups for value in group) / count
    pairs = list(zip(groups, means, strict=True))
    within = fsum((value - center) ** 2 for group, center in pairs for value in group) / (count - len(groups))
    square_between = fsum(len(group) * (center - mean) ** 2 for group, center in pairs) / (len(groups) - 1)
    typical_size = (count - sum(size * size for size in sizes) / count) / (len(groups) - 1)
    between = max(0.0, (square_between - within) / typical_size)
    return VarianceComponents(within, between, len(groups), count)


def rerun_error(groups: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> float | None:
    """Return the standard error of the mean over groups, were only the values in the same groups to come anew.

    The variance within groups is pooled over all of them, so two values in some groups are enough.

    Args:
        groups: The values of each group, at least one each.
        weights: How much each group counts; None is all the same.

    Returns:
        None where no group has two values.

    >>> rerun_error([[1.0, 3.0], [5.0, 7.0]])
    0.7071067811865476
    """
    weights = [1.0] * len(groups) if weights is None else weights
    freedom = sum(map(len, groups)) - len(groups)
    if not freedom:
        return None
    within = fsum((value - fmean(group)) ** 2 for group in groups for value in group) / freedom
    shares = fsum(weight**2 / len(group) for group, weight in zip(groups, weights, strict=True))
    return sqrt(within * shares) / fsum(weights)


MOST_PAIRS = 1_000
MOST_ATTEMPTS = 1_000
_POINTS = 200


CONFIDENCE = 0.9
"""How often an upper bound of a variance is to be at least the true one."""


@dataclass(frozen=True, slots=True)
class MeanSquare:
    """An estimate of a variance, and how often that is in the variance of the difference of two sides."""

    value: float
    freedom: int
    """Its degrees of freedom."""
    fixed: float
    """How often whatever the number of attempts."""
    by_attempt: float = 0.0
    """How often divided by the number of attempts."""


@dataclass(frozen=True, slots=True)
class PairedVariance:
    """The variance of the difference of two sides at a task, in two parts (Miller 2024, section 5), and its bound."""

    squares: tuple[MeanSquare, ...]
    """Independent of each other."""

    @property
    def between(self) -> float:
        """Between tasks, of the expected difference; more attempts do not change it, and it may come out below 0."""
        return fsum(each.fixed * each.value for each in self.squares)

    @property
    def within(self) -> float:
        """Of one attempt of either side, at one task; k attempts divide it by k."""
        return fsum(each.by_attempt * each.value for each in self.squares)

    @property
    def is_cut(self) -> bool:
        """Whether the variance between tasks was measured, and came out as nothing beside the one of attempts."""
        return any(each.fixed for each in self.squares) and self.within > 0 and self.between <= 1e-9 * self.within

    def sd(self, attempts: float) -> float:
        """Return the standard deviation of the differences with so many attempts of either side at each task."""
        return sqrt(max(0.0, self.between + self.within / attempts))

    def upper_sd(self, attempts: float) -> float:
        """Return an upper bound of the same, which falls as attempts are added.

        To the variance comes the root of the sum of what its parts may be off by, each by the bound of its chi-squared
        distribution (F. Graybill and C.-M. Wang 1980, Confidence intervals on nonnegative linear combinations of
        variances; N. Ting et al. 1990 where a part is taken off).

        >>> variance = PairedVariance((MeanSquare(100, freedom=6, fixed=1),))
        >>> round(variance.upper_sd(attempts=1) / variance.sd(attempts=1), 2)
        1.65
        """
        off = 0.0
        for each in self.squares:
            weight = each.fixed + each.by_attempt / attempts
            edge = chi_squared_quantile(1 - CONFIDENCE if weight > 0 else CONFIDENCE, each.freedom)
            off += (weight * each.value * (each.freedom / edge - 1)) ** 2
        return sqrt(max(0.0, self.between + self.within / attempts + sqrt(off)))


def chi_squared_quantile(share: float, freedom: int) -> float:
    """Return what a chi-squared variable stays below with a probability of ``share``, by Wilson and Hilferty (1931).

    >>> round(chi_squared_quantile(0.1, 6), 2), round(chi_squared_quantile(0.9, 6), 2)
    (2.21, 10.62)
    """
    part = 2 / (9 * freedom)
    return freedom * max(1e-9, 1 - part + NormalDist().inv_cdf(share) * sqrt(part)) ** 3


def power(effect: float, pairs: int, alpha: float = 0.05) -> float:
    """Return the probability that a t-test finds a difference of ``effect`` standard deviations.

    The integral over how the standard deviation of the sample can come out, of the normal probability to reach the
    critical value with it, by Simpson's rule.

    >>> round(power(0.5, 26), 3)
    0.688
    """
    freedom = pairs - 1
    critical = t_quantile(1 - alpha / 2, freedom)
    shift = effect * sqrt(pairs)
    spread = 8 / sqrt(2 * freedom)
    low = max(1e-9, 1 - spread)
    step = (1 + spread - low) / _POINTS
    total = 0.0
    for place in range(_POINTS + 1):
        ratio = low + place * step  # The standard deviation of the sample over the true one.
        density = exp(
            log(2) + freedom / 2 * log(freedom / 2) - lgamma(freedom / 2) + (freedom - 1) * log(ratio)
            - freedom * ratio * ratio / 2
        )  # fmt: skip
        weight = 1 if place in (0, _POINTS) else 4 if place % 2 else 2
        total += weight * density * (_below(shift - critical * ratio) + _below(-shift - critical * ratio))
    return total * step / 3


def detectable_difference(sd: float, pairs: int, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Return the smallest difference that is found with a probability of ``power``.

    Args:
        sd: The standard deviation of the differences of the pairs.
        pairs: How many there are.
        alpha: At which p-value a difference counts as found.
        power: How often it is to be found.

    Returns:
        None where even pairs that all differ in the same direction have a p-value above alpha.

    >>> round(detectable_difference(24.4, 7), 1)
    31.5
    """
    smallest = smallest_p_value(min(pairs, 60))
    return None if smallest > alpha else sd * _detectable_effect(pairs, alpha // smallest * smallest, power)


def fewest(most: int, is_enough: Callable[[int], bool]) -> int | None:
    """Return the smallest number that is enough, where larger ones are too; None for more than ``most``.

    >>> fewest(1000, lambda tasks: tasks * tasks >= 50), fewest(7, lambda tasks: tasks * tasks >= 50)
    (8, None)
    """
    found = 1 + bisect_left(range(1, most + 1), True, key=is_enough)
    return found if found <= most else None


def _below(value: float) -> float:
    """Return the probability of the standard normal distribution below a value."""
    return (1 + erf(value / sqrt(2))) / 2


@lru_cache(maxsize=1000)
def _detectable_effect(pairs: int, alpha: float, wanted: float) -> float:
    """Return the difference, in standard deviations, that is found with the wanted probability."""
    if alpha < 2 * smallest_p_value(min(pairs, 60)):
        # The permutation test finds only what differs in the same direction in each pair.
        return float(NormalDist().inv_cdf(wanted ** (1 / pairs)))
    return first_at(wanted, lambda effect: power(effect, pairs, alpha), 1e-9)
