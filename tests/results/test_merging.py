"""Results of several machines become one directory, or nothing is written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.merging import merge, missing_shards
from tests.result_trees import RUN, write_attempt, write_files, write_session

LATER = "2026-03-03__00-00-00"


def merged(out: Path, *sources: Path) -> list[Path]:
    return merge([load_results([source]) for source in sources], out, lambda attempt: attempt.record.agent)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_two_directories_become_one_with_all_their_files(tmp_path: Path) -> None:
    write_attempt(tmp_path / "one", "a", cases=["p", "p"])
    write_session(tmp_path / "one", {"a": {"gpt": [1]}})
    write_files(write_attempt(tmp_path / "two", "b", run=LATER), {"steps/round-1/artifacts/x": "x"})
    write_session(tmp_path / "two", {"b": {"gpt": [1]}}, run=LATER)
    assert merged(tmp_path / "out", tmp_path / "one", tmp_path / "two") == []
    found = files(tmp_path / "out")
    jobs = {path for path in found if path.count("/") == 4}
    assert {path.rpartition("/")[2] for path in jobs} == {"config.json", "result.json"}, "what Harbor reads of a job"
    assert {path: found[path] for path in found.keys() - jobs} == files(tmp_path / "one") | files(tmp_path / "two")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755
    assert sorted(os.listdir(tmp_path)) == ["one", "out", "two"]


def test_attempts_of_one_run_come_together(tmp_path: Path) -> None:
    for number in (1, 2):
        write_attempt(tmp_path / str(number), number=number)
    merged(tmp_path / "out", tmp_path / "1", tmp_path / "2")
    assert sorted(os.listdir(tmp_path / f"out/ledger/harbor_jobs/gpt/{RUN}")) == ["ledger__a1", "ledger__a2"]


def test_earlier_runs_of_one_source_are_its_history_and_no_conflict(tmp_path: Path) -> None:
    write_attempt(tmp_path / "one")
    write_attempt(tmp_path / "one", run=LATER)
    write_attempt(tmp_path / "two", "other")
    merged(tmp_path / "out", tmp_path / "one", tmp_path / "two")
    assert len(load_results([tmp_path / "out"]).attempts) == 3


@pytest.mark.parametrize("run", [RUN, LATER])
def test_the_same_attempt_made_twice_is_refused(tmp_path: Path, run: str) -> None:
    first = write_attempt(tmp_path / "one", outcomes="pp")
    second = write_attempt(tmp_path / "two", outcomes="pf", run=run)
    with pytest.raises(UsageError) as caught:
        merged(tmp_path / "out", tmp_path / "one", tmp_path / "two")
    assert f"attempt 1 of gpt at ledger: {first} and {second}" in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_a_copy_is_no_conflict(tmp_path: Path) -> None:
    write_attempt(tmp_path / "one")
    write_session(tmp_path / "one", {})
    merged(tmp_path / "copy", tmp_path / "one")
    merged(tmp_path / "out", tmp_path / "one", tmp_path / "copy")
    assert files(tmp_path / "out") == files(tmp_path / "one")


def test_other_modes_are_other_attempts(tmp_path: Path) -> None:
    write_attempt(tmp_path / "one")
    write_attempt(tmp_path / "two", mode="fail-stop", run=LATER)
    merged(tmp_path / "out", tmp_path / "one", tmp_path / "two")
    assert len(load_results([tmp_path / "out"]).attempts) == 2


def test_what_was_broken_off_and_is_finished_elsewhere_is_left_out(tmp_path: Path) -> None:
    broken = write_attempt(tmp_path / "one", outcomes="p", of=2, finished=False)
    write_attempt(tmp_path / "two", outcomes="pp", run=LATER)
    assert merged(tmp_path / "out", tmp_path / "one", tmp_path / "two") == [broken.resolve()]
    (attempt,) = load_results([tmp_path / "out"]).attempts
    assert (attempt.finished, attempt.run) == (True, LATER)


def test_what_is_partial_and_whole_elsewhere_is_left_out(tmp_path: Path) -> None:
    partial = write_attempt(tmp_path / "one", outcomes="p", of=3, run=LATER)
    write_attempt(tmp_path / "two", outcomes="p", of=3, finished=False)
    assert merged(tmp_path / "out", tmp_path / "one", tmp_path / "two") == [partial.resolve()]
    (attempt,) = load_results([tmp_path / "out"]).attempts
    assert (attempt.partial, attempt.run) == (False, RUN)


def test_what_is_unfinished_has_the_rounds_that_its_own_run_selected(tmp_path: Path) -> None:
    """Also where another machine's run has the same name."""
    for task in "ab":
        write_attempt(tmp_path / task, task, outcomes="p", of=3, finished=False)
        write_session(tmp_path / task, {task: {"gpt": [1]}}, partial={task: {"gpt": {1: (1, 2)}}})
    merged(tmp_path / "out", tmp_path / "a", tmp_path / "b")
    assert [attempt.selected for attempt in load_results([tmp_path / "out"]).attempts] == [(1, 2), (1, 2)]


