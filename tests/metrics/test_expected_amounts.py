"""What attempts are expected to take, from what earlier ones took."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_evocode.metrics.spending import ExpectedAmounts, cost_of, seconds_of
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import Usage
from tests.result_trees import write_attempt


def seconds(*directories: Path) -> ExpectedAmounts:
    return ExpectedAmounts(load_results(directories).attempts, seconds_of)


def test_an_attempt_takes_the_mean_of_what_its_rounds_took(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "gpt", "pp")  # 1.5 seconds a round.
    write_attempt(tmp_path, "a", "gpt", "p-", number=2)
    expected = seconds(tmp_path)
    assert expected.of_attempt("gpt", "a", [1]) == 1.5
    assert expected.of_attempt("gpt", "a", [1, 2]) == 1.5 + 0.75


def test_what_is_unknown_takes_the_mean_of_what_is_nearest(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "gpt", "pp")
    expected = seconds(tmp_path)
    assert expected.of_attempt("gpt", "new", [1, 2, 3]) == 4.5
    assert expected.of_attempt("new", "a", [1]) == 1.5
    assert expected.of_attempt("new", "new", [1]) == 1.5
    assert (expected.knows("gpt", "a"), expected.knows("gpt", "new")) == (True, False)


def test_the_same_results_in_another_place_are_expected_alike(tmp_path: Path) -> None:
    for number, task in enumerate("abc", start=1):
        write_attempt(tmp_path / "here", task, "gpt", "p" * number)
    shutil.copytree(tmp_path / "here", tmp_path / "there" / "deeper")
    assert seconds(tmp_path / "here").digest == seconds(tmp_path / "there").digest
    write_attempt(tmp_path / "there", "d", "gpt", "p")
    assert seconds(tmp_path / "here").digest != seconds(tmp_path / "there").digest


def test_unknown_costs_are_not_taken_for_none(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "oracle", "p")
    assert not ExpectedAmounts(load_results([tmp_path]).attempts, cost_of)
    write_attempt(tmp_path, "a", "gpt", "pp", usage=Usage(cost_usd=0.25))
    costs = ExpectedAmounts(load_results([tmp_path]).attempts, cost_of)
    assert costs.of_attempt("gpt", "a", [1, 2]) == pytest.approx(0.5)
    assert not costs.knows("oracle", "a")
