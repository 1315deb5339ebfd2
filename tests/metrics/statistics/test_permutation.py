"""The paired permutation test, against counting every choice of signs, and scipy."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.property_tests  # noqa: F401 - the settings
from pytest_evocode.metrics.statistics.significance import MOST_EXACT, sign_flips, smallest_p_value


@given(st.lists(st.integers(-6, 6), max_size=7))
def test_p_values_are_shares_of_all_choices_of_signs(differences: list[int]) -> None:
    observed = sum(differences)
    sums = [
        sum(sign * each for sign, each in zip(signs, differences, strict=True))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    found = sign_flips([each / 7 for each in differences])
    assert found.exact
    assert found.p_value == sum(abs(each) >= abs(observed) for each in sums) / len(sums)
    assert found.p_lower == sum(each <= observed for each in sums) / len(sums)


@pytest.mark.parametrize(
    ("differences", "p_value", "p_lower"),
    [
        ([12.5, -3, 7.25, 0, 4, -1.5, 9, 20], 0.078125, 0.96875),
        ([-30, -20, -10, -5, 0, 0, -1], 0.0625, 0.03125),
        ([2, 2, -2, 4], 0.5, 0.9375),
    ],
)
def test_p_values_are_those_of_scipy(differences: list[float], p_value: float, p_lower: float) -> None:
    # scipy 1.17: permutation_test((differences,), mean, permutation_type="samples", n_resamples=inf).
    found = sign_flips(differences)
    assert (found.p_value, found.p_lower) == (p_value, p_lower)


def test_where_there_are_too_many_choices_some_are_drawn() -> None:
    pairs = [Random(1).gauss(4, 20) for _ in range(MOST_EXACT)]
    exact, drawn = sign_flips(pairs), sign_flips([*pairs, 1e-7])
    assert (exact.exact, drawn.exact) == (True, False)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.015)
    assert drawn.p_lower == pytest.approx(exact.p_lower, abs=0.015)


def test_no_drawn_p_value_is_smaller_than_what_the_draws_can_tell() -> None:
    assert sign_flips([1.0] * 60, resamples=99).p_value == 0.01
    assert sign_flips([-1.0] * 60, resamples=99).p_lower == 0.01


@pytest.mark.parametrize("number", [20, 50])
def test_the_order_changes_nothing(number: int) -> None:
    differences = [Random(number).gauss(3, 10) / 3 for _ in range(number)]
    shuffled = Random(0).sample(differences, k=number)
    assert sign_flips(shuffled, resamples=500) == sign_flips(differences, resamples=500)


def test_differences_of_nothing_tell_nothing() -> None:
    for differences in ([], [0.0], [0.0] * 40):
        assert (sign_flips(differences).p_value, sign_flips(differences).p_lower) == (1.0, 1.0)
    assert (sign_flips([-5.0]).p_value, sign_flips([-5.0]).p_lower) == (1.0, 0.5)


def test_the_smallest_p_value_is_that_of_pairs_that_all_agree() -> None:
    for pairs in range(8):
        found = sign_flips([-1.0] * pairs)
        assert smallest_p_value(pairs) == found.p_value
        assert smallest_p_value(pairs, two_sided=False) == found.p_lower


@pytest.mark.parametrize("tasks", [7, 26])
def test_chance_alone_is_rarely_called_worse(tasks: int) -> None:
    # Rounds passed of six, by two agents that are as likely to pass them; many tasks are tied, as in results.
    random = Random(tasks)
    alarms = 0
    for _ in range(500):
        chances = [random.choice((0.0, 0.2, 0.6, 0.95)) for _ in range(tasks)]
        passed = [[sum(random.random() < chance for _ in range(6)) for chance in chances] for _ in "ab"]
        alarms += sign_flips([second - first for first, second in zip(*passed, strict=True)]).p_lower <= 0.05
    assert alarms / 500 <= 0.05


def test_without_ties_the_level_is_used_up() -> None:
    random = Random(0)
    alarms = [sign_flips([random.gauss(0, 1) for _ in range(12)]).p_lower <= 0.05 for _ in range(1000)]
    assert sum(alarms) / 1000 == pytest.approx(0.05, abs=0.015)
