"""``evocode leaderboard``: for people, spreadsheets and programs."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path

import pytest

from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.report.leaderboard import leaderboard_view
from pytest_evocode.report.views import printed
from pytest_evocode.results.records import Usage
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt

NEW = "2026-02-01__00-00-00"
KEYS = [
    "agent",
    "k_min",
    "k_max",
    "dataset_score",
    "dataset_score_low",
    "dataset_score_high",
    "case_score",
    "case_score_low",
    "case_score_high",
    "avg_rounds",
    "perfect_tasks",
    "perfect_tasks_low",
    "perfect_tasks_high",
    "final_round_completion",
    "hard_tasks",
    "mean_reward",
    "mt_at_k",
    "mt_at_k_low",
    "mt_at_k_high",
    "sr",
    "sr_low",
    "sr_high",
    "gap",
    "gap_low",
    "gap_high",
    "avg_turns",
    "output_tokens",
    "tasks",
    "rounds",
    "decided_tasks",
    "whole_tasks",
    "trusting",
    "partial",
    "waiting",
    "name",
    "identity",
    "ranking_group",
    "not_comparable",
]

DEPEND_ON_K = ["perfect_tasks", "final_round_completion", "hard_tasks", "mt_at_k", "gap"]


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    """The better agent comes last by name, and only it was run in single-round mode."""
    results = tmp_path / "evocode-results"
    for task, old, new in (("a", "pff", "ppf"), ("b", "pp", "pp")):
        write_attempt(results, task, "old", old, cases=["p"] * len(old))
        write_attempt(results, task, "x|new", new, cases=["p"] * len(new), tool_calls=4)
        write_attempt(results, task, "x|new", "p" * len(new), mode="single-round", run=NEW)


def test_json_is_a_list_with_the_best_first(evocode: Evocode) -> None:
    board = evocode("leaderboard", "--json").json
    assert board == evocode("leaderboard", "--format=json").json
    assert [list(entry) for entry in board] == [KEYS, KEYS]
    best, other = board
    assert len({best.pop("identity"), other["identity"]}) == 2
    assert best == {
        **{"agent": "x|new", "k_min": 1, "k_max": 1, "ranking_group": 1, "not_comparable": []},
        **dict.fromkeys(key for key in KEYS if key.endswith(("_low", "_high"))),
        "dataset_score": pytest.approx(100 * (2 / 3 + 1) / 2, abs=1e-12),
        "case_score": 100.0,
        "avg_rounds": 4.0,
        "perfect_tasks": 1,
        "final_round_completion": 50.0,
        "hard_tasks": 0.0,
        "mean_reward": pytest.approx(100 * (2 / 3 + 1) / 2),
        "mt_at_k": pytest.approx(100 * (2 / 3 + 1) / 2),
        "sr": 100.0,
        "gap": pytest.approx(100 / 6),
        "avg_turns": None,
        "output_tokens": None,
        "tasks": 2,
        "rounds": 5,
        "decided_tasks": 2,
        "whole_tasks": 2,
        "trusting": 0,
        "partial": 0,
        "waiting": 0,
        "name": "x|new",
    }
    assert (other["agent"], other["avg_rounds"], other["sr"], other["gap"]) == ("old", None, None, None)
    assert other["hard_tasks"] == 50.0


def test_markdown_is_a_table(evocode: Evocode) -> None:
    assert evocode("leaderboard", "-q").lines == [
        "| agent | k | Dataset Score | 95 % | Case Score | Avg Rounds | Perfect Tasks | Comp | Hard Tasks "
        "| Mean Reward | MT@k | SR | Gap | Tasks | Rounds |",
        "| :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        "| x\\|new | 1 | 83.3 | n/a | 100.0 | 4.0 | 1/2 | 50.0 | 0.0 | 83.3 | 83.3 | 100.0 | 16.7 | 2 | 5 |",
        "| old | 1 | 66.7 | n/a | 100.0 | n/a | 1/2 | 50.0 | 50.0 | 66.7 | 66.7 | n/a | n/a | 2 | 5 |",
        "",
        "95 %: no interval below 5 tasks",
    ]


def test_csv_is_read_as_it_was(evocode: Evocode, tmp_path: Path) -> None:
    # A second attempt of one agent makes a list of what is not comparable.
    write_attempt(tmp_path / "evocode-results", "a", "old", "ppp", number=2)
    ran = evocode("leaderboard", "--format", "csv")
    board = evocode("leaderboard", "--json").json
    assert [row.pop("not_comparable") for row in board] == [DEPEND_ON_K] * 2
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [row.pop("not_comparable").split() for row in rows] == [DEPEND_ON_K] * 2
    assert rows == [{key: "" if value is None else str(value) for key, value in entry.items()} for entry in board]
    assert "note: 95 %: no interval below 5 tasks" in ran.err.splitlines()


def test_single_rounds_alone_have_a_row_that_says_so(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "third", "pff", mode="single-round")
    last = evocode("leaderboard", "--json").json[-1]
    assert (last["agent"], last["dataset_score"], last["perfect_tasks"]) == ("third (single-round)", None, None)
    assert last["sr"] == pytest.approx(100 / 3)
    assert any(
        line.startswith("| third (single-round) | 1 | n/a | n/a | n/a | n/a | n/a |")
        for line in evocode("leaderboard", "-q").lines
    )


def test_scores_that_trust_the_agents_system_have_a_mark(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "cheat", "pp", cases=["p", "p"], changed={2: ["/usr/bin/env"]})
    lines = evocode("leaderboard", "-q").lines
    score = "100.0\\*"
    row = f"| 1 | {score} | n/a | {score} | n/a | 1/1\\* | {score} | 0.0 | {score} | {score} | n/a | n/a | 1 | 2 | 2 |"
    assert [line for line in lines if "*" in line] == [
        f"| cheat {row}",
        "\\* with rounds, passed or not, whose verdict trusts the agent's system beyond what the task declares",
    ]
    marked = {entry["agent"]: entry["trusting"] for entry in evocode("leaderboard", "--json").json}
    assert marked == {"x|new": 0, "old": 0, "cheat": 1}


def test_an_agent_of_which_not_all_rounds_were_selected_is_told_apart(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "rerun", "p", of=3)
    lines = evocode("leaderboard", "-q").lines
    assert [line.split(" | ")[0] for line in lines if "†" in line] == [
        "| rerun †",
        "† partial: where not all rounds of an attempt were selected, those that were count",
    ]
    assert {each["agent"]: each["partial"] for each in evocode("leaderboard", "--json").json} == {
        "x|new": 0,
        "old": 0,
        "rerun": 1,
    }


def cells(lines: list[str], agent: str) -> dict[str, str]:
    """The cells of an agent's row of a Markdown table by their columns."""
    head, row = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in (lines[0], find(lines, agent)))
    return dict(zip(head, row, strict=True))


