"""``evocode runs``: runs are listed, removed, brought back, excluded and tagged."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.environments.cache import lock_run
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt, write_session

OLD, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A run that has ended, and one that was interrupted."""
    results = tmp_path / "evocode-results"
    write_attempt(results, "ledger", "gpt", "pf", run=OLD)
    write_session(results, {"ledger": {"gpt": [1]}}, run=OLD, scores={"gpt": {"dataset_score": 50.0}})
    write_attempt(results, "ledger", "gpt", "p", of=2, run=NEW, finished=False)
    write_session(results, {"ledger": {"gpt": [1]}, "mesh": {"gpt": [1]}}, run=NEW, interrupted=True)
    return results


def files(directory: Path) -> set[Path]:
    return {path.relative_to(directory) for path in directory.rglob("*") if path.is_file()}


def test_runs_are_listed_with_their_state_and_scores(evocode: Evocode, results: Path) -> None:
    assert evocode("runs").lines == [
        "run agents tasks attempts state scores conditions tags",
        f"{OLD} gpt 1 1 ended gpt 50.0 n/a",
        f"{NEW} gpt 2 1 interrupted, 1 unfinished n/a n/a",
    ]
    old, new = evocode("runs", results, "--format", "json").json
    assert (old["run"], old["state"], old["scores"]) == (OLD, "ended", {"gpt": 50.0})
    assert (new["agents"], new["tasks"], new["unscored"]) == (["gpt"], 2, {"unfinished": 1})


def test_a_removed_run_lies_in_the_trash_and_can_be_brought_back(evocode: Evocode, results: Path) -> None:
    before = files(results)
    ran = evocode("runs", results, "--remove", OLD)
    assert ran.lines == [f"moved to {results}/.trash/{OLD}; bring it back with: evocode runs {results} --restore {OLD}"]
    listed = evocode("runs")
    assert [line.split()[0] for line in listed.lines[1:]] == [NEW]
    assert listed.err == f"note: removed: {OLD}; --restore RUN brings one back\n"
    assert "gpt 50.0" not in evocode("results").out
    assert {path.name for path in files(results)} == {path.name for path in before}
    assert evocode("runs", results, "--restore", OLD).lines == [f"{OLD} is back"]
    assert files(results) == before
    assert not (results / ".trash").exists()


def test_no_score_counts_an_excluded_run_until_it_is_included_again(evocode: Evocode, results: Path) -> None:
    evocode("runs", "--exclude", OLD)
    assert f"{OLD} gpt 1 1 ended, excluded gpt 50.0 n/a" in evocode("runs").lines
    ran = evocode("results")
    assert ran.lines[0].startswith("not scored")
    assert not any(line.startswith("gpt") for line in ran.lines)
    assert f"note: excluded, so no score counts them: {OLD}; evocode runs --include RUN counts one again" in ran.err
    assert evocode("results", "--run", OLD).lines[1].startswith("gpt 50.0")
    evocode("runs", "--include", OLD)
    assert evocode("results").lines[1].startswith("gpt 50.0")


def test_runs_have_tags(evocode: Evocode, results: Path) -> None:
    evocode("runs", "--tag", f"{OLD}=paper", "--tag", f"{OLD}=first")
    assert evocode("runs").lines[1].endswith(" paper first")
    evocode("runs", "--untag", f"{OLD}=paper")
    assert evocode("runs", "--format", "json").json[0]["tags"] == ["first"]


def test_what_cannot_be_done_says_why(evocode: Evocode, results: Path) -> None:
    assert "there is no run yesterday" in evocode("runs", "--remove", "yesterday").err
    assert "there is no such run" in evocode("runs", "--restore", "yesterday").err
    assert "there is no such record" in evocode("runs", "--exclude", "yesterday").err
    assert "write it as RUN=TAG" in evocode("runs", "--tag", OLD).err
    lock = lock_run(results.resolve(), OLD)
    assert lock is not None
    assert f"the run {OLD} is still under way" in evocode("runs", "--remove", OLD).err
    lock.release()


def test_a_score_over_a_part_of_the_tasks_or_so_far_says_so(evocode: Evocode, results: Path) -> None:
    half = "2026-03-01__00-00-00"
    write_attempt(results, "ledger", "gpt", "pf", run=half)
    scores = {"gpt": {"dataset_score": 50.0}}
    write_session(results, {"ledger": {"gpt": [1]}, "mesh": {"gpt": [1]}}, run=half, scores=scores)
    assert evocode("runs").lines[-1] == f"{half} gpt 2 1 ended gpt 50.0 (over 1 of 2 tasks) n/a"
    write_session(results, {"ledger": {"gpt": [1]}}, run=half, scores=scores, waiting="budget: total-cost $1 of $1")
    assert "gpt 50.0 (so far)" in evocode("runs").lines[-1]
    assert evocode("runs", "--format", "json").json[-1]["scored_tasks"] == {"gpt": {"scored": 1, "of": 1}}
