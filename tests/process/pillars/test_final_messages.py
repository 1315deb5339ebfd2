"""What a final message claims as done, takes for granted, and asks."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars.abstention import UNSURE, abstention
from pytest_evocode.process.pillars.claims import assumes, claims
from pytest_evocode.process.pillars.questions import asks
from pytest_evocode.process.pillars.sentences import sentences, shared_words
from pytest_evocode.process.trajectory.events import RoundActivity, Statement
from pytest_evocode.tasks import Abstention

ASKED = {"export", "invoice"}


@pytest.mark.parametrize(
    "text",
    [
        "I've implemented the export.",
        "Implemented the export in `export.py`.",
        "The export has been added.",
        "The page has an export button now.",
        "`parse_date` now accepts four formats.",
        "37 duplicates removed.",
        "All 12 tests pass.",
        "Done!",
        "I went ahead and merged the duplicates.",
    ],
)
def test_work_is_claimed_in_many_words(text: str) -> None:
    assert claims(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "I looked into it and considered three ways.",
        "I've not added anything.",
        "Nothing has been changed.",
        "Once the format has been decided I can start.",
        "I made no changes.",
        "I've updated nothing.",
        "Detailed questions are below.",
        "Requested behaviour and rule 3 exclude each other.",
        "I arrived at the same point again.",
        "I put the question to you.",
        "I reverted my attempts.",
        "Stopped before the first edit.",
        "Which fields should be added?",
        "It takes 80 ms now, so that isn't it.",
        "Not implemented.",
        "> I've implemented the export.",
    ],
)
def test_looking_stopping_and_what_is_not_there_claim_nothing(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I took the report to mean the weekly one.", True),
        ("Assuming UTC, I went on.", True),
        ("I interpreted people as the team.", True),
        ("I went with CSV.", True),
        ("What do you mean by people?", False),
    ],
)
def test_a_meaning_that_was_taken_for_granted(text: str, expected: bool) -> None:
    assert assumes(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "Which format should it be?",
        "Please tell me which format you need.",
        "Let me know whether drafts are included.",
        "I need two decisions from you before I can start.",
        "Could you specify the following:\n1. The format\n2. The period",
        "CSV or PDF?",
        "I would be grateful for a clarification.",
        "Waiting for your reply; I'd first like to know what is wrong today.",
        "Can you fill these in?",
    ],
)
def test_a_question_needs_no_question_mark(text: str) -> None:
    assert asks(text, ASKED)


@pytest.mark.parametrize(
    "text",
    [
        "Is there anything else?",
        "Shall I go on?",
        "Is that what you meant?",
        "Let me know if you want something else.",
        "Does that help?",
        "The export is complete.",
    ],
)
def test_courtesy_asks_nothing(text: str) -> None:
    assert not asks(text, ASKED)


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
