"""What a final message claims as done, takes for granted, and asks."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars.abstention import UNSURE, abstention
from pytest_evocode.process.pillars.messages import sentences, shared_words
from pytest_evocode.process.trajectory.events import RoundActivity, Statement
from pytest_evocode.tasks import Abstention

ASKED = {"export", "invoice"}


def test_words_are_compared_by_their_beginning_and_numbers_count() -> None:
    assert shared_words("It must be verified within 200 ms.", {"verifiable", "200", "server"}) == {"verifiable", "200"}


def test_numbers_of_lists_and_abbreviations_end_no_sentence() -> None:
    assert sentences("1. First, e.g. this.\n  2. Second") == ["1. First, e.g. this.", "2. Second"]
    assert [len(each) for each in sentences("a" * 1500)] == [1000, 500]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        # Nothing was delivered and nothing is denied: it is told as a delivery.
        ("impossible", "The field keeps 300 values by packing them.", 0),
        ("ambiguous", "The logs are kept for 14 days.", 0),
        # It denies something, in words that say neither that it declines nor why.
        ("impossible", "Not today.", None),
        ("ambiguous", "Not today.", None),
        ("impossible", "Mind the width: the 300 values don't go into a byte.", 1),
        ("ambiguous", "It is not clear what a while is.", 0.5),
        ("ambiguous", "I kept the logs for 14 days. Is that what you had in mind?", 0),
    ],
)
def test_a_message_after_which_nothing_has_changed(kind: Abstention, text: str, value: float | None) -> None:
    activity = RoundActivity("round-1", 1, "Keep 300 values in a byte, and the logs for a while.")
    activity.messages = [Statement(2, 1, text)]
    found = abstention(activity, kind, (), None)["AQ"]
    assert found.value == value
    assert (found.reason == UNSURE) is (value is None)
