"""How often the rules are right is told beside the pillars, and the same in the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_evocode.process.measured import PILLAR, Score, measured_lines, scores

DOCUMENT = Path(__file__).parents[2] / "docs" / "process.md"


def rows() -> Iterator[str]:
    """Yield the rows of the table in the documentation."""
    for label, (pillar, name) in {**PILLAR, "uncertainty": ("", "doubts"), "items": ("pf", "steps of plans")}.items():
        for language, each in scores()[label].items():
            if language == "all" or label in ("plan", "clarification"):
                where = "" if language == "all" else f", {language}"
                turns = f"{each.turns}, {each.unread} unread" if each.unread else str(each.turns)
                yield f"| {pillar.upper()} | {name}{where} | {turns} | {each.precision} | {each.recall} |"


def test_the_documentation_has_what_the_benchmark_wrote() -> None:
    told = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert [row for row in rows() if row not in told] == []


def test_a_pillar_says_how_often_its_rules_are_right_and_what_they_do_not_read() -> None:
    head, *lines = measured_lines(["aq", "vc"])
    assert "held back" in head
    assert all(line.startswith(("  AQ, ", "  * ")) for line in lines)
    assert any("turns in other languages are not read" in line for line in lines)
    assert list(measured_lines(["vc", "ee"])) == []


def test_a_share_of_few_turns_is_nothing_to_rely_on() -> None:
    assert not Score(turns=9, there=3, found=3, right=3).is_sure
    assert Score(turns=90, there=30, found=30, right=30).is_sure


def test_a_share_that_is_nothing_is_not_known() -> None:
    assert Score(turns=5).precision == "n/a"
