"""``evocode analyses``: pass@k, Reliability, rates by round, survival, solvable rounds, tokens, the older columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_evocode.results.records import TaskFacts, Usage
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt

FACTS = TaskFacts(rounds=("round-1", "round-2"), change_types=((), ("extension",)))


def usage(generated: int) -> Usage:
    return Usage(prompt_tokens=900, completion_tokens=generated, requests=generated // 10)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two attempts of gpt at task a and one at b, of which the first is also run round by round; one of o1."""
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "pf", facts=FACTS, usage=usage(100))
    write_attempt(root, "a", "gpt", "f-", number=2, facts=FACTS, usage=usage(300))
    write_attempt(root, "b", "gpt", "p")
    write_attempt(root, "a", "gpt", "pp", facts=FACTS, mode="single-round", run="2026-02-02__03-04-05")
    write_attempt(root, "a", "o1", "f-", facts=FACTS)
    return root


def test_all_tables_are_printed(evocode: Evocode, results: Path) -> None:
    ran = evocode("analyses", "-q")
    assert (ran.status, ran.err.count("note: ")) == (0, 1)
    assert "rows are over different tasks" in ran.err
    assert ran.lines == [
        "pass@k, that any of k attempts passes, and pass^k, that all do: means over tasks of their rounds",
        "agent k pass@k 95 % pass^k 95 % tasks",
        "gpt 1 62.5 n/a 62.5 n/a 2/2",
        "gpt 2 50.0 n/a 0.0 n/a 1/2",
        "gpt (single-round) 1 100.0 n/a 100.0 n/a 1/1",
        "o1 1 0.0 n/a 0.0 n/a 1/1",
        "a number is over the tasks with k attempts; compare different k only over the same tasks",
        "no interval below 5 tasks",
        "",
        "the same of whole tasks, which an attempt passes that passes all rounds: means over tasks",
        "agent k pass@k 95 % pass^k 95 % tasks",
        "gpt 1 50.0 n/a 50.0 n/a 2/2",
        "gpt 2 0.0 n/a 0.0 n/a 1/2",
        "o1 1 0.0 n/a 0.0 n/a 1/1",
        "",
        "Reliability: of the rounds that any attempt passes, the share that all pass; over tasks with two or more",
        "agent Reliability 95 % tasks",
        "gpt 0.0 n/a 1/2",
        "o1 n/a n/a 0/1",
        "",
        "pass rate, by round: share of the tasks with so many rounds that pass it, and how many tasks these are",
        "all agents: of the pairs of an agent and a task, and how many pairs these are",
        "agent 1 2",
        "gpt 75.0 (2) 0.0 (1)",
        "gpt (single-round) 100.0 (1) 100.0 (1)",
        "o1 0.0 (1) 0.0 (1)",
        "all agents 50.0 (3) 0.0 (2)",
        "",
        "survival (Kaplan-Meier), by round: share of the attempts that fail in no round so far, of how many at risk",
        "agent 1 2",
        "gpt 75.0 (2) 0.0 (0.5)",
        "o1 0.0 (1)",
        "all agents 50.0 (3) 0.0 (0.5)",
        "attempts at one task count as one; what ended for no fault of the agent counts up to there",
        "",
        "solvable: of what fails in a chain, the share that passes in single-round mode, and how much fails",
        "rounds: each (agent, task, round) that no attempt passed, reached or not",
        "failed records: each (agent, task, attempt, round) that was reached and failed, as the paper counts",
        "agent all 1 2",
        "gpt, rounds 100.0 (1) 100.0 (1)",
        "gpt, failed records 100.0 (2) 100.0 (1) 100.0 (1)",
        "all agents, rounds 100.0 (1) 100.0 (1)",
        "all agents, failed records 100.0 (2) 100.0 (1) 100.0 (1)",
        "",
        "solvable, by change type",
        "agent extension",
        "gpt, rounds 100.0 (1)",
        "gpt, failed records 100.0 (1)",
        "all agents, rounds 100.0 (1)",
        "all agents, failed records 100.0 (1)",
        "",
        "generated tokens of failing over passing rounds, by round, and how many of both there are",
        "agent all 1 2",
        "gpt 3.00 3.00 (1/1) n/a (1/0)",
        "gpt (single-round) n/a",
        "o1 n/a",
        "all agents 3.00 3.00 (1/1) n/a (1/0)",
        "",
        "prompt and generated tokens of failing over passing rounds, by round, and how many of both there are",
        "agent all 1 2",
        "gpt 1.20 1.20 (1/1) n/a (1/0)",
        "gpt (single-round) n/a",
        "o1 n/a",
        "all agents 1.20 1.20 (1/1) n/a (1/0)",
        "",
        "columns of EvoCode-Bench's older leaderboard; turns and tokens are of one attempt over all rounds of a task",
        "agent k MT@k SR Gap Comp Avg Turns Output Tok.",
        "gpt 1-2 75.0 100.0 n/a 50.0 33.3 0.3K",
        "gpt (single-round) 1 n/a 100.0 n/a n/a n/a n/a",
        "o1 1 0.0 n/a n/a 0.0 n/a n/a",
    ]


