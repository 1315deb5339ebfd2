"""McNemar's exact test."""

from __future__ import annotations

import pytest

from pytest_evocode.metrics.statistics.significance import mcnemar


@pytest.mark.parametrize(
    ("first_only", "second_only", "p_value"),
    [(1, 9, 0.021484375), (3, 8, 0.2265625), (50, 30, 0.03299261842647619), (0, 1, 1.0), (4, 4, 1.0), (0, 0, 1.0)],
)
def test_p_values_are_those_of_statsmodels(first_only: int, second_only: int, p_value: float) -> None:
    # statsmodels 0.15: mcnemar([[0, b], [c, 0]], exact=True).
    assert mcnemar(first_only, second_only) == pytest.approx(p_value)
    assert mcnemar(second_only, first_only) == mcnemar(first_only, second_only)


def test_thousands_of_pairs_are_no_trouble() -> None:
    assert mcnemar(2000, 2100) == pytest.approx(0.12206497999113655)
