"""Student's t against the values of scipy.stats.t (SciPy 1.17), and the interval that rests on it."""

from __future__ import annotations

import pytest

from pytest_evocode.metrics.statistics.intervals import t_cdf, t_interval, t_quantile


@pytest.mark.parametrize(
    ("freedom", "quantiles"),
    [
        (1, (3.0776835371752544, 12.706204736174694, 636.6192487687897)),
        (2, (1.8856180831641272, 4.302652729749462, 31.599054576445365)),
        (4, (1.533206274058944, 2.7764451051977934, 8.610301581379522)),
        (6, (1.4397557472651483, 2.4469118511449786, 5.95881617881889)),
        (25, (1.31634507267387, 2.0595385527532972, 3.725143949728693)),
        (99, (1.2901614420344854, 1.9842169515864174, 3.391528833363685)),
        (999, (1.2823995700373971, 1.9623414611334493, 3.3002924403987666)),
    ],
)
def test_quantiles_are_those_of_scipy(freedom: int, quantiles: tuple[float, ...]) -> None:
    shares = (0.9, 0.975, 0.9995)
    assert [t_quantile(share, freedom) for share in shares] == pytest.approx(quantiles, rel=1e-9)
    assert [t_quantile(1 - share, freedom) for share in shares] == pytest.approx(
        [-each for each in quantiles], rel=1e-9
    )


@pytest.mark.parametrize(
    ("value", "freedom", "probability"),
    [(1.5, 4, 0.896), (-2.1, 7, 0.036935598106461326), (0.3, 30, 0.6168769473578236)],
)
def test_probabilities_are_those_of_scipy(value: float, freedom: int, probability: float) -> None:
    assert t_cdf(value, freedom) == pytest.approx(probability, rel=1e-12)


def test_the_interval_reaches_so_many_standard_errors_to_both_sides() -> None:
    # Mean 3, standard deviation sqrt(2.5), standard error sqrt(0.5).
    reach = 2.7764451051977934 * 0.5**0.5
    assert t_interval([1, 2, 3, 4, 5]) == pytest.approx((3 - reach, 3 + reach))
    reach = 1.533206274058944 * 0.5**0.5
    assert t_interval([5, 3, 1, 2, 4], confidence=0.8) == pytest.approx((3 - reach, 3 + reach))
