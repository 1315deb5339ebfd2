"""``evocode pareto``: the front of score against cost, tokens and time."""

from __future__ import annotations

from pathlib import Path

from pytest_evocode.results.records import Usage
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


def test_from_five_tasks_on_it_is_said_how_sure_the_front_is(evocode: Evocode, tmp_path: Path) -> None:
    for place, task in enumerate("abcdef"):
        good, poor = (Usage(prompt_tokens=900, completion_tokens=0, cost_usd=cost + place / 10) for cost in (1, 2))
        write_attempt(tmp_path / "evocode-results", task, "good", "pp" if place else "pf", usage=good)
        write_attempt(tmp_path / "evocode-results", task, "poor", "pf", usage=poor)
    lines = evocode("pareto", "-q").lines
    assert (
        lines[0] == "agent score 95 % cost per attempt cost per attempt 95 % tokens per attempt agent time per attempt"
    )
    assert lines[1].startswith("good 91.7 ")
    assert "$2.5000 $2.1073..$2.8927" in lines[1]
    at = lines.index("score against cost: good")
    assert lines[at + 1 : at + 3] == ["good: on the front (100 %)", "poor: beaten (0 %); dominated by good (100 %)"]
    (group,) = evocode("pareto", "--json").json
    assert group["chances"]["cost"] == {
        "good": {"on_front": 1, "dominated_by": {}, "standing": "on the front"},
        "poor": {"on_front": 0, "dominated_by": {"good": 1}, "standing": "beaten"},
    }
    assert group["intervals"]["good"]["cost_usd_per_attempt"]["method"] == "Student's t"
    assert group["why_not"] == ""
    assert ",cost_standing,cost_chance," in evocode("pareto", "--format", "csv").out
    assert "poor,good,cost,1.0,1" in evocode("pareto", "--format", "csv", "--table", "pareto-pairs").out
    assert "front: cost" in evocode("pareto", "--format", "markdown").out


def test_below_five_tasks_json_says_why_nothing_is_sure(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "good", "pp")
    (group,) = evocode("pareto", "--json").json
    assert group["chances"]["time"] == {}
    assert group["intervals"]["good"] == dict.fromkeys(
        ("score", "cost_usd_per_attempt", "tokens_per_attempt", "agent_seconds_per_attempt")
    )
    assert group["why_not"] == "no interval below 5 tasks"
