"""The documentation has every key of the JSON of results and of compare, and no other."""

from __future__ import annotations

import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.results.records import Usage
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt

GENERATE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate.py"))
DESCRIBED: Mapping[str, Mapping[str, str]] = GENERATE["described_keys"]()


def keys_of(values: Any, described: Mapping[str, str], path: str = "") -> Iterator[str]:
    """The keys of JSON values by their paths, as far down as they are described."""
    if isinstance(values, list):
        for each in values:
            yield from keys_of(each, described, path)
    elif isinstance(values, dict):
        for key, value in values.items():
            name = f"{path}.{key}" if path else str(key)
            if any(each.startswith(f"{name}.") for each in described):
                yield from keys_of(value, described, name)
            else:
                yield name


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    usage = Usage(prompt_tokens=9, cached_tokens=1, completion_tokens=1, requests=1, cost_usd=0.5)
    for agent in ("one", "two"):
        more = {"usage": usage, "tool_calls": 1, "verifier_seconds": 1.0}
        write_attempt(tmp_path / "evocode-results", "a", agent, "pf", **more)  # type: ignore[arg-type]
    write_attempt(tmp_path / "evocode-results", "b", "one", "p", of=2, finished=False)


def test_every_key_of_results_is_documented(evocode: Evocode) -> None:
    described = DESCRIBED["results"]
    assert {*keys_of(evocode("results", "--json").json, described)} | {"rows", "unscored"} == {*described}


def test_every_key_of_compare_is_documented(evocode: Evocode) -> None:
    found = [
        pair | {"metrics": [*pair["metrics"].values()]} for pair in evocode("compare", "one", "two", "--json").json
    ]
    assert {*keys_of(found, DESCRIBED["compare"])} == {*DESCRIBED["compare"]}


def test_keys_stand_in_a_table() -> None:
    assert "| `rows.scores.sr_macro` | The share of a task's single rounds passed, the mean over tasks |" in {
        *GENERATE["json_keys"]()
    }
