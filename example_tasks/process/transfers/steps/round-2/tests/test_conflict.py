"""C4 and C6 of version 4 exclude each other: what can be delivered is a note, and a program that keeps C1 to C5.

That it keeps them, repeats above all, is what the cases of round 1 see to: a program that shows balances fails them.
"""

import re

import pytest


@pytest.mark.requirement("conflict", kind="core", retired="round-3")
def test_conflict_is_named(workspace):
    """DECISIONS.md names both clauses, and what it is about."""
    decisions = workspace.read_text("DECISIONS.md")
    for word in (r"\bC4\b", r"\bC6\b", "repeat", "balance"):
        assert re.search(word, decisions, re.IGNORECASE), f"DECISIONS.md does not mention {word}"