def test_five_tasks_have_intervals(evocode: Evocode, tmp_path: Path) -> None:
    for task in range(5):
        for number in (1, 2):
            write_attempt(tmp_path / "five", f"t{task}", "gpt", "pp" if task % 2 else "pf", number=number)
    lines = evocode("analyses", "five").lines
    assert not [line for line in lines if line.startswith("no interval")]
    assert [line for line in lines if re.fullmatch(r"gpt 100.0 \(5\) 40.0 \(5\) \d+.\d..\d+.\d", line)]
    (row,) = evocode("analyses", "five", "--json").json["rows"]
    for found in (*row["pass_at_k"]["round"], *row["pass_at_k"]["task"]):
        low, high = found["pass_at_k_interval"]
        assert 0 <= low < found["pass_at_k"] < high <= 100
        assert found["pass_hat_k_interval"] == [low, high]
    # All rounds that any attempt passed, both did; but five tasks do not show that it is always so.
    low, high = row["reliability_interval"]
    assert (row["reliability"], high) == (100, 100)
    assert 50 < low < 100


def test_json_has_the_same_numbers_in_full(evocode: Evocode, results: Path) -> None:
    found = evocode("analyses", "--json").json
    gpt, alone, o1 = found["rows"]
    assert [row["name"] for row in found["rows"]] == ["gpt", "gpt (single-round)", "o1"]
    interval = {"pass_at_k_interval": None, "pass_hat_k_interval": None}
    assert gpt["pass_at_k"]["round"] == [
        {"k": 1, "pass_at_k": 62.5, "pass_hat_k": 62.5, "tasks": 2, **interval},
        {"k": 2, "pass_at_k": 50.0, "pass_hat_k": 0.0, "tasks": 1, **interval},
    ]
    one, none = {"attempts": 2, "passed": 1}, {"attempts": 2, "passed": 0}
    whole = {"attempts": 1, "passed": 1}
    assert gpt["passes"] == {"round": {"a": [one, none], "b": [whole]}, "task": {"a": [none], "b": [whole]}}
    assert list(alone["pass_at_k"]) == ["round"]
    assert (gpt["reliability"], gpt["reliability_tasks"], o1["reliability"]) == (0.0, 1, None)
    first = {"percent": 75.0, "at_risk": 2.0, "failed": 0.5, "censored": 0.0}
    assert {name: gpt["kaplan_meier"]["1"][name] for name in first} == first
    assert (gpt["kaplan_meier"]["2"]["percent"], alone["kaplan_meier"]) == (0.0, None)
    assert gpt["pass_rates"]["1"] == {"percent": 75.0, "passed": 1.5, "of": 2}
    assert gpt["solvable"]["record"]["overall"] == {"percent": 100.0, "passed": 2, "of": 2}
    assert (alone["solvable"], o1["solvable"]) == (None, None)
    assert gpt["token_ratios"]["generated"]["by_round"]["1"]["ratio"] == 3.0
    assert gpt["token_ratios"]["total"]["overall"] == 1.2
    assert (gpt["avg_turns"], gpt["output_tokens"]) == (pytest.approx(100 / 3), pytest.approx(1000 / 3))
    (pooled,) = found["pooled"]
    assert (pooled["name"], pooled["pass_rates"]["1"]["of"]) == ("all agents", 3)


def test_without_single_rounds_nobody_knows_what_is_solvable(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "chains", "a", "gpt", "pf")
    lines = evocode("analyses", "chains").lines
    assert "n/a: no agent has both; pytest --evocode-mode=single-round runs single rounds" in lines
    assert not [line for line in lines if line.startswith("all agents")]