def find(lines: list[str], agent: str) -> str:
    return next(line for line in lines if line.startswith(f"| {agent} |"))


def test_scores_that_depend_on_k_have_it_behind_them_where_it_differs(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "old", "ppp", number=2)
    lines = evocode("leaderboard", "-q", "--no-intervals").lines
    old = cells(lines, "old")
    # The second attempt at a has no cases where the first has some, which counts 0.
    # At a the mean of 1/3 and 1, of which more attempts make no more; and the best of both, of which they do.
    assert (old["k"], old["Dataset Score"], old["Case Score"], old["Mean Reward"]) == ("1-2", "83.3", "75.0", "83.3")
    assert (old["Perfect Tasks"], old["Comp"], old["MT@k"]) == ("2/2 (k=1-2)", "100.0 (k=1-2)", "100.0 (k=1-2)")
    assert (old["Hard Tasks"], old["Gap"]) == ("0.0 (k=1-2)", "n/a")
    assert cells(lines, "x\\|new")["MT@k"] == "83.3 (k=1)"
    assert lines[-1] == (
        "Perfect Tasks, Comp, Hard Tasks, MT@k and Gap depend on k, the attempts at a task, which differs: do not rank "
        "by them (--view analyses has pass@k at one k)"
    )
    entry = next(each for each in evocode("leaderboard", "--json", "--no-intervals").json if each["agent"] == "old")
    assert (entry["k_min"], entry["k_max"], entry["not_comparable"]) == (1, 2, DEPEND_ON_K)
    # With the same k in each ranking there is nothing to be said.
    write_attempt(tmp_path / "evocode-results", "b", "old", "pp", number=2)
    for task in "ab":
        write_attempt(tmp_path / "evocode-results", task, "x|new", "ppp" if task == "a" else "pp", number=2)
    assert not [
        line for line in evocode("leaderboard", "-q", "--no-intervals").lines if "k=" in line or "depend on k" in line
    ]


