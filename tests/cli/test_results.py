"""``evocode results``: a row for each agent and mode, and groups."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from pytest_evocode.results.records import SelectedTask, TaskFacts, Usage
from tests.cli.conftest import Evocode
from tests.result_trees import RUN, write_attempt, write_files, write_session

OLD, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00"
LEDGER = TaskFacts(
    rounds=("round-1", "round-2"),
    change_types=(("extension",), ("extension", "conflict")),
    activity="Construction",
    category="tools",
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two agents at two tasks, one of which says what it is."""
    results = tmp_path / "evocode-results"
    write_attempt(results, "ledger", "gpt", "pf", cases=["p", "pf"], facts=LEDGER, tool_calls=3)
    write_attempt(results, "mesh", "gpt", "pp", cases=["p", "pp"], tool_calls=5)
    write_attempt(results, "ledger", "o1", "ff", cases=["f", "ff"], facts=LEDGER)
    write_attempt(results, "mesh", "o1", "f-", cases=["f"], of=2)
    return results


def test_each_agent_has_its_scores(evocode: Evocode, results: Path) -> None:
    ran = evocode("results", "-q")
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines == [
        "agent Dataset Score Case Score Avg Rounds Perfect Tasks MT@k Comp k time",
        "gpt 75.0 87.5 4.0 1/2 75.0 50.0 1 6.0 s",
        "o1 0.0 0.0 n/a 0/2 0.0 0.0 1 4.5 s",
    ]


def test_what_single_rounds_took_is_in_their_own_row_alone(evocode: Evocode, tmp_path: Path) -> None:
    results, usage = tmp_path / "both", Usage(prompt_tokens=100, completion_tokens=10, cost_usd=0.5, requests=1)
    write_attempt(results, "ledger", "gpt", "pp", usage=usage)
    write_attempt(results, "ledger", "gpt", "pp", mode="single-round", run="2026-01-03__00-00-00", usage=usage)
    rows = evocode("results", "both", "--json").json["rows"]
    assert [row["mode"] for row in rows] == ["chain", "single-round"]
    assert rows[0]["scores"]["sr"] == 100.0
    for row in rows:
        spent = row["spending"]
        assert row["scores"]["seconds"] == spent["agent_seconds"]["value"] == 3.0
        assert (spent["prompt_tokens"]["value"], spent["cost_usd"]["value"], spent["rounds"]) == (200, 1.0, 2)


def test_scores_that_trust_the_agents_system_have_a_mark(evocode: Evocode, results: Path, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "ledger", "cheat", "pp", cases=["p", "pp"], changed={1: ["/bin/sh"]})
    write_attempt(tmp_path / "evocode-results", "mesh", "cheat", "pp", cases=["p", "pp"])
    ran = evocode("results", "-q")
    assert ran.lines[1:] == [
        "cheat 100.0* 100.0* n/a 2/2* 100.0* 100.0* 1 6.0 s",
        "gpt 75.0 87.5 4.0 1/2 75.0 50.0 1 6.0 s",
        "o1 0.0 0.0 n/a 0/2 0.0 0.0 1 4.5 s",
        "* the verdict of 1 round trusts the agent's system beyond what the task declares; round.json lists them, and "
        "--evocode-strict brings none over",
    ]


def test_directories_are_named_or_evocode_results(evocode: Evocode, results: Path, tmp_path: Path) -> None:
    by_default = evocode("results").out
    assert evocode("results", "evocode-results").out == by_default
    assert evocode("results", tmp_path).out == by_default
    assert evocode("results", results / "ledger", results / "mesh").out == by_default


def test_intervals_are_there_on_request(evocode: Evocode, results: Path, tmp_path: Path) -> None:
    for number in range(3):
        write_attempt(tmp_path / "evocode-results", f"more-{number}", "gpt", "pf")
    ran = evocode("results", "--intervals")
    assert ran.lines[0].startswith("agent Dataset Score 95 % Case Score")
    assert ran.lines[1].startswith("gpt 60.0 33.8..83.5 ")
    rows = evocode("results", "--intervals", "--json").json["rows"]
    assert rows[0]["intervals"]["dataset_score"] == pytest.approx([33.8, 83.5], abs=0.05)
    assert rows[0]["interval_notes"]["dataset_score"] == "Bayesian bootstrap with half a task at the bound"
    assert (rows[0]["intervals"]["sr"], rows[0]["interval_notes"]["sr"]) == (None, "")


