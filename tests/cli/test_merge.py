"""``evocode merge``: shards come together, and what is missing is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt, write_session

SELECTED = {task: {"gpt": [1, 2]} for task in ("a", "b", "c")}


def write_shard(directory: Path, number: int, attempts: dict[tuple[str, int], str]) -> None:
    run = f"2026-01-0{number}__00-00-00"
    for (task, attempt), outcomes in attempts.items():
        write_attempt(directory, task, "gpt", outcomes, number=attempt, run=run, cases=["p"] * len(outcomes))
    write_session(directory, SELECTED, run=run, shard=(number, 3))


@pytest.fixture(autouse=True)
def _shards(tmp_path: Path) -> None:
    write_shard(tmp_path / "one", 1, {("a", 1): "pp", ("b", 2): "pf"})
    write_shard(tmp_path / "two", 2, {("a", 2): "pf", ("b", 1): "pp"})
    write_shard(tmp_path / "three", 3, {("c", 1): "ff", ("c", 2): "fp"})


def test_shards_score_as_one_run_does(evocode: Evocode, tmp_path: Path) -> None:
    ran = evocode("merge", "one", "two", "three", "-o", "merged")
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines == ["merged 3 directories into merged: 6 attempts of 3 runs", "nothing is missing"]
    for task, number, outcomes in (
        ("a", 1, "pp"), ("a", 2, "pf"), ("b", 1, "pp"), ("b", 2, "pf"), ("c", 1, "ff"), ("c", 2, "fp"),
    ):  # fmt: skip
        write_attempt(tmp_path / "whole", task, "gpt", outcomes, number=number, cases=["pp"] * len(outcomes))
    for by in ([], ["--by", "task"], ["--by", "round"]):
        assert evocode("results", "merged", *by).out == evocode("results", "whole", *by).out
    assert evocode("leaderboard", "merged").out == evocode("leaderboard", "whole").out


def test_results_of_a_shard_alone_name_the_others(evocode: Evocode) -> None:
    told = evocode("results", "one").err
    for number in (2, 3):
        assert f"note: shard {number} of 3 is not here, and its attempts count as not passed; name it too" in told
    assert "shard" not in evocode("results", "one", "two", "three").err


@pytest.mark.parametrize("command", [("results", "--view", "leaderboard"), ("results", "--format", "md")])
def test_what_is_missing_is_in_markdown_too(evocode: Evocode, command: tuple[str, ...]) -> None:
    evocode("merge", "one", "three", "-o", "merged")
    ran = evocode(*command, "merged")
    assert "shard 2 of 3 is not here, and its attempts count as not passed; name it too (2 attempts not run)" in ran.out
    assert "a attempt 2, b attempt 1" in ran.out


def test_a_shard_that_is_not_there_is_named_with_its_attempts(evocode: Evocode) -> None:
    ran = evocode("merge", "one", "three", "-o", "merged")
    assert ran.status == 1
    assert ran.err == "error: 1 shard missing, 2/3; merge again when the results are there\n"
    assert ran.lines == [
        "merged 2 directories into merged: 4 attempts of 2 runs",
        "missing: shard 2 of 3",
        "missing, counted as not passed: 2 attempts",
        "a gpt attempt 2",
        "b gpt attempt 1",
    ]
    told = evocode("merge", "one", "three", "-o", "again", "--json")
    found = json.loads(told.out)
    assert told.status == 1
    assert [each["name"] for each in found.pop("agents")] == ["gpt"]
    assert found == {
        "output": "again",
        "attempts": 4,
        "runs": 2,
        "missing_shards": ["2/3"],
        "missing": [
            {"agent": "gpt", "task": "a", "attempt": 2},
            {"agent": "gpt", "task": "b", "attempt": 1},
        ],
        "unfinished": [],
        "left_out": [],
    }


def test_what_was_broken_off_is_named(evocode: Evocode, tmp_path: Path) -> None:
    broken = write_attempt(tmp_path / "four", "d", "gpt", "p", of=2, finished=False)
    write_attempt(tmp_path / "four", "a", "gpt", "p", of=2, number=1, finished=False)
    ran = evocode("merge", "one", "four", "-o", "merged")
    assert f"left out, because another directory has it whole or finished: {tmp_path}/four/a/harbor_jobs/gpt" in ran.out
    assert f"not finished: {tmp_path}/merged/{broken.relative_to(tmp_path / 'four')}" in ran.out


def test_an_attempt_that_a_shard_has_unfinished_is_in_no_score_and_merging_fails(
    evocode: Evocode, tmp_path: Path
) -> None:
    run = "2026-01-03__00-00-00"
    shutil.rmtree(tmp_path / "three")
    write_shard(tmp_path / "three", 3, {("c", 1): "ff"})
    write_attempt(tmp_path / "three", "c", "gpt", "p", of=2, number=2, run=run, finished=False)
    write_session(tmp_path / "three", SELECTED, run=run, shard=(3, 3), interrupted=True)
    ran = evocode("merge", "one", "two", "three", "-o", "merged")
    assert ran.status == 1
    assert "missing" not in ran.out
    assert ran.err == "error: 1 attempt of shards not scored, c gpt attempt 2; go on with them, and merge again\n"
    found = evocode("results", "merged", "--json").json
    assert [(each["task"], each["attempt"], each["state"]) for each in found["unscored"]] == [("c", 2, "unfinished")]
    (row,) = found["rows"]
    assert row["missing"] == []


def test_what_no_run_tells_is_not_known_to_be_missing(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "old", "a", "gpt")
    ran = evocode("merge", "old", "-o", "merged")
    assert ran.lines[-1] == "what is missing is not known: no run records what was to be run"


def test_conflicts_are_refused_and_nothing_is_written(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "other", "a", "gpt", "ff", number=1)
    ran = evocode("merge", "one", "other", "-o", "merged")
    assert (ran.status, ran.out) == (1, "")
    assert "the same attempts are there twice" in ran.err
    assert f"attempt 1 of gpt at a: {tmp_path}/one/a/" in ran.err
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["one"], 2, "Missing option '-o'"),
        (["-o", "merged"], 2, "Missing argument 'DIR...'"),
        (["one", "-o", "two"], 2, "two is not empty"),
        (["empty", "-o", "merged"], 1, "there are no results in empty"),
    ],
)
def test_what_cannot_be_merged_is_told(
    evocode: Evocode, tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    ran = evocode("merge", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert message in ran.err
