"""``evocode metrics``: the metrics of other benchmarks, by agent and by round."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt, write_files


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "a", "gpt", "pff", cases=["p", "fp", "ffp"])
    write_attempt(results, "a", "oracle", "ppp", cases=["p", "pp", "ppp"])
    write_attempt(results, "a", "nop", "fff", cases=["f", "ff", "pff"])


def test_each_agent_has_a_row(evocode: Evocode) -> None:
    ran = evocode("metrics", "-q")
    assert (ran.status, ran.lines) == (
        0,
        [
            "what other benchmarks would say",
            "agent EvoScore zero-regression recall precision F1 Fix Rate",
            "gpt 50.0 0.0 (0/1) 100.0 72.2 82.2 33.3",
            "nop 0.0 100.0 (1/1) 0.0 66.7 0.0 0.0",
            "oracle 100.0 100.0 (1/1) 100.0 100.0 100.0 100.0",
            "",
            "cases that passed before and were lost, in one attempt",
            "agent lost recovered standing standing, %",
            "gpt 2.0 0.0 2.0 100.0",
            "nop 0.0 0.0 0.0 n/a",
            "oracle 0.0 0.0 0.0 0.0",
            "",
            "the score for the money, of one attempt at each task",
            "agent score cost, each task once score per USD USD per passed round",
            "gpt 33.3 n/a n/a n/a",
            "nop 0.0 n/a n/a n/a",
            "oracle 100.0 n/a n/a n/a",
        ],
    )
    assert "note: gpt, nop, oracle: the cost is known of 0 of 3 rounds, so that the score per USD is not" in ran.err


def test_one_metric_is_printed_by_round(evocode: Evocode) -> None:
    ran = evocode("metrics", "-q", "--metric", "regressions", "--metric", "swe-evo", "--by", "round", "--agent", "gpt")
    assert ran.lines == [
        "gpt:",
        "round Fix Rate lost recovered standing so far",
        "1 100.0 0.0 0.0 0.0 0.0",
        "2 0.0 1.0 0.0 1.0 1.0",
        "3 0.0 1.0 0.0 2.0 2.0",
    ]
    assert ran.err == ""


def test_the_score_per_dollar_is_not_told_by_round(evocode: Evocode) -> None:
    ran = evocode("metrics", "--metric", "cost", "--by", "round")
    assert (ran.status, "one of whole attempts" in ran.err) == (2, True)


def test_json_has_the_same_in_full(evocode: Evocode) -> None:
    found = evocode("metrics", "--json", "--by", "round", "--agent", "gpt").json["gpt"]
    assert found["swe-ci"] == {
        "evo_score": 50,
        "gamma": 1,
        "zero_regression": {"without": 0, "of": 1, "percent": 0},
    }
    assert found["swe-evo"] == {"fix_rate": pytest.approx(100 / 3)}
    assert found["regressions"] == {"lost": 2, "recovered": 0, "standing": 2, "standing_share": 100}
    assert found["cost"]["cost_usd"] == {"value": None, "known": 0, "of": 3}
    assert (found["without_reference"], found["without_base"], found["nameless"]) == ([], [], [])
    assert found["by_round"]["2"]["evoclaw"]["recall"] == 100
    assert "swe-ci" not in evocode("metrics", "--json", "--metric", "swe-evo").json["nop"]


def test_without_oracle_and_nop_the_numbers_say_what_they_rest_on(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "alone", "a", "gpt", "pf", cases=["p", "fp"])
    err = evocode("metrics", "alone").err
    assert "note: gpt: without results of oracle, a round requires what any attempt has a case for: a" in err
    assert "note: gpt: without results of nop, EvoScore takes it that nothing passes at the start: a" in err
    assert "oracle" not in evocode("metrics", "alone", "--metric", "cost").err
    write_attempt(tmp_path / "alone", "a", "other", "pf", cases=["p", "fp"])
    lines = evocode("metrics", "alone").err.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["gpt, other"] * 3, "once for all agents that it holds for"


def test_what_a_round_requires_any_attempt_at_the_same_contents_tells(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "crashes"
    # The suite broke off in the second round of crashed, after one of the cases of the first.
    write_attempt(results, "a", "crashed", "pf", cases=["pp", "p"], task_hash="1" * 64)
    names = ("swe-ci", "evoclaw", "swe-evo", "regressions")
    alone = evocode("metrics", "crashes", "--json", "--by", "round").json["crashed"]
    assert alone["untold"] == ["a round 2"]
    assert alone["by_round"]["2"]["evoclaw"] is None
    assert alone["by_round"]["2"]["swe-evo"] == {"fix_rate": None}
    assert alone["by_round"]["2"]["swe-ci"]["evo_score"] is None
    assert alone["swe-ci"]["zero_regression"]["percent"] == 0
    why = "note: crashed: n/a, because no attempt tells all cases that the round requires: a round 2"
    assert why in evocode("metrics", "crashes").err
    write_attempt(results, "a", "other", "pf", cases=["pp", "fpfp"], task_hash="1" * 64)
    found = evocode("metrics", "crashes", "--json", "--by", "round", *(f"--metric={name}" for name in names)).json
    second = found["crashed"]["by_round"]["2"]
    assert found["crashed"]["untold"] == []
    assert second["evoclaw"] == {"recall": 0, "precision": 50, "f1": 0}
    assert second["swe-evo"] == {"fix_rate": 0}
    assert second["swe-ci"]["evo_score"] == 25
    assert second["regressions"]["lost"] == 1
    # Of other contents nothing is taken.
    write_attempt(tmp_path / "changed", "a", "crashed", "pf", cases=["pp", "p"], task_hash="1" * 64)
    write_attempt(tmp_path / "changed", "a", "other", "pf", cases=["pp", "fpfp"], task_hash="2" * 64)
    assert evocode("metrics", "changed", "--json").json["crashed"]["untold"] == ["a round 2"]


def test_oracle_and_nop_count_where_they_ran_at_the_same_contents_of_a_task(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "changed"
    for agent, outcomes, old in (("gpt", "pf", "1"), ("oracle", "pp", "2")):
        write_attempt(results, "changed", agent, outcomes, cases=["p", "fp"], task_hash=old * 64)
        write_attempt(results, "same", agent, outcomes, cases=["p", "fp"], task_hash="3" * 64)
    found = evocode("metrics", "changed", "--json").json["gpt"]
    assert found["without_reference"] == ["changed"]


def test_gamma_weighs_later_rounds(evocode: Evocode) -> None:
    scores = [
        evocode("metrics", "--json", "--agent", "gpt", "--metric", "swe-ci", *more).json["gpt"]["swe-ci"]["evo_score"]
        for more in ((), ("--gamma", "2"))
    ]
    assert scores == [50, pytest.approx(100 * (2 * 1 + 4 * 0.5 + 8 * 0) / 14)]


def test_an_agent_that_is_not_there_is_told(evocode: Evocode) -> None:
    ran = evocode("metrics", "--agent", "nobody")
    assert (ran.status, "there is no agent nobody; there are gpt, nop, oracle" in ran.err) == (2, True)


@pytest.fixture
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that says that the share of lines with ``slop`` is the verbosity."""
    program = tmp_path / "bin" / "scb-check"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport json, pathlib, sys\n"
        "if sys.argv[1] == '--version': sys.exit(print('9.9.9'))\n"
        "lines = [line for path in pathlib.Path(sys.argv[-1]).glob('*.py') for line in path.open()]\n"
        "verbosity = sum('slop' in line for line in lines) / len(lines)\n"
        "print(json.dumps({'verbosity': verbosity, 'erosion': 0.25, 'total_loc': len(lines)}))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("engine", "_program")