def test_the_interval_of_sr_stands_behind_sr(evocode: Evocode, tmp_path: Path) -> None:
    for number in range(5):
        write_attempt(tmp_path / "both", f"t{number}", "gpt", "pf")
        write_attempt(tmp_path / "both", f"t{number}", "gpt", "pp", mode="single-round", run="2026-02-02__03-04-05")
    lines = evocode("results", "both", "--intervals").out.splitlines()
    head, *rows = (re.split(r"  +", line) for line in lines[:3])
    chain, single = (dict(zip(head, cells, strict=True)) for cells in rows)
    assert head[head.index("SR") + 1] == "SR 95 %"
    assert (single["Dataset Score"], single["95 %"], single["SR 95 %"]) == ("n/a", "n/a", "59.0..100.0")
    assert (chain["95 %"], chain["SR 95 %"]) == ("29.5..70.5", "59.0..100.0")


def test_below_five_tasks_the_table_says_why_there_is_no_interval(evocode: Evocode, results: Path) -> None:
    ran = evocode("results", "-q", "--intervals")
    assert ran.lines[0].startswith("agent Dataset Score Case Score")
    assert ran.lines[-1] == "95 %: no interval below 5 tasks"
    row = evocode("results", "-q", "--intervals", "--json").json["rows"][0]
    assert row["intervals"]["dataset_score"] is None
    assert row["interval_notes"]["dataset_score"] == "no interval below 5 tasks"


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("task", {"ledger": 50.0, "mesh": 100.0}),
        ("round", {"1": 100.0, "2": 50.0}),
        ("activity", {"Construction": 50.0, "not given": 100.0}),
        ("interaction", {"not given": 75.0}),
        ("category", {"tools": 50.0, "not given": 100.0}),
        ("change", {"conflict": 0.0, "extension": 50.0, "not given": 100.0}),
    ],
)
def test_scores_are_broken_down(evocode: Evocode, results: Path, by: str, groups: dict[str, float]) -> None:
    (row, _) = evocode("results", "--by", by, "--json").json["rows"]
    assert {name: group["dataset_score"] for name, group in row["groups"].items()} == groups
    lines = evocode("results", "--by", by).lines
    assert lines[0] == "gpt:"
    assert lines[1].startswith(f"{by} Dataset Score Case Score")
    for line, (name, score) in zip(lines[2:], groups.items(), strict=False):
        assert line.startswith(f"{name} {score:.1f} ")


def test_groups_of_single_rounds_have_what_single_rounds_have(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "single", "ledger", "gpt", "fp", mode="single-round", facts=LEDGER, tool_calls=4)
    write_attempt(tmp_path / "single", "mesh", "gpt", "p", mode="single-round", facts=LEDGER)
    ran = evocode("results", "-q", "single", "--by", "change")
    assert ran.lines == [
        "gpt (single-round):",
        "change SR SR macro Avg Rounds tasks rounds",
        "conflict 100.0 100.0 4.0 1 1",
        "extension 66.7 75.0 4.0 2 3",
    ]
    group = evocode("results", "-q", "single", "--by", "change", "--json").json["rows"][0]["groups"]["extension"]
    assert (group["sr_macro"], group["dataset_score"], group["mt_at_k"]) == (75.0, None, None)


