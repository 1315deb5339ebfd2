"""What is scored together: one agent under the same conditions, at the same contents of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.score_table import ScoreTable, score_table
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.identity import identity_of
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import AttemptState, ForkSource, SelectedTask, TaskFacts
from tests.result_trees import write_attempt, write_files, write_session
from tests.results.foreign.harbor_trials import result_of

OLD, MIDDLE, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00", "2026-03-01__00-00-00"
LOW, HIGH = ({"spec": "openai/gpt-5", "options": {"effort": effort}} for effort in ("low", "high"))


def table(directory: Path, **options: Any) -> ScoreTable:
    return score_table(load_results([directory]), **options)


def scores(directory: Path, **options: Any) -> dict[str, float | None]:
    """The Dataset Scores, or SR, by the names of the rows."""
    found = table(directory, **options)
    both = {row.name: found.scores(row) for row in found.rows}
    return {name: each.sr if each.dataset_score is None else each.dataset_score for name, each in both.items()}


# Agents.


def test_two_efforts_of_one_model_are_two_rows(tmp_path: Path) -> None:
    write_attempt(tmp_path, agent="gpt-5", outcomes="pf", run=OLD, made_by=HIGH)
    write_attempt(tmp_path, agent="gpt-5", outcomes="ff", run=NEW, made_by=LOW)
    assert scores(tmp_path) == {"gpt-5 effort=high": 50.0, "gpt-5 effort=low": 0.0}
    assert table(tmp_path).superseded == 0


def test_one_agent_is_one_row_whatever_a_session_called_it(tmp_path: Path) -> None:
    write_attempt(tmp_path, agent="gpt-5", outcomes="ff", run=OLD, made_by={"spec": "openai/gpt-5"})
    told_apart = {"spec": "openai/gpt-5", "name": "gpt-5"}
    write_attempt(tmp_path, agent="openai-gpt-5", outcomes="pf", run=NEW, made_by=told_apart)
    write_attempt(tmp_path, "other", "gpt-5", "pp", run=OLD, made_by={"spec": "openai/gpt-5"})
    (row,) = table(tmp_path).rows
    assert (row.name, row.agent) == ("gpt-5", "openai-gpt-5")
    assert {record.agent for record in row.records} == {row.agent}
    assert scores(tmp_path) == {"gpt-5": 75.0}


def fork_of(made_by: dict[str, Any]) -> dict[str, Any]:
    """The fields of an attempt that went on from what such an agent, called A, left after the first of three rounds."""
    source = ForkSource(point="A:round-1", agent="A", made_by=made_by, run=OLD, attempt=1, round="round-1", index=1)
    return {"from_round": "round-2", "first": 2, "forked_from": source}


def test_forks_have_a_row_for_each_agent_that_they_went_on_from_whatever_its_name(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="ppf", run=OLD)
    write_attempt(tmp_path, outcomes="pf", run=MIDDLE, **fork_of(LOW))
    assert scores(tmp_path) == {"gpt": pytest.approx(200 / 3), "gpt (from A:round-1)": 50.0}
    write_attempt(tmp_path, outcomes="pp", run=NEW, **fork_of(HIGH))
    low, high = (identity_of(each, "A").hash for each in (LOW, HIGH))
    assert scores(tmp_path) == {
        "gpt": pytest.approx(200 / 3),
        f"gpt (from A {low}:round-1)": 50.0,
        f"gpt (from A {high}:round-1)": 100.0,
    }
    assert table(tmp_path).superseded == 0


def test_a_fork_that_left_nothing_is_missing_over_the_rounds_that_were_its_own(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", run=NEW, **fork_of(LOW))
    facts = TaskFacts(rounds=("round-1", "round-2", "round-3"))
    tasks = {"ledger": SelectedTask(facts=facts)}
    write_session(tmp_path, {"ledger": {"gpt": [1, 2]}}, run=NEW, fork_from=f"A:round-1@{OLD}", tasks=tasks)
    (row,) = table(tmp_path).rows
    assert (row.name, row.missing) == ("gpt (from A:round-1)", (("ledger", 2),))
    assert scores(tmp_path) == {"gpt (from A:round-1)": 50.0}
    assert table(tmp_path).scores(row).rounds == 2


def test_what_left_nothing_belongs_to_the_agent_that_its_run_names(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "gpt-5", "p", run=OLD, made_by=HIGH)
    write_attempt(tmp_path, "a", "gpt-5", "p", run=NEW, made_by=LOW)
    write_session(tmp_path, {"b": {"gpt-5": [1]}}, run=OLD, agents={"gpt-5": HIGH})
    assert scores(tmp_path) == {"gpt-5 effort=high": 50.0, "gpt-5 effort=low": 100.0}


def test_what_left_nothing_in_a_run_that_does_not_say_belongs_to_the_agent_of_that_run(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", "gpt-5", "p", run=OLD, made_by=HIGH)
    write_attempt(tmp_path, "a", "gpt-5", "p", run=NEW, made_by=LOW)
    write_session(tmp_path, {"b": {"gpt-5": [1]}}, run=OLD)
    assert scores(tmp_path) == {"gpt-5 effort=high": 50.0, "gpt-5 effort=low": 100.0}


def test_what_left_nothing_belongs_to_the_agent_of_an_unfinished_attempt_of_its_run(tmp_path: Path) -> None:
    """Runs of before records named agents, which were broken off in their first attempt."""
    write_attempt(tmp_path, "a", "gpt-5", "p", run=OLD, made_by=HIGH)
    write_attempt(tmp_path, "a", "gpt-5", "p", of=2, run=NEW, finished=False)
    state = AttemptState(environment="sandbox", task_hash="", made_by=LOW)
    AttemptDirectory.of(tmp_path, "a", "gpt-5", NEW, 1).write_state(state)
    write_session(tmp_path, {"a": {"gpt-5": [1]}, "b": {"gpt-5": [1]}}, run=NEW)
    assert scores(tmp_path) == {"gpt-5 effort=high": 100.0, "gpt-5 effort=low": 25.0}


def test_an_unfinished_attempt_is_of_the_agent_that_its_run_names(tmp_path: Path) -> None:
    write_attempt(tmp_path, agent="gpt-5", outcomes="pp", run=OLD, made_by=HIGH)
    write_attempt(tmp_path, agent="gpt-5", outcomes="p", of=2, run=NEW, finished=False)
    write_session(tmp_path, {"ledger": {"gpt-5": [1]}}, run=NEW, agents={"gpt-5": LOW})
    assert scores(tmp_path) == {"gpt-5 effort=high": 100.0, "gpt-5 effort=low": 50.0}


def test_single_rounds_pair_with_the_chains_of_the_same_agent_only(tmp_path: Path) -> None:
    write_attempt(tmp_path, agent="gpt-5", outcomes="pf", run=OLD, made_by=HIGH)
    write_attempt(tmp_path, agent="gpt-5", outcomes="pf", run=OLD, number=2, made_by=LOW)
    write_attempt(tmp_path, agent="gpt-5", outcomes="pp", run=NEW, made_by=LOW, mode="single-round")
    found = table(tmp_path)
    assert {row.name: found.scores(row).sr for row in found.rows if row.mode == "chain"} == {
        "gpt-5 effort=high": None,
        "gpt-5 effort=low": 100.0,
    }


# Conditions.


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        ({"environment": "docker"}, {"environment": "sandbox"}, ["gpt docker", "gpt sandbox"]),
        ({"strict": False}, {"strict": True}, ["gpt", "gpt strict"]),
        (
            {"strict": False, "verify": "clean"},
            {"strict": False},
            ["gpt", "gpt verify=clean"],
        ),
        ({}, {"strict": False}, ["gpt", "gpt (strict and verify not said)"]),
        ({}, {}, ["gpt"]),
    ],
)
def test_other_conditions_are_another_row(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], names: list[str]
) -> None:
    write_attempt(tmp_path, outcomes="pf", run=OLD, **one)
    write_attempt(tmp_path, outcomes="ff", run=NEW, **other)
    assert list(scores(tmp_path)) == names


# Contents of tasks.


def test_a_changed_task_splits_rows_with_the_newest_first(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", run=OLD, task_hash="1" * 64)
    write_attempt(tmp_path, outcomes="pf", run=NEW, task_hash="2" * 64)
    write_attempt(tmp_path, outcomes="pf", run=OLD, number=2, task_hash="1" * 64)
    write_attempt(tmp_path, "other", outcomes="pp", run=OLD, task_hash="3" * 64)
    assert scores(tmp_path) == {"gpt": 75.0, "gpt ledger@1111111": 75.0}
    first, _ = table(tmp_path).rows
    assert list(first.contents.items()) == [("ledger", "2" * 64), ("other", "3" * 64)]
    assert first.changed == {"ledger": {"2" * 64: 1, "1" * 64: 2}}
    # Mixed on purpose: the newest first attempt, and the second.
    assert scores(tmp_path, any_version=True) == {"gpt": 75.0}
    assert table(tmp_path, any_version=True).superseded == 1


def test_older_contents_have_the_rounds_that_the_task_had_then(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="p", run=OLD, task_hash="1", facts=TaskFacts(rounds=("round-1",)))
    three = TaskFacts(rounds=("round-1", "round-2", "round-3"))
    write_attempt(tmp_path, outcomes="pff", run=NEW, task_hash="2", facts=three)
    old = table(tmp_path).rows[1]
    assert [len(task.indices) for task in old.grid.tasks] == [1]
    assert old.facts["ledger"].declared == 1


def test_three_contents_are_three_rows_and_unknown_ones_have_their_own(tmp_path: Path) -> None:
    for run, digest, outcomes in ((OLD, "", "ff"), (MIDDLE, "2", "pf"), (NEW, "3", "pp")):
        for task in ("a", "b"):
            write_attempt(tmp_path, task, outcomes=outcomes, run=run, task_hash=digest)
    newest, middle, oldest = scores(tmp_path).items()
    assert newest == ("gpt", 100.0)
    assert (middle[0].partition("@")[0], middle[1], oldest[1]) == ("gpt 2 tasks", 50.0, 0.0)
    assert middle[0] != oldest[0]


def test_what_left_nothing_counts_at_the_contents_that_its_run_selected(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pp", run=OLD, task_hash="1")
    write_session(tmp_path, {"ledger": {"gpt": [1, 2]}}, run=OLD)
    write_attempt(tmp_path, outcomes="pp", run=NEW, task_hash="2")
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=NEW)
    assert scores(tmp_path) == {"gpt": 100.0, "gpt ledger@1": 50.0}


def test_what_left_nothing_before_a_task_changed_and_was_made_after_that_is_not_missing(tmp_path: Path) -> None:
    for run, digest in ((OLD, "1"), (NEW, "2")):
        known = {"ledger": SelectedTask(task_hash=digest, facts=TaskFacts(rounds=("round-1", "round-2")))}
        write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=run, tasks=known)
    write_attempt(tmp_path, outcomes="pp", run=NEW, task_hash="2")
    assert scores(tmp_path) == {"gpt": 100.0}


def test_gap_is_not_taken_of_other_contents(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pf", run=OLD, task_hash="1")
    write_attempt(tmp_path, outcomes="pp", run=NEW, task_hash="2", mode="single-round")
    found = table(tmp_path)
    assert [found.scores(row).gap for row in found.rows] == [None, None]


def write_trial(directory: Path, version: str, name: str, values: dict[str, object]) -> None:
    info = {"name": "claude-code", "version": version, "model_info": {"name": "opus", "provider": "anthropic"}}
    job = directory / f"{name}-job" / name
    write_files(job, {"result.json": result_of(name, agent_info=info, **values), "steps/r/verifier/reward.txt": "1"})


def test_two_versions_of_a_harness_in_harbors_trials_are_two_rows(tmp_path: Path) -> None:
    write_trial(tmp_path, "2.1", "t__a", {})
    write_trial(tmp_path, "2.2", "t__b", {})
    assert list(scores(tmp_path)) == ["claude-code__opus 2.1", "claude-code__opus 2.2"]


def test_harbors_checksums_are_never_taken_for_our_hashes(tmp_path: Path) -> None:
    write_trial(tmp_path, "2.1", "t__a", {"task_checksum": "1", "started_at": "2026-01-01T00:00:00Z"})
    write_trial(tmp_path, "2.1", "t__b", {"task_checksum": "2"})
    assert list(scores(tmp_path)) == ["claude-code__opus", "claude-code__opus mesh@1"]


def test_a_checksum_over_the_jobs_too_tells_nothing_of_the_contents(tmp_path: Path) -> None:
    for number in ("1", "2"):
        values = result_of(f"a__{number}", task_checksum=number, started_at=f"2026-01-0{number}T00:00:00Z")
        trial = tmp_path / "a" / "harbor_jobs" / "codex" / f"job-{number}" / f"a__{number}"
        write_files(trial, {"result.json": values, "steps/r/verifier/reward.txt": "1"})
    assert list(scores(tmp_path)) == ["codex"]


def test_what_was_verified_again_by_later_tests_is_missing_nowhere_and_at_the_newest_contents(tmp_path: Path) -> None:
    """A run's record says at which contents it was begun; regrading changes those of its attempts."""
    later = "2026-04-01T00:00:00+00:00"
    write_attempt(tmp_path, outcomes="pp", run=OLD, task_hash="2", regraded=later)
    session = {"tasks": {"ledger": {"task_hash": "1", "facts": {"rounds": ["round-1", "round-2"]}}}}
    write_session(tmp_path, {"ledger": {"gpt": [1]}}, run=OLD, **session)
    (row,) = table(tmp_path).rows
    assert (row.name, row.missing, row.changed) == ("gpt", (), {})
    write_attempt(tmp_path, outcomes="pf", run=NEW, task_hash="1")
    assert scores(tmp_path) == {"gpt": 100.0, "gpt ledger@1": 50.0}
