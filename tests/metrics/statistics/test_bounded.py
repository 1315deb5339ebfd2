"""Intervals of bounded means, against closed forms where there are some and against drawn weights elsewhere."""

from __future__ import annotations

from random import Random

import pytest

from pytest_evocode.metrics.statistics.intervals import bounded_interval


def drawn_interval(
    values: list[float], sizes: list[float], low: float, high: float, unseen: float
) -> tuple[float, float]:
    """The same by its definition: weights are drawn, and the 2.5th and 97.5th percentile taken."""
    random = Random(0)
    size = sum(sizes) / len(sizes)
    bounds: tuple[list[float], list[float]] = ([], [])
    for _ in range(20_000):
        weights = [random.expovariate(1) for _ in values]
        extra = random.gammavariate(unseen, 1) * size
        above = sum(weight * value for weight, value in zip(weights, values, strict=True))
        below = sum(weight * each for weight, each in zip(weights, sizes, strict=True)) + extra
        bounds[0].append((above + extra * low) / below)
        bounds[1].append((above + extra * high) / below)
    return sorted(bounds[0])[500], sorted(bounds[1])[-501]


@pytest.mark.parametrize(
    ("ones", "count", "unseen", "low", "high"),
    [
        # Quantiles of Beta(k, n - k + u) and Beta(k + u, n - k), from scipy.stats.beta (SciPy 1.17).
        (0, 5, 0.5, 0.0, 0.40956719020268817),
        (0, 26, 0.5, 0.0, 0.09293294180559683),
        (26, 26, 0.5, 0.9070670581944031, 1.0),
        (9, 26, 0.5, 0.1758483293012863, 0.546109598981473),
        (5, 10, 0.5, 0.1987516266461356, 0.8012483733538643),
        # With a whole unseen value: Clopper and Pearson.
        (3, 7, 1.0, 0.09898827844250786, 0.8159484323599169),
        (9, 26, 1.0, 0.17214413800566644, 0.5566719260423902),
    ],
)
def test_zeros_and_ones_give_quantiles_of_the_beta_distribution(
    ones: int, count: int, unseen: float, low: float, high: float
) -> None:
    found = bounded_interval([1.0] * ones + [0.0] * (count - ones), 0, 1, unseen=unseen)
    assert found == pytest.approx((low, high), abs=1e-7)


def test_that_of_any_values_is_that_of_drawn_weights() -> None:
    values = [0.0, 3 / 7, 3 / 7, 1.0, 0.2, 11 / 13, 0.07]
    found = bounded_interval(values, 0, 1)
    assert found == pytest.approx(drawn_interval(values, [1.0] * 7, 0, 1, 0.5), abs=0.01)
    found = bounded_interval([value - 0.4 for value in values], -1, 1, unseen=0.25)
    assert found == pytest.approx(drawn_interval([value - 0.4 for value in values], [1.0] * 7, -1, 1, 0.25), abs=0.02)


def test_that_of_a_ratio_weighs_values_by_their_sizes() -> None:
    values, sizes = [3.0, 0.0, 7.0, 5.0, 8.0, 1.0], [5.0, 7.0, 7.0, 15.0, 8.0, 9.0]
    assert bounded_interval(values, 0, 1, sizes=sizes) == pytest.approx(
        drawn_interval(values, sizes, 0, 1, 0.5), abs=0.01
    )
    alike = bounded_interval([value * 6 for value in values], 0, 10, sizes=[6.0] * 6)
    assert alike == pytest.approx(bounded_interval(values, 0, 10))


def test_equal_values_leave_something_open_on_either_side() -> None:
    # An unseen share of Beta(1/2, 7) can be anything: 0.3103 of it at most, 97.5 times in 100.
    assert bounded_interval([0.5] * 7, 0, 1) == pytest.approx((0.5 - 0.3103 / 2, 0.5 + 0.3103 / 2), abs=1e-4)
    assert bounded_interval([1.0] * 7, 0, 1) == pytest.approx((1 - 0.3103, 1), abs=1e-4)


def test_the_order_of_values_changes_no_digit_and_their_scale_nothing_else() -> None:
    values = [Random(seed).random() for seed in range(26)]
    found = bounded_interval(values, 0, 1)
    assert bounded_interval(sorted(values), 0, 1) == found
    assert bounded_interval([100 * value for value in values], 0, 100) == pytest.approx([100 * each for each in found])
    mirrored = bounded_interval([1 - value for value in values], 0, 1)
    assert [1 - each for each in mirrored[::-1]] == pytest.approx(list(found))


def test_a_thousand_values_give_the_interval_of_the_normal_distribution() -> None:
    values = [Random(seed).random() for seed in range(1000)]
    mean = sum(values) / 1000
    error = (sum((value - mean) ** 2 for value in values) / 999 / 1000) ** 0.5
    assert bounded_interval(values, 0, 1) == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=0.0015)
