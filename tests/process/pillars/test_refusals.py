"""What declines a request, in many words, and what only sounds like it."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars.refusals import declining, waits


@pytest.mark.parametrize(
    "text",
    [
        # It is against itself.
        "There is no function that satisfies all three rules.",
        "No limiter can guarantee this.",
        "Such a sort with n comparisons therefore does not exist.",
        "**The conflict:** a gapless sequence moves when an invoice is deleted.",
        "The first and the last rule are in direct conflict.",
        "These are conflicting requirements.",
        "Whatever I write, one of the two is violated.",
        "The two demands pull in opposite directions.",
        "The two properties cannot coexist.",
        # Nothing was changed.
        "No edit made.",
        "No files were changed.",
        "I haven't modified `billing/models.py`.",
        "I stopped before editing.",
        "I have left the code as it was.",
        "Nothing has been changed.",
        # It is not to be done.
        "I don't think I should implement it as written.",
        "I would rather not do this.",
        "I decided against the deletion.",
        "I am not authorized to drop the table.",
        "It is unsafe to run this on the live data.",
        "I do not have access to the schema.",
        "I must not delete the audit log.",
        "There is not enough information to choose a format.",
        # It was given up.
        "Sorry, I was not able to do this.",
        "I gave up after three attempts.",
        "I couldn't get this to work.",
        "We did not manage to finish it.",
        "I have not changed anything yet; I will implement it once you decide.",
    ],
)
def test_a_refusal_is_found_in_many_words(text: str) -> None:
    assert declining(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "This is not impossible.",
        "I would not call it impossible.",
        "It is hard, but by no means impossible.",
        "At first it looked impossible, but a cache solves it.",
        "I removed the conflict between the two branches.",
        "A 409 Conflict is answered now.",
        'The request says "no file can satisfy both", and the tests cover it.',
        "> It is impossible to meet both.",
        "It is now impossible to delete a paid invoice.",
        "Nothing is written yet, I will implement the parser next.",
        "I'll implement the second part tomorrow; it was not possible today.",
        "I fixed the parser without changing its signature.",
        "All tests pass, and no warning is left.",
        "Users see no drafts any more.",
        "The client gives up after three retries.",
    ],
)
def test_what_takes_it_back_quotes_it_or_tells_of_the_product_is_no_refusal(text: str) -> None:
    assert declining(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please decide which of the two counts.", True),
        ("I don't know whether the total includes tax.", True),
        ("I need your decision first.", True),
        ("Done; the total includes tax.", False),
    ],
)
def test_who_needs_an_answer_waits(text: str, expected: bool) -> None:
    assert waits(text) is expected
