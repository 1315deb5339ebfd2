"""Edition 6 contradicts itself about `upgrade`."""

import re

import pytest
from model import deck, pattern


@pytest.mark.requirement("upgrade-doubt", kind="core", retired="round-7")
def test_question_is_asked(workspace):
    """QUESTIONS.md asks what `upgrade` does to DECK, with the sections."""
    questions = workspace.read_text("QUESTIONS.md")
    for word in ("upgrade", "DECK", r"\b1\b", r"\b5\b"):
        assert re.search(word, questions, re.IGNORECASE), f"QUESTIONS.md does not mention {word}"


@pytest.mark.requirement("upgrade-doubt", kind="boundary")
def test_decks_stay(loom):
    """`upgrade` with a deck alone leaves it as it is, sound or damaged, and everything else does its work."""
    code = [("set", "r1", -7), ("mod", "r1", 2), ("add", "r1", 1), ("knit", "r1"), ("row",)]
    decks = {f"{edition}.deck": deck(edition, code) for edition in (1, 3, 4, 5, 6)} | {"bad.deck": b"LOOM"}
    commands = [["upgrade", name] for name in decks] + [
        ["build", "p.knit", "p.deck"],
        ["run", "1.deck"],
        ["run", "p.deck"],
    ]
    answers = loom.all(commands, {"p.knit": pattern(code), **decks})
    assert {name: loom.tree.get(name) for name in decks} == decks
    assert answers[-3:] == [(0, "", ""), (0, "." * 40 + "\n", ""), (0, "00".ljust(40, ".") + "\n", "")]