def test_json_has_everything_in_full_precision(evocode: Evocode, results: Path) -> None:
    write_attempt(results, "third", "gpt", "pff", cases=["p", "pf", "pff"])
    row = evocode("results", "--json").json["rows"][0]
    assert (row["name"], row["agent"], row["mode"], row["from_round"]) == ("gpt", "gpt", "chain", None)
    assert row["scores"]["dataset_score"] == pytest.approx(100 * (0.5 + 1 + 1 / 3) / 3, abs=1e-12)
    assert (row["scores"]["sr"], row["scores"]["gap"], row["scores"]["pinned_case_score"]) == (None, None, None)
    assert row["rewards"] == {"reward": pytest.approx(row["scores"]["mean_reward"])}
    assert row["best_of_attempts"] == row["scores"]["mt_at_k"]
    assert row["spending"]["tool_calls"] == {"value": 16, "known": 4, "of": 7, "at_least": False}
    assert row["spending"]["cost_usd"] is None
    assert row["missing"] == []


def test_other_modes_have_rows_that_say_so(evocode: Evocode, results: Path) -> None:
    write_attempt(results, "ledger", "gpt", "pp", mode="single-round", run=OLD)
    write_attempt(results, "ledger", "gpt", "p", first=2, from_round="round-2", facts=LEDGER, run=NEW)
    lines = evocode("results").lines
    names = [row["name"] for row in evocode("results", "--json").json["rows"]]
    assert names == ["gpt", "gpt (from round-2)", "gpt (single-round)", "o1"]
    assert [line.split(") ")[0] for line in lines[2:4]] == ["gpt (from round-2", "gpt (single-round"]
    # Gap needs both modes on the same tasks.
    assert "Gap" not in lines[0]


def test_what_is_missing_is_told_and_counts(evocode: Evocode, results: Path) -> None:
    write_session(results, {task: {"gpt": [1, 2]} for task in ("ledger", "mesh", "lost")})
    ran = evocode("results")
    assert "note: gpt: no readable record, counted as not passed: " in ran.err
    assert "ledger attempt 2, lost attempt 1, lost attempt 2, mesh attempt 2" in ran.err
    assert ran.lines[1].startswith("gpt 25.0")


def test_what_was_broken_off_is_told(evocode: Evocode, results: Path) -> None:
    write_attempt(results, "third", "gpt", "p", of=4, finished=False)
    write_session(results, {"third": {"gpt": [1]}})
    assert "note: gpt: not finished, missing rounds count as not passed: third (2026-01-02" in evocode("results").err


def test_what_was_interrupted_is_shown_with_its_tokens_and_has_no_score(evocode: Evocode, results: Path) -> None:
    used = Usage(prompt_tokens=1000, completion_tokens=20, cost_usd=0.5)
    write_attempt(results, "third", "gpt", "p", of=4, finished=False, usage=used)
    line = f"not scored, unfinished: third gpt ({RUN}): 1 of 4 rounds judged, 1,020 tokens, $0.5000"
    ran = evocode("results")
    assert line in ran.lines
    assert ran.lines[1].startswith("gpt 75.0")
    assert f"note: {line}" in evocode("leaderboard").err
    (apart,) = evocode("results", "--json").json["unscored"]
    assert (apart["state"], apart["rounds"], apart["usage"]["prompt_tokens"]) == (
        "unfinished", {"round-1": "passed"}, 1000,
    )  # fmt: skip
    rows = evocode("export", "--json").json
    (row,) = (row for row in rows if row["unscored"])
    assert (row["unscored"], row["task"], row["outcome"], row["passed"], row["prompt_tokens"]) == (
        "unfinished", "third", "passed", None, 1000,
    )  # fmt: skip


