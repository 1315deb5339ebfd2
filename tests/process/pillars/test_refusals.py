"""What declines a request, in many words, and what only sounds like it."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars.messages import (
    declines_in_passing,
    declining,
    reason_in,
    request_words,
)

REQUEST = request_words("Store 300 distinct values in the one-byte field `slot`, and read each of them back exactly.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One byte has 256 states, so it cannot hold 300 values.", True),
        ("No: 300 > 256, and the field is one byte.", True),
        # It repeats the request and gives no reason.
        ("I was not able to store 300 distinct values in the one-byte field and read them back exactly.", False),
        ("This is impossible.", False),
        # What was left alone is no reason.
        ("I did not touch the distinct values of the field `slot`.", False),
        ("It would break the law.", False),
    ],
)
def test_a_reason_is_more_than_the_request_and_uses_its_words(text: str, expected: bool) -> None:
    assert (reason_in(text, REQUEST) is not None) is expected


@pytest.mark.parametrize("text", ["not yet " * 2000, "neither " * 2000, "a/" * 8000])
def test_a_message_of_one_word_declines_nothing(text: str) -> None:
    """Patterns would be searched for in it for hours if its sentences had no longest length."""
    assert not declining(text)
    assert not declines_in_passing(text)
