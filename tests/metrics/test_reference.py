"""What ``evocode results`` and ``leaderboard`` print against the reference, over random directories."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_evocode.cli import main
from pytest_evocode.results.records import RECORD_VERSION
from tests.click_runner import separating_runner
from tests.metrics import random_trees, reference

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
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-9)
    else:
        assert found == expected


def test_the_reference_reads_the_current_version() -> None:
    assert random_trees.VERSION == reference.VERSION == RECORD_VERSION


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.booleans())
def test_all_numbers_are_those_of_the_reference(seed: int, all_runs: bool) -> None:
    random = Random(seed)
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
        board = evocode("leaderboard", "--no-intervals", *trees.directories)
        best_first = {row["name"]: row for row in reference.leaderboard(trees.directories)}
        rankings = {entry["agent"]: entry["ranking_group"] for entry in board}
        # Each ranking is by itself; in each the best comes first.
        assert list(rankings) == sorted(best_first, key=lambda name: rankings[name])
        for entry in board:
            row = best_first[entry["agent"]]
            assert entry["partial"] == row["partial"]
            same(entry, {name: row["scores"][name] for name in entry.keys() & row["scores"].keys()})
