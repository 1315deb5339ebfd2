"""The index has every number that the commands print, and holds for whatever results there are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_evocode.metrics.analyses import pass_rates
from pytest_evocode.metrics.breakdown import Dimension
from pytest_evocode.metrics.efficiency import efficiency, front
from pytest_evocode.metrics.failures import failure_kinds
from pytest_evocode.metrics.score_table import ScoreTable, score_table
from pytest_evocode.report.html.cells import case_failures_of, cells_of
from pytest_evocode.report.html.ids import attempt_id
from pytest_evocode.report.html.index import index_of
from pytest_evocode.report.html.rows import comparisons_of
from pytest_evocode.report.leaderboard import leaderboard
from pytest_evocode.report.results import results_json
from pytest_evocode.report.score_columns import REPORT
from pytest_evocode.results.loading import Results, load_results
from pytest_evocode.results.records import SelectedTask, TaskFacts, Usage
from tests.report.html.contract import faults
from tests.result_trees import write_attempt, write_files, write_session
from tests.results.foreign.harbor_trials import JOB, TASK_TOML, result_of, suite
from tests.results.foreign.test_old_layout import old_trial

OLD, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00"
SCORES = (*REPORT, "trusting")
FACTS = TaskFacts(
    rounds=("round-1", "round-2", "round-3"),
    change_types=((), ("extension", "conflict"), ("extension",)),
    activity="Construction",
    category="tools",
)


def loaded(*roots: Path, cases: bool = True, **options: Any) -> tuple[ScoreTable, Results]:
    results = load_results(roots, cases=cases)
    return score_table(results, **options), results


def index(*roots: Path, **options: Any) -> dict[str, Any]:
    """The index of some results, which is as declared."""
    table, results = loaded(*roots)
    found = index_of(table, results, title="Ours", roots=roots, **options)
    assert faults(found, "Index") == []
    assert faults(comparisons_of(table), "Comparisons") == []
    return found


def a_board(root: Path) -> None:
    """Three agents at six tasks, with all that a row can have."""
    for number in range(6):
        task = f"task-{number}"
        spent = Usage(prompt_tokens=10 * number, completion_tokens=5, cost_usd=0.25, requests=3)
        write_attempt(root, task, "gpt", "pfp", cases=["pp", "pf", "fp"], usage=spent, facts=FACTS, tool_calls=number)
        write_attempt(
            root, task, "gpt", "ppp", number=2, cases=["pp", "pp", "pp"], facts=FACTS, changed={2: ["/bin/sh"]}
        )
        write_attempt(root, task, "gpt", "ppf", mode="single-round", run=NEW, facts=FACTS)
        broken = "pe-" if number == 2 else "ppf"
        write_attempt(root, task, "o3", broken, cases=["pp", "pp", "fs"], usage=spent, facts=FACTS)
        write_attempt(root, task, "nop", "fff", cases=["ff", "ff", "ss"], facts=FACTS)


def foreign(root: Path) -> None:
    write_files(root / "mesh", {"task.toml": TASK_TOML})
    trial = root / "mesh/harbor_jobs/gpt-5.5" / JOB / "mesh__abcdefg"
    files: dict[str, object] = {"result.json": result_of("mesh__abcdefg", step_results=[]), "config.json": {}}
    for number, reward in enumerate("10", 1):
        files[f"steps/round-{number}/verifier/reward.txt"] = reward
        files[f"steps/round-{number}/verifier/test-stdout.txt"] = suite(2 if reward == "1" else 1, 2)
    write_files(trial, files)


def selected_only(root: Path) -> None:
    known = {"ledger": SelectedTask(facts=FACTS)}
    write_session(root, {"ledger": {"gpt": [1, 2]}}, tasks=known, agents={"gpt": {"spec": "openai/gpt"}})


def damaged(root: Path) -> None:
    (write_attempt(root) / "result.json").write_text("{")


def unfinished(root: Path) -> None:
    write_attempt(root, outcomes="pf", of=4, cases=["p", "f"], finished=False)
    write_session(root, {"ledger": {"gpt": [1]}}, attempts=("ledger/harbor_jobs/gpt",))


def stopped(root: Path) -> None:
    write_attempt(root, outcomes="pf-", cases=["p", "f"], mode="fail-stop")


def single(root: Path) -> None:
    write_attempt(root, outcomes="pfp", cases=["p", "f", "p"], mode="single-round")


def several_of_one_number(root: Path) -> None:
    for run, outcomes in ((OLD, "ff"), (NEW, "pp")):
        write_attempt(root, outcomes=outcomes, run=run)


WORLDS: list[Callable[[Path], object]] = [
    a_board, foreign, old_trial, selected_only, damaged, unfinished, stopped, single, several_of_one_number,
    lambda root: None,
]  # fmt: skip


@pytest.mark.parametrize("world", WORLDS)
def test_the_index_of_any_results_is_as_declared(tmp_path: Path, world: Callable[[Path], object]) -> None:
    world(tmp_path)
    found = index(tmp_path, under_way=True)
    ids = [each["id"] for kind in ("rows", "tasks", "attempts", "runs") for each in found[kind]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-z]+(-[0-9a-z]+)*", id_) for id_ in ids)
    names = {row["id"] for row in found["rows"]} | {""}
    attempts = {each["id"] for each in found["attempts"]}
    assert {each["row"] for each in found["attempts"]} <= names
    assert {id_ for run in found["runs"] for id_ in run["attempts"]} == attempts
    assert {each["task"] for each in found["attempts"]} <= {task["name"] for task in found["tasks"]}
    rounds = {task["name"]: len(task["rounds"]) for task in found["tasks"]}
    assert all(len(each["cells"]) == len(each["cases"]) == rounds[each["task"]] for each in found["attempts"])


# Numbers.


def test_scores_are_those_of_evocode_results(tmp_path: Path) -> None:
    a_board(tmp_path)
    shown = {row["name"]: row for row in index(tmp_path)["rows"]}
    table, _ = loaded(tmp_path, cases=False)
    for by in get_args(Dimension):
        said = results_json(table, by=by, with_intervals=True)["rows"]
        assert {row["name"] for row in said} == shown.keys()
        for row in said:
            found = shown[row["name"]]
            assert {name: found["scores"][name] for name in SCORES} == {name: row["scores"][name] for name in SCORES}
            assert found["scores"]["attempts_min"] == row["scores"]["fewest_attempts"]
            assert found["scores"]["attempts_max"] == row["scores"]["attempts"]
            intervals = {name: list(each.values()) for name, each in found["intervals"].items()}
            assert intervals == {name: each for name, each in row["intervals"].items() if each and name in SCORES}
            groups = {
                name: {field: value for field, value in group.items() if field in SCORES and value is not None}
                for name, group in row["groups"].items()
            }
            assert found["groups"][by] == groups
            without = found["without_faults"]
            assert without == (row["without_faults"] and {name: row["without_faults"][name] for name in without})
            assert found["from_round"] == row["from_round"]


def test_failures_and_survival_are_those_of_evocode_failures(tmp_path: Path) -> None:
    a_board(tmp_path)
    shown = {row["name"]: row for row in index(tmp_path)["rows"]}
    for row in loaded(tmp_path)[0].rows:
        found = shown[row.name]
        kinds = failure_kinds(row.grid)
        assert found["failures"] == asdict(kinds)
        assert found["faults"] == kinds.rounds["infrastructure"] + kinds.rounds["agent error"]
        if row.mode != "single-round":
            shares = pass_rates(row.grid)
            assert {each["round"]: (each["passed"], each["of"]) for each in found["survival"]} == {
                index: (share.passed, share.of) for index, share in shares.items()
            }
    first = {each["round"]: each["first_failures"] for each in shown["gpt"]["survival"]}
    assert first == {1: 0, 2: 6, 3: 0}
    assert shown["gpt (single-round)"]["survival"] == []


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.matrix
def test_without_cases_the_index_is_the_same_given_what_they_told(
    tmp_path: Path, world: Callable[[Path], object]
) -> None:
    world(tmp_path)
    whole = index(tmp_path, written="now")
    _, results = loaded(tmp_path)
    ids = {attempt_id(each, [tmp_path]): each for each in results.attempts}
    table, without = loaded(tmp_path, cases=False)
    found = index_of(
        table,
        without,
        title="Ours",
        roots=[tmp_path],
        written="now",
        cells={id_: cells_of(each) for id_, each in ids.items()},
        case_failures={id_: case_failures_of(each) for id_, each in ids.items()},
    )
    assert found == whole


def test_cases_that_are_there_are_not_counted_twice(tmp_path: Path) -> None:
    a_board(tmp_path)
    table, results = loaded(tmp_path)
    failures = {attempt_id(each, [tmp_path]): case_failures_of(each) for each in results.attempts}
    found = index_of(table, results, title="", roots=[tmp_path], case_failures=failures)
    assert [row["failures"] for row in found["rows"]] == [row["failures"] for row in index(tmp_path)["rows"]]


def test_rankings_are_those_of_the_leaderboard(tmp_path: Path) -> None:
    a_board(tmp_path)
    write_attempt(tmp_path, "task-0", "stopped", "pf-", mode="fail-stop", facts=FACTS)
    rows = index(tmp_path)["rows"]
    board = leaderboard(loaded(tmp_path)[0], with_intervals=True)
    ranked = {entry["agent"]: entry["ranking_group"] for entry in board.entries}
    # The control, which the board ranks with nobody, is alone behind the others.
    assert ranked.pop("nop") is None
    assert {row["name"]: row["ranking"] for row in rows} == {**ranked, "gpt (single-round)": 3, "nop": 4}
    assert [row["name"] for row in rows][: len(ranked)] == list(ranked)
    assert set(board.notes) <= set(index(tmp_path)["notes"])


def test_spending_is_of_an_attempt_at_a_task(tmp_path: Path) -> None:
    for number, cost in ((1, 0.5), (2, 1.5)):
        spent = Usage(prompt_tokens=90, completion_tokens=10, cost_usd=cost)
        write_attempt(tmp_path, "a", "gpt", "pp", number=number, usage=spent)
    write_attempt(tmp_path, "b", "gpt", "p", usage=Usage(prompt_tokens=1, completion_tokens=1, cost_usd=4.0))
    write_attempt(tmp_path, "a", "o3", "pp", usage=Usage(prompt_tokens=1))
    gpt, o3 = index(tmp_path)["rows"]
    assert gpt["spending"] == {"cost_usd": 3.0, "tokens": 101.0, "output_tokens": 10.5, "agent_seconds": 2.25}
    assert o3["spending"] == {"cost_usd": None, "tokens": None, "output_tokens": None, "agent_seconds": 3.0}


def test_the_front_is_that_of_evocode_pareto(tmp_path: Path) -> None:
    for agent, outcomes, cost in (("cheap", "pf", 1.0), ("good", "pp", 3.0), ("bad", "pf", 2.0), ("dear", "pp", None)):
        write_attempt(tmp_path, "a", agent, outcomes, usage=Usage(cost_usd=cost))
    found = index(tmp_path)
    names = {row["id"]: row["name"] for row in found["rows"]}
    (points,) = (
        each["points"] for each in found["pareto"] if (each["score"], each["against"]) == ("dataset_score", "cost_usd")
    )
    table, _ = loaded(tmp_path)
    best = front({row.name: efficiency(row.grid) for row in table.rows}, ["cost"])
    assert {names[point["row"]] for point in points if point["front"]} == {*best.front} == {"cheap", "good"}
    assert {names[point["row"]]: (point["x"], point["y"]) for point in points} == {
        "cheap": (2.0, 50.0),
        "good": (6.0, 100.0),
        "bad": (4.0, 50.0),
    }
    assert {point["standing"] for point in points} == {""}


def test_from_five_tasks_on_a_point_says_how_sure_its_place_is(tmp_path: Path) -> None:
    for task in "abcde":
        write_attempt(tmp_path, task, "good", "pp", cases=["p", "p"], usage=Usage(cost_usd=1.0))
        write_attempt(tmp_path, task, "poor", "pf", cases=["p", "f"], usage=Usage(cost_usd=2.0))
    found = index(tmp_path)
    names = {row["id"]: row["name"] for row in found["rows"]}
    charts = [each for each in found["pareto"] if each["against"] == "cost_usd"]
    assert [each["score"] for each in charts] == ["dataset_score", "case_score"]
    for chart in charts:
        said = {names[point["row"]]: point["standing"] for point in chart["points"]}
        assert said == {"good": "on the front (100 %)", "poor": "beaten (0 %)"}
