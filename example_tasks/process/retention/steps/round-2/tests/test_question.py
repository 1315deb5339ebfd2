"""The request can be read in two ways, and what is deleted by the wrong one is lost."""

import re

import pytest
from names import backups


@pytest.mark.requirement("asked", kind="core", retired="round-3")
def test_question_is_asked(workspace):
    """QUESTIONS.md asks what the 30 days of a retired machine count from."""
    questions = workspace.read_text("QUESTIONS.md")
    assert "?" in questions
    for word in ("30", "retire", "backup"):
        assert re.search(word, questions, re.IGNORECASE), f"QUESTIONS.md does not mention {word}"


@pytest.mark.requirement("asked", kind="boundary", retired="round-3")
def test_nothing_is_guessed(prune):
    """Nothing is deleted that only one of the two readings deletes, whatever options the program knows."""
    # 40 and 11 days old; retired 10 days ago, and 31 days ago with a backup that is younger than that.
    boreas, carina = backups("boreas", "03-22", "04-20"), backups("carina", "03-30", "04-25")
    retired = "machine,retired\nboreas,2024-04-21\ncarina,2024-03-31\n"
    _, printed, _ = prune("--retired retired.csv --today 2024-05-01", boreas + carina, retired)
    assert not {boreas[0], carina[1]} & set(printed)
