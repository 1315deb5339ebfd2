"""Intervals of means and other numbers: by Student's t, of bounded values, of values in groups, by the jackknife."""

from __future__ import annotations

from cmath import exp, log
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import atan, cos, cosh, fsum, inf, nextafter, pi, sin, sinh, sqrt
from random import Random
from statistics import NormalDist, fmean
from typing import TypeVar


def t_cdf(t: float, freedom: int) -> float:
    """Return the probability of at most ``t``, by the finite series for whole degrees of freedom.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.

    >>> t_cdf(0, 3), round(t_cdf(1, 1), 4)
    (0.5, 0.75)
    """
    angle = atan(t / sqrt(freedom))
    square = cos(angle) ** 2
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    terms = [term] if freedom > 1 else []
    for number in range(2 + odd, freedom - 1, 2):
        term *= square * (number - 1) / number
        terms.append(term)
    within = sin(angle) * fsum(terms)
    return 0.5 + 0.5 * (2 / pi * (angle + within) if odd else within)


@lru_cache(maxsize=1000)
def t_quantile(share: float, freedom: int) -> float:
    """Return the value that Student's t stays below with a probability of ``share``, over 0 and under 1.

    >>> round(t_quantile(0.975, 6), 3)
    2.447
    """
    if share < 0.5:
        return -t_quantile(1 - share, freedom)
    return first_at(share, lambda t: t_cdf(t, freedom), 1e-14)


def first_at(wanted: float, rising: Callable[[float], float], precision: float) -> float:
    """Return from which value above 0 on a rising function is at least what is wanted, by bisection."""
    low, high = 0.0, 1.0
    while rising(high) < wanted:
        low, high = high, 2 * high
    while nextafter(low, inf) < high and high - low > precision * high:
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return high


def t_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of the mean of at least two values: the mean and so many standard errors around it.

    >>> [round(bound, 2) for bound in t_interval([1, 2, 3])]
    [-0.48, 4.48]
    """
    count = len(values)
    mean = fsum(values) / count
    error = sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
    reach = t_quantile((1 + confidence) / 2, count - 1) * error
    return mean - reach, mean + reach


_NORMAL = NormalDist()
_STEP, _MOST_STEPS = 0.125, 400
_CLOSE = 1e-9
_SMALLEST = 1e-300


def bounded_interval(
    values: Sequence[float],
    low: float,
    high: float,
    *,
    sizes: Sequence[float] | None = None,
    unseen: float = 0.5,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Return the interval of the mean of values that cannot leave a range, or of the ratio of two sums.

    What was seen is given random weights, Dirichlet's, which are those of the Bayesian bootstrap, and to it comes one
    value that was not seen: the end of the range. With a weight like that of the others it is Gaffke's bound (N. Gaffke
    2005, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable; E.
    Learned-Miller and P. Thomas 2020, A new confidence interval for the mean of a bounded random variable), which of
    zeros and ones is the interval of Clopper and Pearson, and rather wide. With half of it, it is close to Jeffreys'
    interval of zeros and ones.

    Args:
        values: At least one, in any order.
        low: The least that a value can be.
        high: The most that a value can be.
        sizes: For a ratio: what stands below each value, which is between ``low`` and ``high`` times that. Above 0.
        unseen: How many values at the end of the range are added to those that were seen.
        confidence: How often the interval shall hold the true mean, over 0 and under 1.

    >>> [round(bound, 3) for bound in bounded_interval([0] * 26, 0, 1)]
    [0.0, 0.093]
    >>> [round(bound, 3) for bound in bounded_interval([0, 0, 1, 1, 1], 0, 1, unseen=1)]
    [0.147, 0.947]
    """
    sizes = sizes or [1.0] * len(values)
    share = (1 - confidence) / 2
    upper = _upper(Counter(zip(values, sizes, strict=True)), high, unseen, share)
    lower = _upper(Counter(zip((-value for value in values), sizes, strict=True)), -low, unseen, share)
    return 0.0 - lower, upper  # And not -0.0.