def test_different_runs_of_one_name_are_both_kept(tmp_path: Path) -> None:
    """Two machines may start in the same second."""
    for number in (1, 2):
        write_attempt(tmp_path / str(number), number=number)
        write_session(tmp_path / str(number), {}, shard=(number, 2))
    merged(tmp_path / "out", tmp_path / "1", tmp_path / "2")
    assert sorted(os.listdir(tmp_path / "out/runs")) == [f"{RUN}-2.json", f"{RUN}.json"]
    assert [run.record.shard for run in load_results([tmp_path / "out"]).runs] == [(2, 2), (1, 2)]


def test_trials_of_others_lie_by_task_and_agent_then(tmp_path: Path) -> None:
    values = {"trial_name": "mesh__x", "task_name": "mesh", "agent_info": {"name": "codex"}}
    write_files(tmp_path / "jobs/j1/mesh__x", {"result.json": values, "steps/round-1/verifier/reward.txt": "1"})
    merged(tmp_path / "out", tmp_path / "jobs")
    assert (tmp_path / "out/mesh/harbor_jobs/codex/j1/mesh__x/steps/round-1/verifier/reward.txt").read_text() == "1"
    (attempt,) = load_results([tmp_path / "out"]).attempts
    assert (attempt.record.task, attempt.record.agent) == ("mesh", "codex")


def test_a_directory_with_something_in_it_is_not_merged_into(tmp_path: Path) -> None:
    write_attempt(tmp_path / "one")
    write_files(tmp_path / "out", {"x": "mine"})
    with pytest.raises(UsageError, match=r"out is not empty"):
        merged(tmp_path / "out", tmp_path / "one")
    assert files(tmp_path / "out") == {"x": b"mine"}


def test_an_empty_directory_is(tmp_path: Path) -> None:
    write_attempt(tmp_path / "one")
    (tmp_path / "out").mkdir()
    merged(tmp_path / "out", tmp_path / "one")
    assert len(load_results([tmp_path / "out"]).attempts) == 1


def test_what_cannot_be_copied_leaves_nothing(tmp_path: Path) -> None:
    attempt = write_attempt(tmp_path / "one")
    os.mkfifo(attempt / "steps/pipe")
    with pytest.raises(UsageError, match="could not be written"):
        merged(tmp_path / "out", tmp_path / "one")
    assert os.listdir(tmp_path) == ["one"]


def test_shards_without_a_run_are_missing(tmp_path: Path) -> None:
    for number in (1, 4):
        write_session(tmp_path, {}, run=f"shard-{number}", shard=(number, 5))
    write_session(tmp_path, {}, run="whole")
    assert missing_shards(load_results([tmp_path]).runs) == [(2, 5), (3, 5), (5, 5)]
