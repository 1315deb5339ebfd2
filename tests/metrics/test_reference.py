"""What ``evocode results`` and ``leaderboard`` print against the reference, over random directories."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_evocode.cli import main
from pytest_evocode.results.records import RECORD_VERSION
from tests.click_runner import separating_runner
from tests.metrics import random_trees, reference, reference_cases

_SEEDS = 2**32
DIMENSIONS = ("task", "round", "activity", "change", "category")


def evocode(*arguments: str | Path) -> Any:
    """The JSON that a command prints; None where there is nothing to count."""
    ran = separating_runner().invoke(main, [*map(str, arguments), "--json"])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), arguments
    if ran.exit_code:
        assert "there are no results in" in ran.stderr
        return None
    return json.loads(ran.stdout)


def same(found: Any, expected: Any) -> None:
    """Assert that all that is expected is there, numbers to twelve digits."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            same(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-9)
    else:
        assert found == expected


def test_the_reference_reads_the_current_version() -> None:
    assert random_trees.VERSION == reference.VERSION == RECORD_VERSION


# Each part draws other trees; by night there are enough to meet what is wrong in one of a hundred.
parts = pytest.mark.parametrize("part", range(20))


@pytest.mark.matrix
@parts
@settings(max_examples=30)
@given(seed=st.integers(0, _SEEDS - 1), all_runs=st.booleans())
def test_all_numbers_are_those_of_the_reference(part: int, seed: int, all_runs: bool) -> None:
    random = Random(part * _SEEDS + seed)
    by = random.choice(DIMENSIONS)
    with tempfile.TemporaryDirectory() as root:
        trees = random_trees.RandomTrees(Path(root).resolve(), random)
        options = ["--all-runs"] if all_runs else []
        found = evocode("results", *trees.directories, "--by", by, *options)
        expected = reference.results(trees.directories, by, all_runs)
        if found is None:
            assert expected == []
            return
        assert evocode("results", *reversed(trees.directories), "--by", by, *options) == found
        assert len(found["rows"]) == len(expected)
        for row, wanted in zip(found["rows"], expected, strict=True):
            assert row.keys() >= wanted.keys()
            assert row["groups"].keys() == wanted["groups"].keys()
            assert row["rewards"].keys() == wanted["rewards"].keys()
            same(row | {"partial": sum(each["counts"] for each in row["partial"])}, wanted)
        board = evocode("leaderboard", "--no-intervals", *trees.directories) or []
        best_first = {row["name"]: row for row in reference.leaderboard(trees.directories)}
        rankings = {entry["agent"]: entry["ranking_group"] for entry in board}
        # Each ranking is by itself; in each the best comes first.
        assert list(rankings) == sorted(best_first, key=lambda name: rankings[name])
        for entry in board:
            row = best_first[entry["agent"]]
            assert entry["partial"] == row["partial"]
            same(entry, {name: row["scores"][name] for name in entry.keys() & row["scores"].keys()})


@pytest.mark.matrix
@parts
@settings(max_examples=40)
@given(seed=st.integers(0, _SEEDS - 1))
@example(seed=548908)  # Of the third part: a task whose suites report no cases at all.
def test_what_is_told_case_by_case_is_that_of_the_reference(part: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        reference_cases.CaseTrees(root, Random(part * _SEEDS + seed))
        agents = reference_cases.read(root)
        failures, analyses, metrics = (evocode(command, root) for command in ("failures", "analyses", "metrics"))
        rows = {row["name"]: row for row in analyses["rows"]}
        assert rows.keys() == metrics.keys() == failures["kinds"].keys() == agents.keys()
        for agent, tasks in agents.items():
            attempts = [rounds for of_task in tasks.values() for rounds in of_task.values()]
            kinds = failures["kinds"][agent]
            assert kinds["cases"] == reference_cases.case_kinds(attempts)
            assert kinds["rounds"] == reference_cases.round_kinds(agent, agents)
            same(failures["pass_rates"][agent], reference_cases.pass_rates(tasks))
            survival = reference_cases.survival(tasks)
            assert rows[agent]["kaplan_meier"].keys() == survival.keys()
            same(rows[agent]["kaplan_meier"], survival)
            same(metrics[agent], reference_cases.neighbours(agent, agents))


@pytest.mark.matrix
@parts
@settings(max_examples=10)
@given(seed=st.integers(0, _SEEDS - 1))
def test_hazards_are_those_of_the_reference(part: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        reference_cases.CaseTrees(root, Random(part * _SEEDS + seed))
        agents = reference_cases.read(root)
        found = evocode("hazard", root)
        expected: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        kept: dict[tuple[Any, ...], float] = {}
        for agent in agents:
            for event, keys in reference_cases.hazard(agent, agents).items():
                share = 1.0
                for key, (censored, others, events) in sorted(keys.items(), key=lambda each: str(each[0])):
                    if others + events:
                        expected[agent, event, key] = events, others + events, censored
                    if isinstance(key, int) and others + events and share:
                        share *= others / (others + events)
                        kept[agent, event, key] = 100 * (share if event == "break" else 1 - share)
        rows = [(row, row["rounds"] or "all") for row in found["hazard"]]
        rows += [(row, row["change"]) for row in found["hazard-by-change"]]
        numbers = {
            (row["agent"], row["event"], key): (row["events"], row["at_risk"], row["censored"]) for row, key in rows
        }
        assert numbers == expected
        assert all(row["percent"] == pytest.approx(100 * row["events"] / row["at_risk"]) for row, _ in rows)
        curves = {(row["agent"], row["event"], row["rounds"]): row["percent"] for row in found["hazard-curves"]}
        assert curves == pytest.approx(kept)
        for row in (*found["hazard-curves"], *(row for row, _ in rows)):
            assert row["percent_low"] is None or row["percent_low"] <= row["percent"] <= row["percent_high"]
