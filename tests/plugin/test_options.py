"""What ``pytest --help`` says of our options."""

from __future__ import annotations

import pytest

from pytest_evocode.plugin import options
from pytest_evocode.plugin.options import conditions
from pytest_evocode.results.identity import DEFAULT_SETTINGS

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


def test_what_can_change_a_verdict_or_a_score_is_among_the_conditions(pytester: pytest.Pytester) -> None:
    assert conditions(pytester.parseconfigure()) == DEFAULT_SETTINGS == {"timeout-multiplier": "1", "verify-times": "1"}
    pytester.makeini("[pytest]\nevocode_reward_key = tests\nevocode_waiting_minutes = 5.0\n")
    given = ["--evocode-verify-times=3", "--evocode-strict", "--evocode-budget=turns=9,total-cost=5"]
    beside = ["--evocode-jobs=4", "--evocode-keep", "--evocode-report", "--evocode-agent-option=token=secret"]
    assert conditions(pytester.parseconfigure(*given, *beside)) == {
        "budget": "turns=9",
        "reward-key": "tests",
        "strict": "yes",
        "timeout-multiplier": "1",
        "verify-times": "3",
    }


def test_a_new_option_or_setting_is_a_condition_unless_it_says_that_it_changes_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nevocode_storage = kept\n")
    config = pytester.parseconfigure("--evocode-strict")
    monkeypatch.setattr(options, "_CHANGE_NOTHING", (*set(options._CHANGE_NOTHING) - {"jobs"},))
    assert conditions(config) == {**DEFAULT_SETTINGS, "strict": "yes", "jobs": "1"}
