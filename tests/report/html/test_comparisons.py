"""Rows that can be compared are, with the numbers of ``evocode compare``, and others are not."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.comparison import compare
from pytest_evocode.metrics.score_table import ScoreTable, score_table
from pytest_evocode.metrics.task_values import Metric
from pytest_evocode.report.html.ids import row_id
from pytest_evocode.report.html.rows import MOST, SR_BY_TASK, comparisons_of
from pytest_evocode.results.loading import load_results
from tests.report.html.contract import faults
from tests.result_trees import write_attempt

METRICS: tuple[Metric, ...] = ("dataset_score", "case_score", "mt_at_k")
NEW = "2026-02-01__00-00-00"


def table_of(root: Path) -> ScoreTable:
    return score_table(load_results([root]))


def compared(root: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The pairs by the names of their rows; they are as declared."""
    table = table_of(root)
    found = comparisons_of(table)
    assert faults(found, "Comparisons") == []
    names = {row_id(row): row.name for row in table.rows}
    return {(names[pair["first"]], names[pair["second"]]): pair for pair in found["pairs"]}


def write_board(root: Path, tasks: int = 6) -> None:
    for number in range(tasks):
        write_attempt(root, f"t{number}", "good", "ppp", cases=["p", "pp", "pp"])
        write_attempt(root, f"t{number}", "poor", "ppf" if number % 2 else "fpp", cases=["p", "pp", "pf"])
        write_attempt(root, f"t{number}", "nop", "fff", cases=["f", "ff", "ff"])


@pytest.mark.parametrize("tasks", [1, 6])
def test_numbers_are_those_of_evocode_compare(tmp_path: Path, tasks: int) -> None:
    write_board(tmp_path, tasks)
    found = compared(tmp_path)
    rows = {row.name: row for row in table_of(tmp_path).rows}
    assert list(found) == list(combinations(["good", "poor", "nop"], 2))
    for (first, second), pair in found.items():
        by_field = {each["field"]: each for each in pair["differences"]}
        assert tuple(by_field) == METRICS
        for metric in METRICS:
            said, shown = compare(rows[first].grid, rows[second].grid, metric), by_field[metric]
            for name in ("first", "second", "difference", "p_value", "won", "lost", "tied", "tasks"):
                assert shown[name] == getattr(said, name), name
            interval = said.interval and {"low": said.interval.low, "high": said.interval.high}
            assert shown["interval"] == interval
        headline = compare(rows[first].grid, rows[second].grid)
        assert pair["flips"] == [
            {"task": flip.task, "round": flip.index, "first": flip.first, "second": flip.second}
            for flip in headline.flips
        ]
        assert pair["flips_p_value"] == headline.flips_p_value
        assert pair["flips_by_task_p_value"] == headline.flips_by_task_p_value
        assert pair["same_attempts"]


def test_rows_of_different_modes_conditions_or_tasks_are_not_compared(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "one")
    write_attempt(tmp_path, "a", "two", mode="fail-stop")
    write_attempt(tmp_path, "a", "three", environment="docker")
    write_attempt(tmp_path, "b", "four")
    assert compared(tmp_path) == {}


def test_rows_over_different_tasks_are_compared_over_those_that_both_have(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "one", "pp")
    write_attempt(tmp_path, "b", "one", "ff")
    write_attempt(tmp_path, "a", "two", "pf")
    write_attempt(tmp_path, "c", "two", "pp")
    (pair,) = compared(tmp_path).values()
    assert {*pair["only_first"], *pair["only_second"]} == {"b", "c"}
    assert [each["tasks"] for each in pair["differences"]] == [1, 1]
    assert abs(pair["differences"][0]["difference"]) == 50.0


def test_the_best_of_attempts_is_compared_for_equal_k_only(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "one", "pp")
    write_attempt(tmp_path, "a", "one", "pf", number=2)
    write_attempt(tmp_path, "a", "two", "pf")
    (pair,) = compared(tmp_path).values()
    assert not pair["same_attempts"]
    assert [each["field"] for each in pair["differences"]] == ["dataset_score"]


def test_single_rounds_are_compared_beside_their_chains_and_by_themselves(tmp_path: Path) -> None:
    for agent, outcomes in (("one", "ppp"), ("two", "pff")):
        write_attempt(tmp_path, "a", agent, outcomes)
        write_attempt(tmp_path, "a", agent, outcomes, mode="single-round", run=NEW)
    found = compared(tmp_path)
    assert [[each["field"] for each in pair["differences"]] for pair in found.values()] == [
        [*(metric for metric in METRICS if metric != "case_score"), SR_BY_TASK],
        [SR_BY_TASK],
    ]
    alone = found["one (single-round)", "two (single-round)"]
    assert alone["differences"][0]["difference"] == pytest.approx(-200 / 3)
    assert len(alone["flips"]) == 2


def test_of_many_rows_only_pairs_with_the_best_are_there(tmp_path: Path) -> None:
    for number in range(MOST + 2):
        write_attempt(tmp_path, "a", f"agent-{number:02}", "pf")
    write_attempt(tmp_path, "a", "best", "pp")
    found = compared(tmp_path)
    assert len(found) == MOST * (MOST - 1) // 2 + 3
    assert {first for first, second in found if second == "agent-17"} == {"best"}
    assert f"of more than {MOST} rows" in comparisons_of(table_of(tmp_path))["note"]


def test_nothing_has_no_pairs(tmp_path: Path) -> None:
    assert compared(tmp_path) == {}
