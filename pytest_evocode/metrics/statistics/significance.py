"""Tests of whether two sides differ by more than chance, and p-values where several tests are made at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

MOST_EXACT = 30
"""Up to how many pairs that differ all choices of signs are counted; it takes some 20 ms."""
RESAMPLES = 9_999
"""How many choices are drawn where there are more; with the one that was seen they are 10,000."""


@dataclass(frozen=True, slots=True)
class SignFlips:
    """The p-values of one set of differences."""

    p_value: float
    """Two-sided: the sum is as far from 0, in either direction."""
    p_lower: float
    """One-sided: the sum is as low."""
    exact: bool
    """Whether all choices of signs were counted; otherwise they were drawn at random, with a fixed seed."""


def sign_flips(differences: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> SignFlips:
    """Return the p-values of the paired permutation test: would differences like these come about by chance?

    Where two sides do equally well, each pair could as well have come out the other way round, so every choice of signs
    is as likely as the one that was seen. The p-value is the share of the choices whose sum is as extreme. Nothing but
    that is assumed of how the differences are distributed (Fisher 1935, section 21).

    Up to :data:`MOST_EXACT` differences that are not 0 the p-values are exact. Above that, signs are drawn at random,
    and what was seen counts as one of the draws, so that a p-value is never too small (Phipson and Smyth 2010). The
    order of the differences changes nothing.

    >>> sign_flips([1, 1, 1, 1, 1])
    SignFlips(p_value=0.0625, p_lower=1.0, exact=True)
    >>> sign_flips([-3, -2, 0, 1]).p_lower
    0.25
    """
    # Signs of zeros change no sum. Sorted, so that neither rounding nor the draws depend on the order.
    sizes = sorted(abs(each) for each in differences if each)
    observed = sum(sorted(differences))
    slack = 1e-9 * sum(sizes)  # Rounding makes equal sums differ by less.
    exact = len(sizes) <= MOST_EXACT
    if exact:
        of = 1 << len(sizes)
        halves = _all_sums(sizes[::2]), _all_sums(sizes[1::2])
        low = _up_to(*halves, observed + slack)
        # For every sum there is its opposite, so as many are as far above 0 as below.
        far = of if abs(observed) <= slack else 2 * _up_to(*halves, slack - abs(observed))
    else:
        drawn = _drawn_sums(sizes, resamples, seed)
        low = 1 + sum(each <= observed + slack for each in drawn)
        far = 1 + sum(abs(each) >= abs(observed) - slack for each in drawn)
        of = 1 + resamples
    return SignFlips(far / of, low / of, exact)


def smallest_p_value(pairs: int, *, two_sided: bool = True) -> float:
    """Return the smallest p-value that so many pairs can give, which is when all differ in the same direction.

    >>> smallest_p_value(5), smallest_p_value(5, two_sided=False)
    (0.0625, 0.03125)
    """
    return min(1.0, (1 + two_sided) / (1 << pairs))


def _all_sums(sizes: Sequence[float]) -> list[float]:
    """Return the sums of all choices of signs, in ascending order."""
    sums = [0.0]
    for size in sizes:
        sums = sorted([each - size for each in sums] + [each + size for each in sums])
    return sums


def _up_to(first: Sequence[float], second: Sequence[float], most: float) -> int:
    """Return for how many pairs of two ordered lists the sum is at most ``most``."""
    count, place = 0, len(second)
    for each in first:
        while place and each + second[place - 1] > most:
            place -= 1
        count += place
    return count


def _drawn_sums(sizes: Sequence[float], resamples: int, seed: int) -> list[float]:
    """Return the sums for signs that are drawn, eight at a time from a table of what eight signs can come to."""
    tables = [_all_sums(sizes[place : place + 8]) for place in range(0, len(sizes), 8)]
    random = Random(seed)
    sums = [0.0] * resamples
    for table in tables:
        sums = [each + chosen for each, chosen in zip(sums, random.choices(table, k=resamples), strict=True)]
    return sums


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the two-sided p-value of the exact test, which is the binomial one over the pairs that differ.

    It takes the pairs as independent of each other. It is not the mid-p variant, which is smaller.

    Args:
        first_only: How many pairs the first side passes and the second does not.
        second_only: The other way round.

    >>> mcnemar(0, 5), mcnemar(2, 2), mcnemar(0, 0)
    (0.0625, 1.0, 1.0)
    """
    pairs = first_only + second_only
    ways = tail = 1  # To choose none of the pairs.
    for number in range(min(first_only, second_only)):
        ways = ways * (pairs - number) // (number + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << pairs))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values as adjusted by Holm (1979), in the same order.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none becomes smaller than the one before it, or
    larger than 1. None, a test that could not be made, stays None and counts as none of the m.

    >>> holm([0.01, 0.5, 0.25, None])
    [0.03, 0.5, 0.5, None]
    """
    places = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(places):
        largest = max(largest, min(1.0, (len(places) - rank) * p))
        adjusted[place] = largest
    return adjusted
