"""The chart of requirements over rounds."""

from __future__ import annotations

import pytest

from pytest_evocode.report.task import Life, life_lines


def chart(rounds: int, *lives: Life) -> list[str]:
    return [*life_lines(lives, [f"round-{number}" for number in range(1, rounds + 1)])]


@pytest.mark.parametrize("rounds", [1, 2, 9, 12, 15, 26])
def test_it_fits_80_columns(rounds: int) -> None:
    last = f"round-{rounds}"
    shown = chart(
        rounds,
        Life("a-requirement-of-32-characters-xx", "round-1", "", "core, boundary, error, integration", "12*"),
        Life("short", last, "", "core", "1*"),
        Life("an-id-that-is-too-long-for-any-column-of-a-chart", "round-1", last if rounds > 1 else "", "error", "2*"),
    )
    assert max(map(len, shown)) <= 80
    assert "an-id-that-is-too-long-for-any-column-of-a-chart" in shown
    assert " ".join(" ".join(shown).split()).count("integration") == 1


def test_a_bar_goes_from_the_round_that_introduces_to_the_one_that_retires() -> None:
    shown = chart(
        4,
        Life("gone", "round-1", "round-2", "core", "1"),
        Life("late", "round-4", "", "core", "1"),
        Life("middle", "round-2", "round-4", "core", "1"),
    )
    assert [line[13:23] for line in shown[:-1]] == ["1  2  3  4", "o==x      ", "         o", "   o=====x"]


def test_many_rounds_have_every_fifth_number() -> None:
    shown = chart(26, Life("all", "round-1", "", "core, boundary, error, integration", "1"))
    assert shown[0].split()[1:-2] == ["1", "5", "10", "15", "20", "25"]
    assert shown[0][shown[1].index("o=") + 24 :].startswith("25")


def test_rounds_that_have_names_are_told_by_number() -> None:
    lives = [Life("answer", "create", "query", "core", "1")]
    assert [*life_lines(lives, ["create", "query"])][-1] == "1 create, 2 query"


def test_what_authors_wrote_moves_no_cursor() -> None:
    assert chart(1, Life("a\x1b[2J\nb", "round-1", "", "core", "1"))[1].startswith(r"a\x1b[2J\nb")