def test_intervals_are_there_unless_they_are_not_wanted(evocode: Evocode, tmp_path: Path) -> None:
    for task in "cdef":
        for agent in ("old", "x|new"):
            write_attempt(tmp_path / "evocode-results", task, agent, "pf", cases="pf")
        write_attempt(tmp_path / "evocode-results", task, "x|new", "pp", mode="single-round", run=NEW)
    best, _ = evocode("leaderboard", "--json").json
    assert best["dataset_score_low"] < best["dataset_score"] < best["dataset_score_high"]
    lines = evocode("leaderboard", "-q").lines
    row = cells(lines, "x\\|new")
    assert row["95 %"] == f"{best['dataset_score_low']:.1f}..{best['dataset_score_high']:.1f}"
    assert row["SR 95 %"] == f"{best['sr_low']:.1f}..{best['sr_high']:.1f}"
    assert not [line for line in lines if "below 5 tasks" in line]
    without = evocode("leaderboard", "--no-intervals")
    assert "95 %" not in without.out
    assert not {"dataset_score_low", "sr_high"} & set(evocode("leaderboard", "--no-intervals", "--json").json[0])


def test_scores_without_infrastructure_errors_stand_beside_the_others(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "lucky", "pe-", cases=["p"])
    write_attempt(tmp_path / "evocode-results", "b", "lucky", "pf", cases=["p", "pf"])
    lines = evocode("leaderboard", "-q").lines
    lucky, old = cells(lines, "lucky"), cells(lines, "old")
    assert (lucky["Dataset Score"], lucky["Dataset Score w/o faults"], lucky["Faults"]) == ("41.7", "75.0", "2")
    assert (lucky["Case Score"], lucky["Case Score w/o faults"]) == ("54.2", "87.5")
    assert (old["Dataset Score"], old["Dataset Score w/o faults"], old["Faults"]) == ("66.7", "66.7", "0")
    assert lines[-1] == "lucky: 1 error and 1 round not reached"
    assert list(lucky)[2:5] == ["Dataset Score", "95 %", "Dataset Score w/o faults"]
    entries = {each["agent"]: each for each in evocode("leaderboard", "--json").json}
    assert entries["lucky"]["dataset_score_without_faults"] == 75.0
    assert (entries["lucky"]["faults"], entries["old"]["faults"]) == (2, 0)
    assert "case_score_without_faults" in evocode("leaderboard", "--format=csv").lines[0]