def test_the_code_of_rounds_is_that_of_their_recorded_changes(
    evocode: Evocode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    attempt = write_attempt(tmp_path / "results", "small", "gpt", "pp", cases=["p", "p"])
    write_files(tmp_path / "small", {"task.toml": '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n'})
    write_files(tmp_path / "small", {"environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n"})
    diff = "--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,2 @@\n+x = 1\n+slop = 2\n"
    added = {"path": "a.py", "kind": "added", "mode": "0644", "diff": diff, "sha256": None, "content": None}
    for index, changes in ((1, [added]), (2, [])):
        write_files(
            tmp_path / "small" / "steps" / f"round-{index}", {"instruction.md": "Do it.\n", "tests/test.sh": "true\n"}
        )
        about = {"evocode": {"watched": True, "changes": changes}}
        trajectory = {"schema_version": "ATIF-v1.7", "agent": {"name": "gpt", "version": "1"}, "extra": about}
        write_files(attempt / "steps" / f"round-{index}" / "agent", {"trajectory.json": trajectory})
    ran = evocode("metrics", "-q", "results", "--metric", "slopcodebench")
    assert ran.lines == [
        "the code that rounds were left with",
        "agent verbosity erosion lines verbosity rises, % erosion rises, %",
        "gpt 50.0 25.0 2.0 0.0 0.0",
    ]
    assert ran.err == "note: scb-check 9.9.9; SlopCodeBench has 0.1.3\n"


@pytest.mark.usefixtures("_program")
def test_without_files_the_code_is_not_measured_and_it_is_said_why(evocode: Evocode) -> None:
    ran = evocode("metrics", "-q", "--metric", "slopcodebench", "--agent", "gpt")
    assert ran.lines[-1] == "gpt n/a n/a n/a n/a n/a"
    assert "note: gpt attempt 1 at a: n/a, the task is not below this directory" in ran.err
    assert evocode("metrics", "-q", "--metric", "slopcodebench", "--json").json["gpt"]["slopcodebench"] is None


def test_without_the_program_it_is_said_how_to_install_it(
    evocode: Evocode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    ran = evocode("metrics", "--metric", "slopcodebench")
    assert (ran.status, "uv tool install scb-check==0.1.3" in ran.err) == (1, True)
