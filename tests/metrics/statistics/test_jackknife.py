"""The interval that leaving out one part at a time gives."""

from __future__ import annotations

from statistics import fmean, variance

import pytest

from pytest_evocode.metrics.statistics.intervals import jackknife_interval, t_interval


def test_that_of_a_mean_is_students() -> None:
    values = [0.3, 0.9, 0.1, 0.7, 0.7, 0.2]
    assert jackknife_interval(values, fmean, 0.9) == pytest.approx(t_interval(values, 0.9))


def test_that_of_another_statistic_goes_by_what_each_part_adds() -> None:
    values = [1.0, 2.0, 4.0, 9.0]
    # Variances without one: 13, 49/3, 19, 7/3; their mean 38/3, and 3/4 of the sum of their squared deviations 361/3.
    found = jackknife_interval(values, variance, 0.95)
    assert found is not None
    assert sum(found) / 2 == pytest.approx(variance(values))
    assert (found[1] - found[0]) / 2 == pytest.approx(3.18245 * (361 / 3) ** 0.5, rel=1e-4)


def test_there_is_none_where_the_statistic_depends_on_one_part() -> None:
    def spread(values: object) -> float | None:
        assert isinstance(values, list)
        return None if len(set(values)) < 2 else float(max(values) - min(values))

    assert jackknife_interval([1, 1, 1, 2], spread) is None
    assert jackknife_interval([1, 1, 2, 2], spread) is not None
