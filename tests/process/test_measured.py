"""How often the rules are right is told beside the pillars, and the same in the documentation."""

from __future__ import annotations

from benchmarks.turn_labels import DOCUMENT, documented
from pytest_evocode.process.measured import Score, measured_lines


def test_the_documentation_has_what_the_benchmark_wrote() -> None:
    assert DOCUMENT.read_text(encoding="utf-8").splitlines() == [*documented()]


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
