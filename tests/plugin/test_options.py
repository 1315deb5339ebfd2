"""What ``pytest --help`` says of our options."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.every_python

TITLE = "multi-round coding benchmarks (pytest-evocode):"


@pytest.fixture(name="shown")
def _shown(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of our group on a terminal of 80 columns, without the title."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = pytester.runpytest_inprocess("--help").outlines
    begin = lines.index(TITLE) + 1
    return lines[begin : lines.index("", begin)]


def test_the_options_fit_a_screen(shown: list[str]) -> None:
    assert len(shown) <= 60
    assert all(len(line) <= 80 for line in shown)


def test_an_option_is_explained_in_one_or_two_lines(shown: list[str]) -> None:
    explanations: dict[str, list[str]] = {}
    for line in shown:
        if line.startswith("  --"):
            name, _, beside = line.strip().partition("  ")
            explanations[name] = rest = [beside] if beside else []
        else:
            rest.append(line.strip())
    assert len(explanations) > 20
    assert {name: len(lines) for name, lines in explanations.items() if not 1 <= len(lines) <= 2} == {}
