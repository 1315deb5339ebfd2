"""Variance over attempts, within and between groups."""

from __future__ import annotations

from math import sqrt
from random import Random

import pytest

from pytest_evocode.metrics.statistics.variance import VarianceComponents, spread, variance_components


def test_one_value_has_no_spread() -> None:
    assert spread([1.0]) is None
    assert spread([]) is None


def test_components_are_those_of_the_r_package_statpsych() -> None:
    """The example of its function ci.random.anova1, which gives means, deviations and a group size of 20."""
    means = [56.1, 51.2, 60.3, 68.2, 48.9, 70.5]
    deviations = [9.45, 8.79, 9.71, 8.90, 8.31, 9.75]
    groups = []
    for mean, deviation in zip(means, deviations, strict=True):
        off = deviation * sqrt(19 / 20)
        groups.append([mean + off, mean - off] * 10)
    found = variance_components(groups)
    assert found is not None
    assert sqrt(found.within) == pytest.approx(9.166782, abs=1e-6)
    assert sqrt(found.between) == pytest.approx(8.585948, abs=1e-6)
    assert found.within_share == pytest.approx(1 - 0.467317, abs=1e-6)


def test_groups_of_unequal_sizes_give_unbiased_components() -> None:
    random = Random(1)
    sizes = [1, 2, 2, 3, 4, 1, 6]
    totals = [0.0, 0.0]
    for _ in range(1000):
        centers = [random.gauss(50, 3) for _ in sizes]
        found = variance_components(
            [[random.gauss(center, 2) for _ in range(size)] for center, size in zip(centers, sizes, strict=True)]
        )
        assert found is not None
        totals = [total + part / 1000 for total, part in zip(totals, (found.within, found.between), strict=True)]
    # Cutting the second off at 0 raises it a little.
    assert totals == pytest.approx([4.0, 9.0], rel=0.1)


def test_where_groups_do_not_differ_all_variance_is_within() -> None:
    found = variance_components([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert found == VarianceComponents(within=0.5, between=0.0, groups=3, values=6)
    assert found.within_share == 1.0


def test_without_repetition_or_with_one_group_the_components_are_not_known() -> None:
    assert variance_components([[1.0], [2.0], [3.0]]) is None
    assert variance_components([[1.0, 2.0]]) is None
    assert variance_components([[1.0, 2.0], []]) is None


def test_where_nothing_varies_there_is_no_share() -> None:
    found = variance_components([[1.0, 1.0], [1.0, 1.0]])
    assert found is not None
    assert found.within_share is None
