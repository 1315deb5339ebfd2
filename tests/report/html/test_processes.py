"""The process of attempts is read where it was scored, and summarised as ``evocode process`` does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.process.scores.rigor_score import PILLARS, AttemptProcess, Pillar, RoundProcess
from pytest_evocode.process.scores.summary import by_task, summarise_agent, within_tasks
from pytest_evocode.report.html.index import index_of
from pytest_evocode.report.html.processes import PROCESS_FILE
from pytest_evocode.report.process import score_and_outcome
from pytest_evocode.results.loading import load_results
from tests.report.html.contract import faults
from tests.result_trees import write_attempt


def scored(
    root: Path, task: str, agent: str, values: list[Mapping[str, float | None]], outcome: float = 1.0
) -> AttemptProcess:
    """An attempt whose process was scored, with pillars by round."""
    path = write_attempt(root, task, agent, "p" * len(values))
    rounds = tuple(
        RoundProcess(
            round=f"round-{index}",
            index=index,
            edited=True,
            pillars={name: Pillar(value=of.get(name), parts={}) for name in PILLARS},
            outcome=outcome,
        )
        for index, of in enumerate(values, 1)
    )
    process = AttemptProcess(task=task, agent=agent, attempt=1, rounds=rounds)
    (path / PROCESS_FILE).write_text(process.model_dump_json())
    return process


def index(root: Path) -> dict[str, Any]:
    results = load_results([root])
    found = index_of(score_table(results), results, title="", roots=[root])
    assert faults(found, "Index") == []
    return found


def test_pillars_have_their_means_and_how_often_they_were_measured(tmp_path: Path) -> None:
    process = scored(tmp_path, "a", "gpt", [{"pf": 1.0, "vc": 0.5}, {"pf": 0.5}])
    write_attempt(tmp_path, "a", "other")
    rows = {row["name"]: row["process"] for row in index(tmp_path)["rows"]}
    assert rows["other"] is None
    shown = rows["gpt"]
    whole = summarise_agent(by_task([process])["gpt"])
    assert whole.score is not None
    assert shown["score"] == pytest.approx(100 * whole.score.value)
    assert {name: each["value"] for name, each in shown["pillars"].items()} == dict(whole.values)
    assert [shown["pillars"][name]["coverage"] for name in ("pf", "vc", "re")] == [1.0, 0.5, 0.0]
    assert shown["rounds"] == 2
    assert (shown["interval"], shown["pillars"]["pf"]["interval"]) == (None, None)  # Of one task there is none.


def test_from_five_tasks_on_there_are_intervals_and_a_correlation(tmp_path: Path) -> None:
    found = []
    for number in range(6):
        for agent, shift in (("gpt", 0.0), ("o3", 0.05 * number)):
            value = 0.1 * number + shift
            found.append(scored(tmp_path, f"t{number}", agent, [{"pf": value, "vc": 0.5}], outcome=value**2))
    shown = index(tmp_path)
    for row in shown["rows"]:
        for name in ("pf", "vc"):
            pillar = row["process"]["pillars"][name]
            assert 0 <= pillar["interval"]["low"] < pillar["value"] < pillar["interval"]["high"] <= 1
        assert row["process"]["interval"]["low"] < row["process"]["score"] < row["process"]["interval"]["high"]
        assert row["process"]["pillars"]["re"] == {"value": None, "coverage": 0.0, "interval": None}
    said = within_tasks(score_and_outcome(found))
    assert said.interval is not None
    outcome = shown["process_outcome"]
    assert (outcome["r"], outcome["n"]) == (said.r, 6)
    assert outcome["interval"] == {"low": said.interval.low, "high": said.interval.high}


def test_a_correlation_that_cannot_be_computed_says_why(tmp_path: Path) -> None:
    scored(tmp_path, "a", "gpt", [{"pf": 1.0}])
    found = index(tmp_path)["process_outcome"]
    assert (found["r"], found["interval"], found["n"]) == (None, None, 1)
    assert "no correlation below 5 tasks" in found["note"]


@pytest.mark.parametrize("content", ["{", "[]", '{"task": "a"}', "\0"])
def test_a_damaged_file_is_named_and_the_rest_counts(tmp_path: Path, content: str) -> None:
    scored(tmp_path, "a", "gpt", [{"pf": 1.0}])
    scored(tmp_path, "b", "gpt", [{"pf": 0.0}])
    (damaged,) = tmp_path.glob("b/**/process.json")
    damaged.write_text(content)
    found = index(tmp_path)
    assert sum(str(damaged) in problem for problem in found["problems"]) == 1
    assert found["rows"][0]["process"]["pillars"]["pf"]["value"] == 1.0


def test_a_directory_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (write_attempt(tmp_path) / PROCESS_FILE).mkdir()
    assert any(PROCESS_FILE in problem for problem in index(tmp_path)["problems"])