def _upper(pairs: Counter[tuple[float, float]], high: float, unseen: float, share: float) -> float:
    """Return what the ratio of the weighted sums stays below but for ``share``.

    Weights of Dirichlet's distribution are gamma variables over their sum, so the ratio is over a bound where a sum of
    gamma variables, each times ``value - bound * size``, is over 0.
    """
    seen = sorted(pairs.items())  # In one order, so that the last digit does not depend on that of the values.
    size = fsum(each * number for (_, each), number in seen) / pairs.total()
    mean = fsum(value * number for (value, _), number in seen) / pairs.total() / size
    if high - mean < _CLOSE:
        return high

    def excess(bound: float) -> float:
        terms = [(value - bound * each, float(number)) for (value, each), number in seen]
        found = _positive([*terms, ((high - bound) * size, unseen)])
        return _NORMAL.inv_cdf(min(max(found, _SMALLEST), 1 - _CLOSE)) - _NORMAL.inv_cdf(share)

    return _root(excess, mean, high)


def _positive(terms: Sequence[tuple[float, float]]) -> float:
    """Return the probability that a sum of gamma variables, each with its factor and shape, is over 0.

    It is the integral of ``exp(K(s)) / s`` along an upright line in the plane, with K the cumulant generating function
    of the sum. The line goes through the saddle point on the real axis, so that next to nothing oscillates (H. Daniels
    1954, Saddlepoint approximations in statistics), and the trapezoid rule finds many digits.
    """
    largest = max(factor for factor, _ in terms)
    if largest <= 0:
        return 0.0
    saddle, curvature = _saddle(terms, 1 / largest)
    width = 1 / sqrt(curvature)
    heights: list[float] = []
    for number in range(_MOST_STEPS):
        place = complex(saddle, width * sinh(number * _STEP))
        cumulant = -sum(shape * log(1 - factor * place) for factor, shape in terms)
        height = exp(cumulant) / place * cosh(number * _STEP)
        heights.append(height.real)
        if abs(height) < 1e-8 * heights[0]:
            break
    return (fsum(heights) - heights[0] / 2) * _STEP * width / pi


def _saddle(terms: Sequence[tuple[float, float]], end: float) -> tuple[float, float]:
    """Return about where between 0 and ``end`` the integrand is least along the real axis, and how it curves there.

    Newton's method for the slope of its logarithm, which rises from end to end; the halves where that leads outside.
    """
    low, high, saddle = 0.0, end, end / 2
    while True:
        rates = [(shape, factor / (1 - factor * saddle)) for factor, shape in terms]
        slope = sum(shape * rate for shape, rate in rates) - 1 / saddle
        curvature = sum(shape * rate * rate for shape, rate in rates) + saddle**-2
        low, high = (saddle, high) if slope < 0 else (low, saddle)
        step = slope / curvature
        # The integral is the same along any line; this one is to be close enough to oscillate no more than the best.
        if step * step * curvature < 1e-4:
            return saddle, curvature
        saddle = saddle - step if low < saddle - step < high else (low + high) / 2


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that falls is 0, by the rule of false position as improved at Illinois."""
    left, right = function(low), function(high)
    moved = ""
    while high - low > _CLOSE * (abs(low) + abs(high)):
        middle = (low * right - high * left) / (right - left)
        value = function(middle)
        if abs(value) < 10 * _CLOSE:
            return middle
        # An end that stays for the second time counts half, so that it moves, too.
        if value > 0:
            low, left, right = middle, value, right / 2 if moved == "low" else right
        else:
            high, right, left = middle, value, left / 2 if moved == "high" else left
        moved = "low" if value > 0 else "high"
    return (low + high) / 2


_FEWEST, _MOST_DRAWS = 500, 300_000
_POOL = 100
"""How many means of a group's redrawn values there are to choose from; even for two values it is enough."""


