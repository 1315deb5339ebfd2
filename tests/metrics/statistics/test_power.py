"""What differences so many tasks and attempts can tell, against statsmodels and simulated comparisons."""

from __future__ import annotations

from random import Random

import pytest

from pytest_evocode.metrics.statistics.significance import sign_flips
from pytest_evocode.metrics.statistics.variance import (
    MOST_PAIRS,
    PairedVariance,
    attempts_needed,
    detectable_difference,
    pairs_needed,
    power,
)


@pytest.mark.parametrize(
    ("effect", "pairs", "alpha", "expected"),
    [(0.5, 26, 0.05, 0.6881801365695), (1.2, 7, 0.01, 0.4034566625078), (3, 2, 0.05, 0.2607707142911)],
)
def test_power_is_that_of_statsmodels(effect: float, pairs: int, alpha: float, expected: float) -> None:
    # statsmodels 0.15: TTestPower().power(effect, pairs, alpha).
    assert power(effect, pairs, alpha) == pytest.approx(expected, abs=1e-6)
    assert power(0.0, pairs, alpha) == pytest.approx(alpha, abs=1e-4)


@pytest.mark.parametrize(
    ("pairs", "wanted", "effect"), [(26, 0.8, 0.571703548), (100, 0.9, 0.327343415), (100, 0.8, 0.282911712)]
)
def test_the_detectable_difference_is_that_of_statsmodels(pairs: int, wanted: float, effect: float) -> None:
    # statsmodels 0.15: TTestPower().solve_power(nobs=pairs, alpha=0.05, power=wanted).
    assert detectable_difference(30, pairs, power=wanted) == pytest.approx(30 * effect, rel=1e-5)


def test_where_no_p_value_is_small_enough_no_difference_is_detectable() -> None:
    assert detectable_difference(10, 5) is None
    assert detectable_difference(10, 6) is not None
    assert detectable_difference(10, 6, alpha=0.01) is None
    assert detectable_difference(10, 5000) is not None


@pytest.mark.parametrize("pairs", [7, 12])
def test_the_permutation_test_finds_the_detectable_difference_as_often_as_wanted(pairs: int) -> None:
    random = Random(pairs)
    shift = detectable_difference(1, pairs)
    assert shift is not None
    found = [sign_flips([random.gauss(shift, 1) for _ in range(pairs)]).p_value <= 0.05 for _ in range(800)]
    assert sum(found) / len(found) == pytest.approx(0.8, abs=0.04)


def test_so_many_pairs_are_needed_that_the_difference_is_detectable() -> None:
    # statsmodels 0.15: 33.4 pairs for half a standard deviation, 198.2 for a fifth.
    assert pairs_needed(15, 30) == 34
    assert pairs_needed(6, 30) == 199
    assert pairs_needed(1000, 1) == 6
    assert pairs_needed(1, 30) is None
    most = detectable_difference(30, MOST_PAIRS)
    assert most is not None
    assert pairs_needed(most, 30) == MOST_PAIRS


def test_so_many_attempts_are_needed_that_the_difference_is_detectable() -> None:
    variance = PairedVariance(between=16, within=400)
    attempts = attempts_needed(10, variance, 7)
    assert attempts is not None
    least, fewer = detectable_difference(variance.sd(attempts), 7), detectable_difference(variance.sd(attempts - 1), 7)
    assert least is not None
    assert fewer is not None
    assert least <= 10 < fewer


def test_no_number_of_attempts_makes_up_for_differences_between_tasks() -> None:
    assert attempts_needed(5, PairedVariance(between=16, within=400), 7) is None
    assert attempts_needed(10, PairedVariance(between=16, within=0), 7) == 1
    assert attempts_needed(90, PairedVariance(between=0, within=400), 5) is None