def test_where_nothing_is_scored_the_reason_is_all_there_is(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", outcomes="p", of=2, finished=False)
    line = f"not scored, unfinished: ledger gpt ({RUN}): 1 of 2 rounds judged"
    assert evocode("results").lines == [line]
    ran = evocode("leaderboard")
    assert (ran.status, ran.out) == (1, "")
    assert f"note: {line}\nError: there are no results in evocode-results with a score" in ran.err
    ran = evocode("results", "--format=csv")
    assert ran.out.startswith("agent,dataset_score,case_score,")
    assert (len(ran.lines), ran.err) == (1, f"note: {line}\n")


def test_older_attempts_are_told_and_can_be_counted(evocode: Evocode, results: Path) -> None:
    write_attempt(results, "ledger", "gpt", "pp", run=NEW)
    ran = evocode("results", "-q")
    assert "older attempts that newer ones replace do not count (1); --all-runs counts them" in ran.err
    assert ran.lines[1].startswith("gpt 100.0")
    assert evocode("results", "-q", "--all-runs").lines[1].startswith("gpt 87.5")
    assert evocode("results", "-q", "--run", NEW).lines[1:] == ["gpt 100.0 n/a n/a 1/1 100.0 100.0 1 3.0 s"]


def test_a_run_that_is_not_there_is_an_error(evocode: Evocode, results: Path) -> None:
    ran = evocode("results", "--run", "yesterday")
    assert (ran.status, ran.out) == (1, "")
    assert "there is no run yesterday; there are 2026-01-02__03-04-05, and no tags" in ran.err


@pytest.mark.parametrize("name", ["paper", "tag:paper"])
def test_a_tag_stands_for_its_runs(evocode: Evocode, results: Path, name: str) -> None:
    for run, outcomes in ((OLD, "fp"), (NEW, "pp")):
        write_attempt(results, "ledger", "gpt", outcomes, run=run)
        write_session(results, {"ledger": {"gpt": [1]}}, run=run, tags=("paper",) if run == OLD else ())
    assert evocode("results", "-q", "--run", name).lines[1:] == ["gpt 50.0 n/a n/a 0/1 0.0 100.0 1 3.0 s"]
    for view in ("leaderboard", "analyses", "pareto", "export", "report"):
        assert evocode(view, "--run", name).status == 0, view
    ran = evocode("results", "--run", "tag:papers")
    assert (ran.status, ran.out) == (1, "")
    assert f"there is no tag papers; there are {OLD}, 2026-01-02__03-04-05, {NEW}, and the tags paper" in ran.err


def test_only_the_agents_that_are_named_are_shown(evocode: Evocode, results: Path) -> None:
    write_attempt(results, "third", "o1", "p", of=2, finished=False, run=NEW)
    write_attempt(results, "third", "o3", "pp")
    assert [line.split()[0] for line in evocode("results", "-q", "--agent", "gpt").lines] == ["agent", "gpt"]
    both = evocode("results", "-q", "--agent=o1", "--agent=gpt").lines
    assert [line.split()[0] for line in both[1:]] == ["gpt", "o1", "not"]
    identity = evocode("results", "--json", "--agent=gpt").json["rows"][0]["identity"]
    for view in ("leaderboard", "analyses", "pareto", "failures", "metrics", "export"):
        for name in ("gpt", identity):
            ran = evocode("results" if view != "export" else view, *(["--view", view] if view != "export" else []),
                          "--agent", name)  # fmt: skip
            assert ran.status == 0, (view, ran.err)
            assert "o3" not in ran.out, view
    ran = evocode("results", "--agent", "gpt-6")
    assert (ran.status, ran.out) == (2, "")
    assert "there is no agent gpt-6; there are gpt, o1, o3" in ran.err


def test_tasks_that_are_named_count_and_no_others(evocode: Evocode, results: Path, tmp_path: Path) -> None:
    steps = '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n'
    write_files(tmp_path / "tasks", {"mesh/task.toml": steps, "never/task.toml": steps})
    ran = evocode("results", "--tasks", "tasks")
    assert ran.lines[1].startswith("gpt 50.0 50.0 5.0 1/2")
    assert "never attempt 1" in ran.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "there is no directory evocode-results; name the results directory"),
        (["nowhere"], 2, "Directory 'nowhere' does not exist"),
        (["empty"], 1, "there are no results in empty"),
        (["empty", "--tasks", "empty"], 2, "empty is not a task and has none in it"),
    ],
)
def test_without_results_there_is_one_clear_error(
    evocode: Evocode, tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    ran = evocode("results", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert message in ran.err


def test_a_damaged_file_is_told_and_the_rest_is_shown(evocode: Evocode, results: Path) -> None:
    broken = write_attempt(results, "third", "gpt") / "result.json"
    broken.write_text("{")
    ran = evocode("results")
    assert ran.status == 0
    assert f"warning: {broken}: it is not JSON" in ran.err
    assert ran.lines[1].startswith("gpt 75.0")


def test_results_of_harbor_are_shown_like_ours(evocode: Evocode, tmp_path: Path) -> None:
    values = {"trial_name": "mesh__x", "task_name": "mesh", "agent_info": {"name": "codex"}}
    write_files(
        tmp_path / "jobs/2026-01-01__00-00-00/mesh__x",
        {"result.json": values, "steps/round-1/verifier/reward.txt": "1", "steps/round-2/verifier/reward.txt": "0"},
    )
    ran = evocode("results", "jobs")
    assert ran.lines[1].startswith("codex 50.0 n/a n/a 0/1")
    assert "name their directory with --tasks: mesh" in ran.err


def test_a_partial_attempt_is_told_and_displaces_none(evocode: Evocode, results: Path) -> None:
    before = evocode("results").out
    write_attempt(results, "mesh", "gpt", "f", of=2, run=NEW)
    ran = evocode("results")
    assert ran.out == before
    assert (
        ran.err == f"note: gpt: partial, and not counted beside an attempt with all its rounds: mesh round-1 ({NEW})\n"
    )
    (partial,) = evocode("results", "--json").json["rows"][0]["partial"]
    assert partial == {"task": "mesh", "attempt": 1, "run": NEW, "rounds": ["round-1"], "counts": False}
    alone = evocode("results", "--run", NEW)
    assert alone.lines[1].startswith("gpt † 0.0 n/a n/a n/a n/a n/a 1")
    assert alone.lines[2] == "† partial: where not all rounds of an attempt were selected, those that were count"
    assert alone.err == f"note: gpt: partial, only these rounds were selected and count: mesh round-1 ({NEW})\n"


def test_scores_without_infrastructure_errors_stand_beside_those_with_them(evocode: Evocode, results: Path) -> None:
    write_attempt(results, "ledger", "lucky", "pe-", cases=["p"], of=3)
    write_attempt(results, "mesh", "lucky", "pf", cases=["p", "pf"])
    ran = evocode("results", "-q")
    assert ran.lines[0] == (
        "agent Dataset Score Dataset Score w/o faults Case Score Case Score w/o faults Avg Rounds Perfect Tasks MT@k "
        "Comp k time faults"
    )
    assert ran.lines[1].startswith("gpt 75.0 75.0 87.5 87.5 4.0")
    assert ran.lines[2].startswith("lucky 41.7 75.0 54.2 87.5 n/a")
    assert ran.lines[-1] == "lucky: 1 error and 1 round not reached"
    rows = {row["agent"]: row["without_faults"] for row in evocode("results", "-q", "--json").json["rows"]}
    assert rows["gpt"] is None
    assert rows["lucky"] == {
        **{"errors": 1, "not_reached": 1, "attempts": 0, "tasks": 0},
        **{"dataset_score": 75.0, "case_score": 87.5, "pinned_case_score": None, "sr": None, "sr_macro": None},
    }


def test_k_is_a_range_where_tasks_have_different_numbers_of_attempts(evocode: Evocode, results: Path) -> None:
    write_attempt(results, "mesh", "gpt", "pp", cases=["p", "pp"], number=2)
    note = "k is not the same for all: Perfect Tasks, MT@k, Comp and Gap depend on it; compare them for equal k only"
    assert evocode("results").lines[1].endswith(" 1-2 9.0 s")
    assert note in evocode("results").lines
    assert evocode("results", "--json").json["rows"][0]["scores"]["fewest_attempts"] == 1
    for name, agent in (("ledger", "gpt"), ("ledger", "o1"), ("mesh", "o1")):
        write_attempt(results, name, agent, "pp", cases=["p", "pp"], number=2)
    lines = evocode("results").lines
    assert note not in lines
    assert " 2 12.0 s" in lines[1]


def test_several_attempts_have_a_table_and_flaky_rounds_are_named(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    for number, outcomes in ((1, "pp"), (2, "pf")):
        for task in ("ledger", "mesh"):
            write_attempt(
                results, task, "oracle", outcomes, number=number, deterministic=True, cases=["p", outcomes[1]]
            )
            write_attempt(results, task, "gpt", outcomes, number=number, cases=["p", outcomes[1]])
    ran = evocode("results", "-q")
    assert ran.lines[3:] == [
        "",
        "Scores over attempts",
        "agent score mean SE each attempt SD within SD between within 95 %",
        "gpt Dataset Score 75.0 25.0 100.0, 50.0 35.4 0.0 100 % n/a",
        "Case Score 75.0 25.0 100.0, 50.0 35.4 0.0 100 % n/a",
        "oracle Dataset Score 75.0 25.0 100.0, 50.0 35.4 0.0 100 % n/a",
        "Case Score 75.0 25.0 100.0, 50.0 35.4 0.0 100 % n/a",
        "95 %: no interval below 5 tasks",
        "",
        "2 flaky rounds, whose verdicts differ although nothing else does; pytest --evocode-check looks for the "
        "reason:",
        "ledger oracle round-2: 1 of 2 attempts passed",
        "mesh oracle round-2: 1 of 2 attempts passed",
    ]
    assert "SE: The standard error of that mean." in evocode("results").lines
    model, oracle = evocode("results", "-q", "--json").json["rows"]
    assert model["over_attempts"]["dataset_score"] == {
        "by_attempt": {"1": 100.0, "2": 50.0},
        "mean": 75.0,
        "sd": pytest.approx(35.355, abs=1e-3),
        "se": 25.0,
        "rerun_error": pytest.approx(17.678, abs=1e-3),
        "variance_within": 1250.0,
        "variance_between": 0.0,
        "within_share": 1.0,
        "interval": None,
    }
    assert model["flaky"] == []
    assert [(each["task"], each["round"], each["passed"], each["of"]) for each in oracle["flaky"]] == [
        ("ledger", "round-2", 1, 2),
        ("mesh", "round-2", 1, 2),
    ]


def test_one_attempt_has_no_table_of_several(evocode: Evocode, results: Path) -> None:
    assert not any("over attempts" in line for line in evocode("results", "-q").lines)
    assert [row["over_attempts"] for row in evocode("results", "--json").json["rows"]] == [None, None]


def test_a_task_that_was_never_begun_counts_with_all_its_rounds_in_every_command(
    evocode: Evocode, tmp_path: Path
) -> None:
    ten = TaskFacts(rounds=tuple(f"round-{index}" for index in range(1, 11)))
    write_attempt(tmp_path / "r", "t1", "gpt", "pp", mode="single-round")
    known = {"t2": SelectedTask(task_hash="abc", facts=ten)}
    write_session(tmp_path / "r", {"t1": {"gpt": [1]}, "t2": {"gpt": [1]}}, mode="single-round", tasks=known)
    evocode("merge", "r", "-o", "merged")
    for directory in ("r", "merged"):
        (row,) = evocode("results", directory, "--json").json["rows"]
        assert row["scores"]["sr"] == pytest.approx(100 * 2 / 12)
        assert row["missing"] == [{"task": "t2", "attempt": 1, "rounds": 10}]
        (entry,) = evocode("leaderboard", directory, "--json").json
        assert (entry["sr"], entry["rounds"]) == (row["scores"]["sr"], 12)
        kinds = evocode("failures", directory, "--json").json["kinds"]
        assert [each["not_reached"] for each in kinds.values()] == [10]
        assert len(evocode("export", directory, "--json").json) == 12
    write_attempt(tmp_path / "whole", "t1", "gpt", "pp", mode="single-round")
    write_attempt(tmp_path / "whole", "t2", "gpt", "p" * 10, mode="single-round")
    (compared,) = evocode("compare", "whole", "merged", "--json").json
    assert len(compared["flips"]) == 10


def test_rows_over_different_tasks_say_so_once(evocode: Evocode, tmp_path: Path) -> None:
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "pf")
    assert "different tasks" not in evocode("results").out
    for task in "abc":
        write_attempt(root, task, "o1", "pf")
    told = "rows are over different tasks, compare them by evocode compare: 1 of 3, without b, c (gpt); 3 of 3 (o1)"
    for command in (
        ["results"],
        ["results", "-q"],
        ["results", "--by", "task"],
        ["analyses"],
        ["failures"],
        ["metrics"],
    ):
        ran = evocode(*command)
        assert (ran.out + ran.err).count(told) == 1, command
    board = evocode("leaderboard")
    assert (board.out + board.err).count("tasks differ: 3 of 3 (o1); 1 of 3, without b, c (gpt)") == 1
    assert told not in board.out + board.err


def test_attempts_that_a_budget_cut_are_told_below_the_table(evocode: Evocode, tmp_path: Path) -> None:
    root = tmp_path / "evocode-results"
    for number in (1, 2, 3):
        path = write_attempt(root, "a", "gpt", "pf", number=number)
        if number < 3:
            _cut(path, "budget: tokens 210 of 200 used in the round" if number == 1 else "budget: turns 3 of 3 used")
    told = "cut by their budget: 2 of 3 attempts of gpt (by tokens: 1 attempt, by turns: 1 attempt)"
    for command in (["results"], ["results", "-q"], ["leaderboard"], ["leaderboard", "--format", "markdown"]):
        assert evocode(*command).out.count(told.replace("_", "")) == 1, command
    assert told in evocode("pareto").err
    assert told in evocode("compare", "gpt", "gpt").err


def _cut(attempt: Path, why: str) -> None:
    for path in (attempt / "result.json", *attempt.rglob("round.json")):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"stopped": ""', f'"stopped": "{why}"'), encoding="utf-8")


def test_each_note_is_one_short_line_and_told_once(evocode: Evocode, tmp_path: Path) -> None:
    root = tmp_path / "evocode-results"
    for place in range(40):
        write_attempt(root, f"task-with-a-long-name-{place}", "gpt", "p", of=2, finished=False)
        write_attempt(root, f"task-with-a-long-name-{place}", "o1", "pp", number=1 + place % 2)
        write_attempt(root, f"task-with-a-long-name-{place}", "gpt", "pp", number=2)
    for command in (["results", "-q"], ["analyses", "-q"], ["compare", "gpt", "o1", "gpt", "o1"]):
        ran = evocode(*command)
        notes = [line for line in ran.err.splitlines() if line.startswith("note: ")]
        notes += [line for line in ran.out.splitlines() if ": " in line and line[:3] not in ("A: ", "B: ")]
        assert notes
        assert len(set(notes)) == len(notes)
        assert max(map(len, notes)) <= 160 + len("note: "), command


def test_an_attempt_that_waits_is_waiting_everywhere_and_nowhere_partial(evocode: Evocode, tmp_path: Path) -> None:
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "pp", of=3, finished=False)
    selected = {"a": SelectedTask(facts=TaskFacts(rounds=("round-1", "round-2", "round-3")))}
    write_session(root, {"a": {"gpt": [1]}}, tasks=selected, waiting="budget: total-cost $1 of $1")
    mark = "‡ with attempts that wait for a later session: only their rounds so far count"
    for command in (["results"], ["leaderboard"]):
        ran = evocode(*command)
        assert ran.out.count(mark) == 1
        assert "gpt ‡" in ran.out
        assert "†" not in ran.out
        assert "waiting for a later session, only these rounds count: a round-1 round-2" in ran.err
    (row,) = evocode("results", "--json").json["rows"]
    assert (row["partial"], [each["rounds"] for each in row["waiting"]]) == ([], [["round-1", "round-2"]])
    assert (row["scores"]["dataset_score"], row["scores"]["perfect_tasks"], row["scores"]["mt_at_k"]) == (
        *(100.0, None, None),
    )
    (entry,) = evocode("leaderboard", "--json").json
    assert (entry["partial"], entry["waiting"]) == (0, 1)
    rounds = list(csv.DictReader(evocode("export").out.splitlines()))
    assert [(each["round"], each["partial"], each["waiting"]) for each in rounds] == [
        ("round-1", "false", "true"),
        ("round-2", "false", "true"),
    ]
