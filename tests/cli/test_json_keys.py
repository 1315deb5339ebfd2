"""The documentation has every key of the JSON of results and of compare, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.report.json_keys import COMPARE_KEYS, RESULTS_KEYS, keys_of, markdown_of_keys
from pytest_evocode.results.records import Usage
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    usage = Usage(prompt_tokens=9, cached_tokens=1, completion_tokens=1, requests=1, cost_usd=0.5)
    for agent in ("one", "two"):
        more = {"usage": usage, "tool_calls": 1, "verifier_seconds": 1.0}
        write_attempt(tmp_path / "evocode-results", "a", agent, "pf", **more)  # type: ignore[arg-type]
    write_attempt(tmp_path / "evocode-results", "b", "one", "p", of=2, finished=False)


def test_every_key_of_results_is_documented(evocode: Evocode) -> None:
    assert {*keys_of(evocode("results", "--json").json, RESULTS_KEYS)} | {"rows", "unscored"} == {*RESULTS_KEYS}


def test_every_key_of_compare_is_documented(evocode: Evocode) -> None:
    found = [
        pair | {"metrics": [*pair["metrics"].values()]} for pair in evocode("compare", "one", "two", "--json").json
    ]
    assert {*keys_of(found, COMPARE_KEYS)} == {*COMPARE_KEYS}


def test_keys_stand_in_a_table() -> None:
    assert "| `rows.scores.sr_macro` | The share of a task's single rounds passed, the mean over tasks |" in {
        *markdown_of_keys()
    }
