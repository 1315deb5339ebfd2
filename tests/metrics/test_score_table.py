"""What is scored together: the newest attempts of one agent in one mode, and what is missing among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.analyses import pass_rates
from pytest_evocode.metrics.breakdown import breakdown
from pytest_evocode.metrics.failures import failure_kinds
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, score_table
from pytest_evocode.results.foreign import read_task_directories
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import SelectedTask, TaskFacts, Usage
from tests.result_trees import write_attempt, write_files, write_session

OLD, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00"
FACTS = TaskFacts(rounds=("round-1", "round-2", "round-3"))


def rows(directory: Path, **options: Any) -> ScoreTable:
    return score_table(load_results([directory]), **options)


def only(directory: Path, **options: Any) -> ScoreRow:
    (row,) = rows(directory, **options).rows
    return row


def scores(directory: Path, **options: Any) -> dict[str, float | None]:
    """The Dataset Scores by the names of the rows."""
    found = rows(directory, **options)
    return {row.name: found.scores(row).dataset_score for row in found.rows}


def attempts(row: ScoreRow) -> list[tuple[str, int, str]]:
    return [(each.record.task, each.record.attempt, each.run) for each in row.attempts]


def test_an_agent_has_a_row(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "gpt", "pf")
    write_attempt(tmp_path, "b", "gpt", "pp")
    write_attempt(tmp_path, "a", "nop", "ff")
    assert scores(tmp_path) == {"gpt": 75.0, "nop": 0.0}


def test_modes_are_never_in_one_row(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pff", run=OLD)
    write_attempt(tmp_path, outcomes="pf-", run=NEW, mode="fail-stop")
    write_attempt(tmp_path, outcomes="pp", run=NEW, first=2, from_round="round-2", number=2, facts=FACTS)
    write_attempt(tmp_path, outcomes="ppf", run=NEW, mode="single-round", number=3)
    found = rows(tmp_path)
    assert [row.name for row in found.rows] == ["gpt", "gpt (from round-2)", "gpt (fail-stop)", "gpt (single-round)"]
    assert [found.scores(row).dataset_score for row in found.rows] == [
        pytest.approx(100 / 3),
        100.0,  # Rounds before round-2 do not count.
        pytest.approx(100 / 3),
        None,
    ]


def test_sr_and_gap_come_from_the_agents_own_single_rounds(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pff", run=OLD)
    write_attempt(tmp_path, outcomes="ppf", run=NEW, mode="single-round")
    write_attempt(tmp_path, outcomes="p", run=NEW, mode="single-round", agent="other")
    found = rows(tmp_path)
    chain, single, other = map(found.scores, found.rows)
    assert chain.sr == pytest.approx(200 / 3)
    assert chain.mt_at_k == pytest.approx(100 / 3)
    assert chain.gap == pytest.approx(100 / 3)
    assert single.sr == pytest.approx(200 / 3)
    assert (single.gap, single.dataset_score) == (None, None)
    assert other.sr == 100.0


def test_single_rounds_that_are_attempts_of_their_own_count_together(tmp_path: Path) -> None:
    """So Harbor makes them: a trial for each round."""
    for index, outcome in enumerate("pfp", 1):
        begin = None if index == 1 else f"round-{index}"
        path = tmp_path / f"job-{index}"
        write_attempt(path, outcomes=outcome, first=index, of=3, mode="single-round", from_round=begin)
    row = only(tmp_path)
    assert [(record.index, record.outcome) for record in row.records] == [(1, "passed"), (2, "failed"), (3, "passed")]
    assert rows(tmp_path).scores(row).sr == pytest.approx(200 / 3)


def test_of_a_single_round_that_two_attempts_made_the_newest_record_counts(tmp_path: Path) -> None:
    write_attempt(tmp_path / "b", outcomes="pff", mode="single-round", run=OLD)
    write_attempt(tmp_path / "a", outcomes="p", first=2, of=3, mode="single-round", from_round="round-2", run=NEW)
    row = only(tmp_path)
    assert [(record.index, record.outcome) for record in row.records] == [(1, "passed"), (2, "passed"), (3, "failed")]


def test_an_attempt_without_a_round_counts_as_not_passed(tmp_path: Path) -> None:
    path = write_attempt(tmp_path, "empty", of=2) / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rounds": []}))
    assert scores(tmp_path) == {"gpt": 0.0}
    write_attempt(tmp_path, "whole")
    assert scores(tmp_path) == {"gpt": 50.0}


# Which attempts count.


def test_of_attempts_with_one_number_the_newest_counts(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="ff", run=OLD)
    write_attempt(tmp_path, outcomes="pp", run=NEW)
    write_attempt(tmp_path, outcomes="pf", run=OLD, number=2)
    found = rows(tmp_path)
    assert attempts(found.rows[0]) == [("ledger", 1, NEW), ("ledger", 2, OLD)]
    assert (found.superseded, scores(tmp_path)) == (1, {"gpt": 75.0})


def test_the_newest_counts_even_if_it_was_broken_off_in_a_session_that_ended_by_itself(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", run=OLD)
    write_attempt(tmp_path, outcomes="p", of=2, run=NEW, finished=False)
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=NEW)
    assert scores(tmp_path) == {"gpt": 50.0}


@pytest.mark.parametrize("ended", [{"finished": None}, {"interrupted": True}])
def test_an_interrupted_attempt_has_no_score_and_replaces_none(tmp_path: Path, ended: dict[str, Any]) -> None:
    write_attempt(tmp_path, outcomes="pp", run=OLD)
    used = Usage(prompt_tokens=70, completion_tokens=7)
    write_attempt(tmp_path, outcomes="p", of=2, run=NEW, finished=False, usage=used)
    write_session(tmp_path, {"ledger": {"gpt": [1, 2]}}, run=NEW, **ended)
    found = rows(tmp_path)
    assert (scores(tmp_path), found.superseded, found.rows[0].missing) == ({"gpt": 100.0}, 0, ())
    assert [(each.attempt, each.run, each.state, each.why, each.usage) for each in found.apart] == [
        (1, NEW, "unfinished", "1 of 2 rounds judged", used),
        (2, NEW, "never started", "its session was stopped before it, or is under way", None),
    ]


def test_of_an_attempt_that_was_interrupted_in_its_first_turn_the_tokens_are_known(tmp_path: Path) -> None:
    path = write_attempt(tmp_path, outcomes="-", of=2, finished=False)
    facts = TaskFacts(rounds=("round-1", "round-2"))
    known = {"ledger": SelectedTask(facts=facts)}
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, finished=None, tasks=known)
    turn = {"final_metrics": {"total_prompt_tokens": 50, "total_completion_tokens": 5}, "steps": []}
    write_files(path, {"steps/round-1/agent/trajectory.json": turn})
    found = rows(tmp_path)
    assert found.rows == ()
    assert [(each.state, each.why) for each in found.apart] == [("unfinished", "0 of 2 rounds judged")]
    assert found.apart[0].usage == Usage(prompt_tokens=50, completion_tokens=5)


def test_an_attempt_that_never_started_is_in_no_score_and_no_k(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pf")
    path = write_attempt(tmp_path, outcomes="e-", number=2)
    record = json.loads((path / "result.json").read_text())
    for each in record["rounds"]:
        each["unscored"] = "never started"
    (path / "result.json").write_text(json.dumps(record))
    write_session(tmp_path, {"ledger": {"gpt": [1, 2]}})
    found = rows(tmp_path)
    score = found.scores(found.rows[0])
    assert (score.dataset_score, score.attempts, found.over_attempts(found.rows[0])) == (50.0, 1, {})
    assert [(each.attempt, each.state, each.why) for each in found.apart] == [
        (2, "never started", "the engine is down")
    ]


def test_all_runs_count_where_that_is_wanted(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="ff", run=OLD)
    write_attempt(tmp_path, outcomes="pp", run=NEW)
    row = only(tmp_path, all_runs=True)
    assert attempts(row) == [("ledger", 1, OLD), ("ledger", 2, NEW)]
    assert {record.attempt for record in row.records} == {1, 2}
    assert scores(tmp_path, all_runs=True) == {"gpt": 50.0}


def test_one_run_counts_where_it_is_named(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="ff", run=OLD)
    write_attempt(tmp_path, outcomes="pp", run=NEW)
    assert scores(tmp_path, only={OLD}) == {"gpt": 0.0}
    assert rows(tmp_path, only={"never"}).rows == ()


# What is missing.


def test_a_selected_task_without_a_record_counts_as_not_passed(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", outcomes="pp")
    write_session(tmp_path, {"a": {"gpt": [1]}, "b": {"gpt": [1]}})
    row = only(tmp_path)
    assert row.missing == (("b", 1),)
    assert scores(tmp_path) == {"gpt": 50.0}


def test_a_selected_attempt_without_a_record_counts_as_not_passed(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", number=2)
    write_session(tmp_path, {"ledger": {"gpt": [1, 2, 3, 4]}})
    row = only(tmp_path)
    assert row.missing == (("ledger", 1), ("ledger", 3), ("ledger", 4))
    assert scores(tmp_path) == {"gpt": 25.0}


def test_an_agent_that_left_nothing_has_a_row(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "gpt", "p", facts=TaskFacts(rounds=("round-1",)))
    write_session(tmp_path, {"a": {"gpt": [1], "other": [1]}}, mode="chain")
    write_session(tmp_path, {"a": {"third": [1]}}, mode="single-round", run=NEW)
    assert scores(tmp_path) == {"gpt": 100.0, "other": 0.0, "third (single-round)": None}


def test_what_one_run_did_not_make_another_may_have(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", run=OLD)
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=OLD)
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=NEW)
    assert only(tmp_path).missing == ()
    assert only(tmp_path, all_runs=True).missing == (("ledger", 2),)
    assert only(tmp_path, only={NEW}).missing == (("ledger", 1),)


def test_a_missing_attempt_has_as_many_rounds_as_its_task(tmp_path: Path) -> None:
    """SR is a share of rounds, so it matters how many are missing."""
    write_attempt(tmp_path, "a", "gpt", "p", mode="single-round")
    write_attempt(tmp_path, "b", "other", "ppp", mode="single-round", facts=FACTS)
    write_session(tmp_path, {"a": {"gpt": [1]}, "b": {"gpt": [1]}}, mode="single-round")
    found = rows(tmp_path)
    assert found.scores(found.rows[0]).sr == 25.0


TEN = TaskFacts(rounds=tuple(f"round-{index}" for index in range(1, 11)), activity="Migration")


def test_a_task_that_was_never_begun_counts_with_all_its_rounds(tmp_path: Path) -> None:
    write_attempt(tmp_path, "t1", outcomes="pp", mode="single-round")
    write_session(
        tmp_path, {"t1": {"gpt": [1]}, "t2": {"gpt": [1]}}, mode="single-round", tasks={"t2": SelectedTask(facts=TEN)}
    )
    found = rows(tmp_path)
    (row,) = found.rows
    score = found.scores(row)
    assert score.sr == pytest.approx(100 * 2 / 12)
    assert (score.sr_macro, score.rounds) == (50.0, 12)
    assert (row.uncounted, found.facts["t2"].activity) == ((), "Migration")
    assert [share.of for share in pass_rates(row.grid).values()] == [2, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    assert failure_kinds(row.grid).not_reached == 10
    groups = breakdown(row.grid, "activity", found.facts)
    assert {name: (group.rounds, group.dataset_score) for name, group in groups.items()} == {
        "Migration": (10, 0.0),
        "not given": (2, 100.0),
    }


def test_of_an_older_run_any_agents_attempt_tells_how_many_rounds_a_task_has(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "gpt", "pp", mode="single-round")
    write_attempt(tmp_path, "b", "other", "pfpp", mode="chain", run=OLD)
    write_session(tmp_path, {"b": {"gpt": [1]}, "c": {"gpt": [1]}}, mode="single-round")
    found = rows(tmp_path)
    row = found.rows[0]
    assert (row.missing, row.uncounted) == ((("b", 1), ("c", 1)), ("c",))
    assert found.scores(row).rounds == 2 + 4 + 1
    given = rows(tmp_path, tasks={"a": FACTS, "b": FACTS, "c": TEN})
    assert (given.rows[0].uncounted, given.scores(given.rows[0]).rounds) == ((), 2 + 3 + 10)


def test_rounds_that_several_runs_selected_and_left_nothing_of_all_count(tmp_path: Path) -> None:
    for run, parts in ((OLD, (1, 3)), (NEW, (1, 2))):
        known = {"ledger": SelectedTask(facts=TEN)}
        write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=run, partial={"ledger": {"gpt": {1: parts}}}, tasks=known)
    found = rows(tmp_path)
    assert found.scores(found.rows[0]).rounds == 3


def test_the_tasks_that_are_given_count_and_no_others(tmp_path: Path) -> None:
    steps = '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n'
    write_files(tmp_path / "tasks", {f"{task}/task.toml": steps for task in "ab"})
    for task in "ac":
        write_attempt(tmp_path / "results", task, outcomes="pp")
    tasks = read_task_directories(tmp_path / "tasks")
    row = only(tmp_path / "results", tasks=tasks)
    assert (attempts(row), row.missing) == ([("a", 1, "2026-01-02__03-04-05")], (("b", 1),))
    assert scores(tmp_path / "results", tasks=tasks) == {"gpt": 50.0}


def test_facts_are_those_of_the_newest_attempt(tmp_path: Path) -> None:
    write_attempt(tmp_path, run=OLD, facts=TaskFacts(rounds=("round-1", "round-2"), category="old"))
    write_attempt(tmp_path, run=NEW, facts=TaskFacts(rounds=("round-1", "round-2"), category="new"))
    assert rows(tmp_path).facts["ledger"].category == "new"


def test_rewards_add_up_as_the_task_says(tmp_path: Path) -> None:
    facts = TaskFacts(rounds=("round-1", "round-2"), reward_strategy="final")
    write_attempt(tmp_path, outcomes="fp", facts=facts)
    found = rows(tmp_path)
    assert found.scores(found.rows[0]).mean_reward == 100.0


# Attempts of which not all rounds were selected.


def test_a_partial_attempt_displaces_no_whole_one(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", run=OLD)
    write_attempt(tmp_path, outcomes="p", of=2, run=NEW)
    found = rows(tmp_path)
    (row,) = found.rows
    assert attempts(row) == [("ledger", 1, OLD)]
    assert [(each.run, each.round_names) for each in row.beside] == [(NEW, ["round-1"])]
    assert (found.superseded, scores(tmp_path)) == (0, {"gpt": 100.0})
    assert scores(tmp_path, all_runs=True) == {"gpt": 100.0}


def test_a_partial_attempt_does_not_hide_that_a_whole_one_left_nothing(tmp_path: Path) -> None:
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=OLD)
    write_attempt(tmp_path, outcomes="p", of=4, run=NEW)
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=NEW, partial={"ledger": {"gpt": {1: (1,)}}})
    assert (scores(tmp_path), only(tmp_path).attempts[0].finished) == ({"gpt": 25.0}, False)
    assert scores(tmp_path, only={NEW}) == {"gpt": 100.0}


def test_a_partial_attempt_that_left_nothing_is_not_missed_beside_a_whole_one(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", run=OLD)
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=NEW, partial={"ledger": {"gpt": {1: (1,)}}})
    assert (scores(tmp_path, all_runs=True), only(tmp_path, all_runs=True).missing) == ({"gpt": 100.0}, ())


def test_a_whole_attempt_replaces_an_older_partial_one(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="f", of=2, run=OLD)
    write_attempt(tmp_path, outcomes="pf", run=NEW)
    found = rows(tmp_path)
    assert (scores(tmp_path), found.superseded, found.rows[0].beside) == ({"gpt": 50.0}, 1, ())


def test_a_partial_attempt_counts_over_its_own_rounds_where_there_is_no_other(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="ff", of=4, run=OLD)
    write_attempt(tmp_path, outcomes="pf", of=4, run=NEW)
    found = rows(tmp_path)
    score = found.scores(found.rows[0])
    assert (score.dataset_score, score.mt_at_k, score.rounds, score.perfect_tasks) == (50.0, None, 2, None)
    assert found.superseded == 1
    assert scores(tmp_path, only={OLD}) == {"gpt": 0.0}


def test_an_oracle_that_began_at_a_known_state_counts_over_what_it_played(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="p", first=3, of=5)
    assert scores(tmp_path) == {"gpt": 100.0}


def test_selected_rounds_that_were_not_reached_count_as_not_passed(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="p", of=4, finished=False)
    write_session(tmp_path, {"ledger": {"gpt": [1, 2]}}, partial={"ledger": {"gpt": {1: (1, 2), 2: (1, 2)}}})
    row = only(tmp_path)
    assert [(each.partial, each.selected, each.finished) for each in row.attempts] == [(True, (1, 2), False)]
    assert row.missing == (("ledger", 2),)
    assert (scores(tmp_path), row.grid.tasks[0].indices) == ({"gpt": 25.0}, (1, 2))


def test_single_rounds_that_were_selected_and_not_run_count_as_not_passed(tmp_path: Path) -> None:
    """Each round writes ``result.json`` again, so that it is there before the last one."""
    write_attempt(tmp_path, outcomes="pp", of=4, run=OLD, mode="single-round")
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=OLD, mode="single-round")
    write_attempt(tmp_path, outcomes="p", of=4, run=NEW, mode="single-round")
    write_session(
        tmp_path, {"ledger": {"gpt": [1]}}, run=NEW, mode="single-round", partial={"ledger": {"gpt": {1: (1,)}}}
    )
    found = rows(tmp_path)
    assert found.scores(found.rows[0]).sr == 50.0
    assert [(each.run, each.partial, each.finished) for each in found.rows[0].attempts] == [(OLD, False, False)]
    assert [each.run for each in found.rows[0].beside] == [NEW]


def test_single_rounds_that_were_selected_count_alone(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="p", first=2, of=3, mode="single-round")
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, mode="single-round", partial={"ledger": {"gpt": {1: (2,)}}})
    found = rows(tmp_path)
    assert found.scores(found.rows[0]).sr == 100.0
    assert [(each.partial, each.finished) for each in found.rows[0].attempts] == [(True, True)]


@pytest.mark.parametrize(("deterministic", "hashes", "flaky"), [
    (True, ("x", "x"), ["round-2"]),
    (False, ("x", "x"), []),
    (True, ("x", "y"), []),
])  # fmt: skip
def test_a_row_knows_its_flaky_rounds_unless_the_contents_of_their_task_differ(
    tmp_path: Path, deterministic: bool, hashes: tuple[str, str], flaky: list[str]
) -> None:
    for number, outcomes in ((1, "pp"), (2, "pf")):
        write_attempt(
            tmp_path, outcomes=outcomes, number=number, deterministic=deterministic, task_hash=hashes[number - 1]
        )
    assert [each.round for each in only(tmp_path, any_version=True).flaky] == flaky


@pytest.mark.parametrize("told_by", ["its session", "the newest attempt of any session"])
def test_an_attempt_that_left_no_result_knows_which_cases_others_reported(tmp_path: Path, told_by: str) -> None:
    """Where its own record does not say at which contents it was made, its suite's silence earns it nothing."""
    run = OLD if told_by == "its session" else NEW
    write_session(tmp_path, {"a": {"gpt": [1]}, "b": {"other": [1]}}, run=OLD)
    write_attempt(tmp_path, "a", "gpt", "pp", finished=False, run=OLD)
    write_attempt(tmp_path, "a", "other", "pp", cases=["pp", "pp"], run=run, task_hash="1" * 64)
    found = rows(tmp_path)
    (row,) = (row for row in found.rows if row.agent == "gpt")
    assert (found.scores(row).case_score, found.scores(row).case_tasks) == (0.0, 1)
