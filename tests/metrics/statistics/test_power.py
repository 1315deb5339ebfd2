"""What differences so many tasks and attempts can tell, against statsmodels and simulated comparisons."""

from __future__ import annotations

from random import Random

import pytest

from pytest_evocode.metrics.statistics.significance import sign_flips
from pytest_evocode.metrics.statistics.variance import (
    MeanSquare,
    PairedVariance,
    chi_squared_quantile,
    detectable_difference,
    fewest,
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


@pytest.mark.parametrize("pairs", [6, 7, 12])
def test_the_permutation_test_finds_the_detectable_difference_as_often_as_wanted(pairs: int) -> None:
    random = Random(pairs)
    shift = detectable_difference(1, pairs)
    assert shift is not None
    found = [sign_flips([random.gauss(shift, 1) for _ in range(pairs)]).p_value <= 0.05 for _ in range(800)]
    assert sum(found) / len(found) == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize(("difference", "pairs"), [(15, 34), (6, 199), (1000, 6), (1, None)])
def test_so_many_pairs_are_needed_that_the_difference_is_detectable(difference: float, pairs: int | None) -> None:
    # statsmodels 0.15: 33.4 pairs for half a standard deviation, 198.2 for a fifth.
    def is_seen(number: int) -> bool:
        found = detectable_difference(30, number)
        return found is not None and found <= difference

    assert fewest(1000, is_seen) == pairs


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_the_smallest_number_that_is_enough_is_found(most: int) -> None:
    for wanted in {1, 2, 3, most - 1, most} & {*range(1, most + 1)}:
        assert fewest(most, lambda number, wanted=wanted: number >= wanted) == wanted  # type: ignore[misc]
    assert fewest(most, lambda number: number > most) is None


@pytest.mark.parametrize(
    ("share", "freedom", "expected"), [(0.1, 6, 2.204), (0.9, 6, 10.645), (0.1, 25, 16.473), (0.9, 14, 21.064)]
)
def test_chi_squared_quantiles_are_close_to_those_of_tables(share: float, freedom: int, expected: float) -> None:
    assert chi_squared_quantile(share, freedom) == pytest.approx(expected, rel=0.003)


@pytest.mark.parametrize("attempts", [1, 3, 16])
def test_the_bound_of_a_variance_is_over_the_true_one_as_often_as_it_says(attempts: int) -> None:
    random, between, within, pilot, tasks = Random(attempts), 9.0, 30.0, 3, 12
    total, freedom = between + 2 * within / pilot, tasks * (pilot - 1)

    def mean_square(value: float, freedom: int) -> float:
        return value * random.gammavariate(freedom / 2, 2) / freedom

    held = 0
    for _ in range(2000):
        squares = [MeanSquare(mean_square(within, freedom), freedom, fixed=-1 / pilot, by_attempt=1) for _ in "AB"]
        found = PairedVariance((MeanSquare(mean_square(total, tasks - 1), tasks - 1, fixed=1), *squares))
        held += found.upper_sd(attempts) ** 2 >= between + 2 * within / attempts
    assert held / 2000 == pytest.approx(0.9, abs=0.03)
