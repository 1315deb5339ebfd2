"""The interval over groups with several values, by hierarchical bootstrap."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest

from pytest_evocode.metrics.statistics.intervals import bounded_interval, hierarchical_interval

GROUPS = [[0.2, 0.4], [0.5, 0.5], [0.9, 0.7], [1.0, 1.0], [0.6, 0.2]]


def test_it_holds_the_true_mean_at_least_as_often_as_it_says() -> None:
    """Seven tasks of ten rounds, most of which are too difficult, two attempts each; percentiles hold it 70 times."""
    random = Random(3)
    held = 0
    for _ in range(100):
        chances = [random.betavariate(0.3, 2.1) for _ in range(7)]
        groups = [[sum(random.random() < p for _ in range(10)) / 10 for _ in range(2)] for p in chances]
        low, high = hierarchical_interval(groups, 0, 1, resamples=200)
        held += low <= 0.125 <= high
    assert held >= 92


def test_values_that_never_differ_within_their_groups_leave_the_interval_of_the_groups() -> None:
    groups = [[fmean(group)] * 3 for group in GROUPS]
    expected = bounded_interval([fmean(group) for group in GROUPS], 0, 1)
    assert hierarchical_interval(groups, 0, 1) == pytest.approx(expected, abs=0.02)


def test_values_that_differ_make_it_wider() -> None:
    steady = hierarchical_interval([[0.5] * 2] * 8, 0, 1)
    varying = hierarchical_interval([[0.2, 0.8]] * 8, 0, 1)
    assert varying[0] < steady[0] - 0.05
    assert varying[1] > steady[1] + 0.05


def test_groups_count_by_their_weights() -> None:
    heavy = hierarchical_interval(GROUPS, 0, 1, weights=[1, 1, 1, 20, 1])
    assert heavy[0] > hierarchical_interval(GROUPS, 0, 1)[0]
    doubled = hierarchical_interval(GROUPS, 0, 1, weights=[2.0] * 5)
    assert doubled == pytest.approx(hierarchical_interval(GROUPS, 0, 1))


def test_equal_values_at_a_bound_leave_room_for_others() -> None:
    low, high = hierarchical_interval([[1.0, 1.0]] * 26, 0, 1)
    assert (low, high) == pytest.approx(bounded_interval([1.0] * 26, 0, 1), abs=0.01)
