"""``--evocode-shard``: jobs that know nothing of each other make all attempts between them, each once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from pytest_evocode.metrics.scores import scores
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import RunRecord

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

SLOW = "[agent]\ntimeout_sec = 6000.0"
QUICK = "[agent]\ntimeout_sec = 100.0"


def rounds_of(session: Session) -> set[str]:
    """The node ids that a session collected."""
    return {line for line in session.result.outlines if re.match(r"tasks/.*::round-\d+$", line)}


def attempts_of(session: Session) -> set[str]:
    """The attempts that a session collected, as task::attempt."""
    return {re.sub(r"tasks/(.*)/task.toml(::.*)::.*", r"\1\2", nodeid) for nodeid in rounds_of(session)}


def evocode(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == status, result.output
    return result.output


def test_shards_have_every_attempt_once_and_whole(write_task: WriteTask, run_tasks: RunTasks) -> None:
    for name, rounds in (("a", 3), ("b", 1), ("c", 2)):
        write_task(name, rounds)
    asked = ("--collect-only", "-q", "--evocode-agent=nop", "--evocode-attempts=3", "tasks")
    shards = [run_tasks(f"--evocode-shard={number}/4", *asked) for number in (1, 2, 3, 4)]
    found = [rounds_of(shard) for shard in shards]
    assert sum(map(len, found)) == len(set().union(*found)) == 2 * 3 * (3 + 1 + 2)
    attempts = [attempts_of(shard) for shard in shards]
    assert sum(map(len, attempts)) == 2 * 3 * 3


def test_shards_are_balanced_by_rounds_and_timeouts(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a-long", 2, toml=SLOW)  # 2 * (6000 + 600) seconds are more than all others together.
    write_task("b-short", 1, toml=QUICK)
    write_task("c-short", 2, toml=QUICK)
    write_task("d-short", 3, toml=QUICK)
    first = run_tasks("--evocode-shard=1/2", "--collect-only", "-q", "tasks")
    second = run_tasks("--evocode-shard=2/2", "--collect-only", "-q", "tasks")
    assert attempts_of(first) == {"a-long::oracle"}
    assert attempts_of(second) == {"b-short::oracle", "c-short::oracle", "d-short::oracle"}


def test_what_an_attempt_took_before_does_not_move_it_and_a_whole_run_tells_what_it_makes(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    for name in ("a", "b", "c"):
        write_task(name, 1)
    asked = ("--evocode-shard=1/2", "--collect-only", "-q")
    before = rounds_of(run_tasks(*asked, "tasks"))
    run = run_tasks("tasks/b", "tasks/c").run
    assert (run.shard, run.selected) == (None, {"b": {"oracle": (1,)}, "c": {"oracle": (1,)}})
    assert rounds_of(run_tasks(*asked, "tasks")) == before


def test_the_order_of_the_command_line_does_not_move_an_attempt(write_task: WriteTask, run_tasks: RunTasks) -> None:
    for name in ("a", "b", "c"):
        write_task(name, 1)
    asked = ("--evocode-shard=1/2", "--collect-only", "-q")
    before = rounds_of(run_tasks(*asked, "tasks/a", "tasks/b", "tasks/c"))
    assert len(before) == 2
    assert rounds_of(run_tasks(*asked, "tasks/c", "tasks/b", "tasks/a")) == before


def test_a_selection_is_what_is_shared_out(write_task: WriteTask, run_tasks: RunTasks) -> None:
    for name in ("a", "b", "left", "right"):
        write_task(name, 1)
    asked = ("--collect-only", "-q", "-k", "left or right", "tasks")
    first, second = (run_tasks(f"--evocode-shard={number}/2", *asked) for number in (1, 2))
    assert (attempts_of(first), attempts_of(second)) == ({"left::oracle"}, {"right::oracle"})


@pytest.mark.parametrize("workers", [(), ("-n1",)])
@pytest.mark.matrix
def test_a_run_tells_its_shard_and_what_all_make_and_other_shards_rounds_are_deselected_but_no_other_tests(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    write_task("a", 2)
    write_task("b", 3)
    pytester.makepyfile(test_plain="def test_good(): pass")
    asked = ("--evocode-agent=nop", "--evocode-attempts=2", "--evocode-shard=2/3")
    session = run_tasks(*asked, *workers, subprocess=bool(workers))
    made = session.run.attempts
    assert 0 < len(made) < 8
    rounds = sum(2 if attempt.startswith("a/") else 3 for attempt in made)
    counts = session.outcomes
    assert counts["passed"] + counts.get("failed", 0) == rounds + 1
    if not workers:  # Whose controller counts none.
        assert counts["deselected"] == 2 * 2 * (2 + 3) - rounds
    session.has("evocode: agent oracle, nop (2 attempts each), shard 2/3")
    session.has(f"evocode: shard 2/3 made {len(made)} of 8 attempts")
    assert session.run.shard == (2, 3)
    both = {"nop": (1, 2), "oracle": (1, 2)}
    assert session.run.selected == {"a": both, "b": both}


def test_what_a_run_is_to_make_is_on_disk_before_its_first_round_for_a_session_that_is_killed(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        "import shutil\ndef pytest_runtest_setup(item):\n    shutil.copytree('evocode-results/runs', 'runs-by-then')"
    )
    write_task("a", 1)
    assert run_tasks("tasks").outcomes == {"passed": 1}
    (path,) = (pytester.path / "runs-by-then").glob("*.json")
    run = RunRecord.model_validate_json(path.read_text())
    assert (run.finished, run.selected) == (None, {"a": {"oracle": (1,)}})


@pytest.mark.parametrize("workers", [(), ("-n1",)])
@pytest.mark.matrix
def test_a_shard_with_nothing_to_do_is_no_failure(
    write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-shard=2/2", *workers, "tasks", subprocess=bool(workers))
    assert session.exit_status == 0
    assert (session.run.attempts, session.run.selected) == ((), {"a": {"oracle": (1,)}})
    session.has("evocode: shard 2/2 made 0 of 1 attempts")


def test_a_shard_of_nothing_is_what_it_is_without_shards(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    assert run_tasks("--evocode-shard=1/2", "-k", "nowhere", "tasks").exit_status == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.nightly
def test_two_shards_merge_to_the_table_of_one_run(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3, solve={2: "true"})
    write_task("b", 2, solve={1: "exit 1"})
    write_task("c", 4, solve={4: "true"})
    asked = ("--evocode-agent=nop", "--evocode-attempts=2", "tasks")
    run_tasks(*asked, "--evocode-results=whole")
    for number in (1, 2):
        run_tasks(*asked, f"--evocode-shard={number}/2", f"--evocode-results=machine-{number}")
    told = evocode("merge", "machine-1", "machine-2", "-o", "merged")
    assert "12 attempts of 2 runs" in told
    assert "nothing is missing" in told
    for by in ("task", "round"):
        assert evocode("results", "merged", "--by", by) == evocode("results", "whole", "--by", by)
    whole, merged = (
        scores([record for attempt in load_results([Path(name)]).attempts for record in attempt.record.rounds])
        for name in ("whole", "merged")
    )
    assert merged.dataset_score == whole.dataset_score
    shutil.rmtree(pytester.path / "merged")


def test_a_shard_is_resumed_as_the_shard_that_it_was_and_a_merge_names_one_that_is_missing(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    for name in ("a", "b", "c"):
        write_task(name, 1)
    for number in (1, 2):
        run_tasks(f"--evocode-shard={number}/3", f"--evocode-results=machine-{number}", "tasks")
    told = evocode("merge", "machine-1", "machine-2", "-o", "merged", status=1)
    assert "missing: shard 3 of 3" in told
    assert "c oracle attempt 1" in told
    resumed = ("--evocode-results=machine-1", "--evocode-resume", "tasks")
    refused = run_tasks(*resumed)
    assert refused.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "was begun with --evocode-shard=1/3; continue it with that" in refused.text
    assert run_tasks(*resumed, "--evocode-shard=1/3").outcomes == {"passed": 1, "deselected": 2}


@pytest.mark.parametrize("text", ["3/2", "2", "0/2", "a/b", "1/2/3", "-1/2", ""])
@pytest.mark.matrix
def test_what_names_no_shard_is_refused(write_task: WriteTask, run_tasks: RunTasks, text: str) -> None:
    write_task("a", 1)
    session = run_tasks(f"--evocode-shard={text}", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"--evocode-shard={text}: write it as 2/8, for the second of eight parts" in session.text