def test_rows_of_other_modes_tasks_or_rounds_are_not_one_ranking(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write_attempt(results, "a", "stopping", "pp-", mode="fail-stop")
    write_attempt(results, "b", "stopping", "pp", mode="fail-stop")
    write_attempt(results, "b", "lazy", "pp")
    write_attempt(results, "a", "part", "p", of=3)
    write_attempt(results, "b", "part", "pp")
    ran = evocode("leaderboard", "--json", "--no-intervals")
    assert {each["agent"]: each["ranking_group"] for each in ran.json} == {
        **{"x|new": 1, "old": 1, "stopping (fail-stop)": 2, "part": 3, "lazy": 4},
    }
    assert [line for line in ran.err.splitlines() if "not one ranking" in line] == [
        "note: not one ranking, modes differ: chain (x|new, old, part, lazy); fail-stop (stopping (fail-stop))",
        "note: not one ranking, tasks differ: 2 of 2 (x|new, old, stopping (fail-stop), part); "
        "1 of 2, without a (lazy)",
        "note: not one ranking, rounds of a differ: 1-3 (x|new, old, stopping (fail-stop)); 1 (part)",
    ]
    assert cells(evocode("leaderboard", "-q", "--no-intervals").lines, "lazy")["Ranking group"] == "4"


def test_rows_of_other_conditions_or_contents_of_tasks_are_not_one_ranking(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "others"
    for agent, score, strict, contents in (("m", "pp", True, "1"), ("n", "pf", False, "1"), ("o", "ff", None, "2")):
        write_attempt(results, "c", agent, score, strict=strict, task_hash=contents * 64, environment="docker")
    ran = evocode("leaderboard", results, "--json", "--no-intervals")
    assert {each["agent"]: each["ranking_group"] for each in ran.json} == {"m strict": 1, "n": 2, "o": 3}
    assert [line for line in ran.err.splitlines() if "not one ranking" in line] == [
        "note: not one ranking, conditions differ: strict (m strict); not strict (n)",
        "note: not one ranking, contents of c differ: 1111111 (m strict, n); 2222222 (o)",
    ]


def test_sr_over_other_rounds_is_not_to_be_ranked(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "old", "pff", mode="single-round", run=NEW)
    ran = evocode("leaderboard", "--json", "--no-intervals")
    assert ran.err.splitlines()[-1] == "note: SR and Gap are not over the same rounds for all: do not rank by them"
    write_attempt(tmp_path / "evocode-results", "b", "old", "pf", mode="single-round", run=NEW)
    assert "do not rank" not in evocode("leaderboard", "--json", "--no-intervals").err


def test_rows_of_which_nothing_was_measured_are_in_the_order_of_their_names() -> None:
    rows = (ScoreRow("b", "chain", None, (), (), {}), ScoreRow("a", "fail-stop", None, (), (), {}))
    view = leaderboard_view(ScoreTable(rows, {}, 0), with_intervals=True)
    entries = view.tables[0].rows
    assert [entry["agent"] for entry in entries] == ["a (fail-stop)", "b"]
    assert entries[0]["tasks"] == 0
    assert "| b | 0 | n/a | n/a | n/a |" in printed(view, "markdown")


def test_turns_and_tokens_are_columns_where_they_are_known(evocode: Evocode, tmp_path: Path) -> None:
    assert "Avg Turns" not in evocode("leaderboard").out
    known = Usage(prompt_tokens=1, completion_tokens=25_000, requests=30)
    write_attempt(tmp_path / "used", "a", "gpt", "pf", usage=known)
    ran = evocode("leaderboard", "used")
    head, _, row = [[cell.strip() for cell in line.strip("|").split("|")] for line in ran.out.splitlines()[:3]]
    cells = dict(zip(head, row, strict=True))
    assert (cells["Avg Turns"], cells["Output Tok."]) == ("60.0", "50.0K")
    (entry,) = evocode("leaderboard", "used", "--json").json
    assert (entry["avg_turns"], entry["output_tokens"]) == (60, 50_000)


def test_tasks_that_no_reward_decides_and_suites_without_cases_are_named(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "c", "old", "uu")
    write_attempt(tmp_path / "evocode-results", "c", "old", "uu", mode="single-round", run=NEW)
    notes = evocode("leaderboard").out.splitlines()
    assert "Case Score of old: over 2 of 3 tasks, those whose suites report cases" in notes
    left = "2 rounds are undecided for old, and left out; the other scores are over 2 of 3 tasks"
    assert any(note.startswith(left) for note in notes)
    [row] = [[cell.strip() for cell in note.split("|")] for note in notes if note.startswith("| old |")]
    assert "1/2" in row, "Perfect Tasks, of those that a reward decides"
    assert any(note.startswith("mean rewards of old: ") for note in notes)


def test_rounds_that_only_other_attempts_decide_are_said_to_count_as_not_passed(
    evocode: Evocode, tmp_path: Path
) -> None:
    write_attempt(tmp_path / "both", "c", "old", "uu")
    write_attempt(tmp_path / "both", "c", "new", "pu")
    lines = evocode("leaderboard", "both").out.splitlines()
    why = "counted as not passed, because the same was decided in another attempt"
    assert any(line.startswith(f"2 rounds are undecided for old, and left out, but for 1 {why}; ") for line in lines)
    assert any(line.startswith("1 round is undecided for new, and left out; ") for line in lines)


def test_controls_stand_apart_and_have_no_place_and_no_say_in_k(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    before = table_of(evocode("leaderboard", "--no-intervals").lines)
    for task, rounds in (("a", 3), ("b", 2)):
        for number in (1, 2):
            write_attempt(results, task, "oracle", "p" * rounds, number=number)
        # In a mode that no other row has, and under another name.
        write_attempt(results, task, "idle", "f" * rounds, mode="fail-stop", made_by={"spec": "nop"})
    head, _, *rows = table_of(evocode("leaderboard", "--no-intervals").lines)
    assert head == [*before[0], "Ranking group"]
    assert rows[:2] == [[*row, "1"] for row in before[2:]]
    assert [row[0] for row in rows[2:]] == ["oracle", "idle (fail-stop)"]
    assert [row[-1] for row in rows] == ["1", "1", "control", "control"]
    ran = evocode("leaderboard", "--json")
    found = {entry["agent"]: (entry["ranking_group"], entry["not_comparable"]) for entry in ran.json}
    assert found == {"x|new": (1, []), "old": (1, []), "oracle": (None, []), "idle (fail-stop)": (None, [])}
    assert "not one ranking" not in ran.err
    assert "depend" not in evocode("results").out
    read = csv.DictReader(io.StringIO(evocode("leaderboard", "--format=csv").out))
    assert [row["ranking_group"] for row in read] == ["1", "1", "", ""]


def test_controls_alone_are_shown_all_the_same(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "alone", "a", "oracle", "pp")
    _, _, row = table_of(evocode("leaderboard", "alone", "--no-intervals").lines)
    assert row[0] == "oracle"


def table_of(lines: list[str]) -> list[list[str]]:
    """Return the rows of the first Markdown table, its head included."""
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows]