def hierarchical_interval(
    groups: Sequence[Sequence[float]],
    low: float,
    high: float,
    *,
    weights: Sequence[float] | None = None,
    unseen: float = 0.5,
    confidence: float = 0.95,
    resamples: int = 4_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the interval of the mean over groups of their means, by hierarchical bootstrap.

    In each draw the groups get random weights, Dirichlet's, and within each group values are drawn with replacement. To
    the groups comes a part of one that was not seen, with a mean at the end of the range, as in
    :func:`~pytest_evocode.metrics.statistics.intervals.bounded_interval`: without it, intervals of few groups with most
    means at one end are too short. Means of groups vary by their values already, so drawing at both levels counts that
    variance twice (Davison and Hinkley, Bootstrap Methods, 1997, section 3.8): the interval is rather too wide.

    Args:
        groups: Groups of at least one value each.
        low: What no value is below.
        high: What no value is above.
        weights: How much each group counts; None is all the same.
        unseen: How many groups at the end of the range are added to those that were seen.
        confidence: How often an interval shall have the true mean.
        resamples: How often to draw; of many groups it is less, at most 300,000 in all, but 500 times at least.
        seed: Of the random numbers: the same seed gives the same interval.

    >>> groups = [[0.2, 0.4], [0.5, 0.5], [0.9, 0.7], [1.0, 1.0], [0.6, 0.2]]
    >>> [round(bound, 1) for bound in hierarchical_interval(groups, 0, 1)]
    [0.3, 0.9]
    """
    random = Random(seed)
    draw, gamma = random.random, random.expovariate
    weights = [1.0] * len(groups) if weights is None else weights
    size = fmean(weights)
    # What drawing values makes of a group is drawn beforehand, which takes a tenth of the time.
    pools = [[sum(random.choices(group, k=len(group))) / len(group) for _ in range(_POOL)] for group in groups]
    pairs = list(zip(pools, weights, strict=True))
    lower, upper = [], []
    for _ in range(min(resamples, max(_FEWEST, _MOST_DRAWS // len(groups)))):
        total = part = 0.0
        for pool, weight in pairs:
            drawn = weight * gamma(1.0)
            total += drawn
            part += drawn * pool[int(draw() * _POOL)]
        extra = size * random.gammavariate(unseen, 1.0)
        lower.append((part + extra * low) / (total + extra))
        upper.append((part + extra * high) / (total + extra))
    side = (1 - confidence) / 2
    return quantile(sorted(lower), side), quantile(sorted(upper), 1 - side)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that so large a share of some ordered values is not above."""
    return ordered[round(share * (len(ordered) - 1))]


T = TypeVar("T")


def jackknife_interval(
    parts: Sequence[T], statistic: Callable[[Sequence[T]], float | None], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of a statistic of at least two independent parts, such as tasks with all that was seen there.

    The standard error is the jackknife's, sqrt((n - 1) / n * sum (s_i - mean s)^2) with s_i the statistic without part
    i (Efron and Tibshirani, An Introduction to the Bootstrap, 11.2), and the interval reaches as many of them to either
    side as Student's t with n - 1 degrees of freedom says. None where the statistic is None, without a
    part or of all.

    >>> [round(bound, 2) for bound in jackknife_interval([1, 2, 3], lambda values: sum(values) / len(values))]
    [-0.48, 4.48]
    """
    count = len(parts)
    whole = statistic(parts)
    without = [statistic([*parts[:place], *parts[place + 1 :]]) for place in range(count)]
    known = [value for value in without if value is not None]
    if whole is None or len(known) < count:
        return None
    mean = fsum(known) / count
    error = sqrt((count - 1) / count * fsum((value - mean) ** 2 for value in known))
    reach = t_quantile((1 + confidence) / 2, count - 1) * error
    return whole - reach, whole + reach
