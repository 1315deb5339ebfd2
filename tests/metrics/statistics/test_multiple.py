"""Holm's adjustment."""

from __future__ import annotations

import pytest

from pytest_evocode.metrics.statistics.significance import holm


def test_adjusted_p_values_are_those_of_statsmodels() -> None:
    # statsmodels 0.15: multipletests(..., method="holm").
    assert holm([0.01, 0.04, 0.03, 0.005, 0.9]) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])


def test_a_single_test_needs_no_adjustment() -> None:
    assert holm([0.03]) == [0.03]
    assert holm([None, 0.03]) == [None, 0.03]
    assert holm([]) == []


def test_none_is_larger_than_one() -> None:
    assert holm([0.6, 0.7]) == [1.0, 1.0]
