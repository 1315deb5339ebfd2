"""Which items and sentences announce a step of the work."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars.planning import plan_steps, says_again


def test_a_long_plan_that_has_the_words_of_a_long_request_in_another_order_says_it_again() -> None:
    step, request = ("of a file in the list " * 1500, "to the list of a file " * 1500)
    assert says_again(step, [request])


@pytest.mark.parametrize("text", ["." * 60_000, "1. " * 20_000, "a/" * 30_000, "I'll add `x`, " * 6000])
def test_a_text_of_one_sign_is_read_in_time(text: str) -> None:
    """Patterns would be searched for in it for minutes if its lines were not shortened."""
    assert len(plan_steps(text)) <= 150
