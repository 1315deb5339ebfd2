"""Which items and sentences announce a step of the work."""

from __future__ import annotations

from pytest_evocode.process.pillars.planning import says_again


def test_a_long_plan_that_has_the_words_of_a_long_request_in_another_order_says_it_again() -> None:
    step, request = ("of a file in the list " * 1500, "to the list of a file " * 1500)
    assert says_again(step, [request])
