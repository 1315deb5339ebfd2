"""Records that contradict themselves are named with what to do, and nothing is counted from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.results.loading import load_results
from tests.result_trees import write_attempt, write_session

Change = Callable[[dict[str, Any]], object]


def of_round(**values: object) -> Change:
    return lambda record: record["rounds"][1].update(values)


def of_verdict(**values: object) -> Change:
    return lambda record: record["rounds"][1]["verdict"].update(values)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda record: record["rounds"].append(record["rounds"][0]), "it has round 1 2 times"),
        (lambda record: record.update(declared_rounds=[], rounds=[]), "it says that the task has no rounds"),
        (of_round(index=0), "round-2 is round 0 of 2"),
        (of_round(index=7), "round-2 is round 7 of 2"),
        (of_round(declared_rounds=9), "round-2 is of 9 rounds, and the attempt of 2"),
        (
            of_round(task="other"),
            "round-2 is of attempt 1 of gpt at other, and the others of attempt 1 of gpt",
        ),
        (of_round(tool_calls=-1), "round-2 has -1 tool calls"),
        (of_round(agent_seconds=-1.0), "round-2 took a negative time"),
        (of_round(phases={"suite": -1.0}), "round-2 took a negative time"),
        (of_round(phases={"suite": float("nan")}), "rounds.1.phases.suite: Input should be a finite number"),
        (of_round(agent_seconds=float("nan")), "rounds.1.agent_seconds: Input should be a finite number"),
        (of_round(usage={"prompt_tokens": -5}), "round-2 used a negative number of tokens"),
        (of_verdict(counts=[5, 2]), "in round-2 5 of 2 cases passed"),
        (of_verdict(pinned=[-1, 2]), "in round-2 -1 of 2 cases passed"),
        (of_verdict(reward=float("inf")), "rounds.1.verdict.reward: Input should be a finite number"),
        (lambda record: record.update(attempt=-3), "it has the number -3, and attempts are numbered from 1"),
    ],
)
def test_an_attempt_that_contradicts_itself_is_left_out(tmp_path: Path, change: Change, why: str) -> None:
    path = write_attempt(tmp_path, cases=["p", "p"]) / "result.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    for text in (json.dumps(record, indent=1), json.dumps(record)):  # Read the fast way, and not.
        path.write_text(text, encoding="utf-8")
        results = load_results([tmp_path])
        assert (results.attempts, len(results.problems)) == ([], 1)
        assert results.problems[0].startswith(f"{path}: {why}")
        assert results.problems[0].endswith("move it away, and the records of the attempt's rounds count in its place")


def test_a_step_that_was_copied_is_left_out(tmp_path: Path) -> None:
    steps = write_attempt(tmp_path, finished=False) / "steps"
    shutil.copytree(steps / "round-1", steps / "another")
    results = load_results([tmp_path])
    assert [round_.index for round_ in results.attempts[0].record.rounds] == [1, 2]
    assert results.problems == [f"{steps}/another/round.json: it is the record of round-1; skipped: remove it"]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"selected": {"a": {"gpt": [0]}}}, "it selects an attempt 0 of gpt at a"),
        (
            {"selected": {"a": {"x": [1]}}, "partial": {"a": {"x": {"1": [0]}}}},
            "it selects rounds (0,) of x at a",
        ),
        ({"tasks": {"a": {"facts": {"rounds": []}}}}, "it says that a has no rounds"),
    ],
)
def test_a_run_that_contradicts_itself_is_left_out(tmp_path: Path, values: dict[str, Any], why: str) -> None:
    path = write_session(tmp_path, {})
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")
    results = load_results([tmp_path])
    assert results.runs == []
    assert results.problems[0].startswith(f"{path}: {why}")
    assert results.problems[0].endswith("--tasks DIR counts tasks that have no result")
