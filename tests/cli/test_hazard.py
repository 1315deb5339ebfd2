"""``evocode results --view hazard``: how often requirements break and are repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.results.records import TaskFacts
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    facts = TaskFacts(rounds=("round-1", "round-2", "round-3"), change_types=((), ("extension",), ("conflict",)))
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "fff", cases=["pf", "fp", "ppf"], facts=facts)
    write_attempt(root, "a", "gpt", "ppp", cases=["pf", "fp", "ppf"], mode="single-round", run="2026-02-02__03-04-05")
    write_attempt(root, "a", "other", "ppp", cases=["pp", "pp", "ppp"], facts=facts)


def test_events_are_counted_by_rounds_and_by_change_types(evocode: Evocode) -> None:
    lines = evocode("results", "--view", "hazard", "-q").lines
    assert "agent event all 1 2" in lines
    assert "gpt break 50.0 (1/2) 50.0 (1/2)" in lines
    assert "gpt repair 100.0 (1/1) 100.0 (1/1)" in lines
    assert "gpt catch-up 100.0 (1/1) 100.0 (1/1)" in lines
    assert "gpt kept unbroken 50.0" in lines
    assert "gpt caught up 100.0" in lines
    assert "agent event conflict extension" in lines
    assert "gpt break 0.0 (0/1) 100.0 (1/1)" in lines
    assert "no interval below 5 tasks and 5 attempts" in lines
    # Single rounds last for nothing, so they have no row.
    assert not any("single-round" in line for line in lines)


def test_an_agent_can_be_shown_alone_and_others_tell_what_rounds_require(evocode: Evocode) -> None:
    found = evocode("hazard", "--agent", "other", "--json").json
    assert {row["agent"] for row in found["hazard"]} == {"other"}
    whole = next(row for row in found["hazard"] if row["rounds"] is None)
    assert (whole["event"], whole["events"], whole["at_risk"], whole["censored"]) == ("break", 0, 4, 3)
    assert (whole["percent_low"], whole["clusters"]) == (None, None)
