"""``evocode pareto``: the front of score against cost, tokens and time."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt


def test_fronts_name_who_is_on_them_who_is_not_and_who_is_left_out(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "a", "good", "pp")
    write_attempt(results, "a", "poor", "pf")
    assert evocode("pareto", "-q").lines == [
        "agent score cost per attempt tokens per attempt agent time per attempt",
        "good 100.0 n/a n/a 3.0 s",
        "poor 50.0 n/a n/a 3.0 s",
        "",
        "score against cost: nobody",
        "good: left out, cost: known of 0 of 2 rounds",
        "poor: left out, cost: known of 0 of 2 rounds",
        "",
        "score against tokens: nobody",
        "good: left out, tokens: known of 0 of 2 rounds",
        "poor: left out, tokens: known of 0 of 2 rounds",
        "",
        "score against time: good",
        "poor: dominated by good",
        "",
        "score against cost, tokens and time: nobody",
        "good: left out, cost, tokens: known of 0 of 2 rounds",
        "poor: left out, cost, tokens: known of 0 of 2 rounds",
    ]
    (group,) = evocode("pareto", "-q", "--json").json
    assert group["agents"]["good"]["agent_seconds_per_attempt"] == {"value": 3.0, "known": 2, "of": 2}
    assert group["fronts"]["time"] == {"front": ["good"], "dominated": {"poor": ["good"]}, "left_out": {}}


def test_agents_that_ran_on_other_tasks_are_not_compared(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "one", "p")
    write_attempt(tmp_path / "evocode-results", "b", "two", "f")
    assert [group["fronts"]["time"]["front"] for group in evocode("pareto", "--json").json] == [["one"], ["two"]]


def test_controls_are_on_no_front(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "a", "good", "pf")
    write_attempt(results, "a", "oracle", "pp")
    lines = evocode("pareto").lines
    assert "score against time: good" in lines
    assert "oracle: left out, a control" in lines
    (group,) = evocode("pareto", "--json").json
    assert group["fronts"]["time"] == {"front": ["good"], "dominated": {}, "left_out": {"oracle": "a control"}}
    assert group["agents"]["oracle"]["score"] == 100
