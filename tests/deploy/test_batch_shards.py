"""The scripts of ``deploy/`` at work: shards as tasks of an array, one of them killed and submitted again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_evocode.results.loading import load_results
from tests.acceptance.tasks import task_writer
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

DEPLOY = Path(__file__).parents[2] / "deploy"
SHARDS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A directory with ``deploy/`` and three tasks, each of two rounds, of which the second takes a while."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    write_task = task_writer(tmp_path)
    for name in ("a", "b", "c"):
        write_task(name, 2, solve={2: "sleep 1\necho line-2 >> log.txt"})
    return tmp_path


def variables(cluster: Path, attempts: str = "2", **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PYTEST_", "JOB_"))}
    options = f"--evocode-env=sandbox --evocode-attempts={attempts} --evocode-replay -p no:cacheprovider"
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "EVOCODE_SHARDS": str(SHARDS),
        "EVOCODE_OUTPUT": str(cluster / "run"),
        "EVOCODE_WORKERS": "0",
        "EVOCODE_OPTIONS": options,
        "SLURM_SUBMIT_DIR": str(cluster),
        **more,
    }


def begin(cluster: Path, number: int, attempts: int, shards: int) -> subprocess.Popen[str]:
    """Begin a task of the array as slurmd does: a copy of the script, elsewhere."""
    spool = cluster / "spool"
    spool.mkdir(exist_ok=True)
    script = shutil.copy(cluster / "deploy" / "slurm" / "array.sbatch", spool / f"slurm_script_{number}")
    return subprocess.Popen(
        ["bash", script],
        cwd=cluster,
        env=variables(cluster, str(attempts), SLURM_ARRAY_TASK_ID=str(number), EVOCODE_SHARDS=str(shards)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(cluster: Path, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", cluster / "deploy" / script],
        cwd=cluster,
        env=variables(cluster, **more),
        capture_output=True,
        text=True,
    )


def scores(directory: Path) -> str:
    asked = [str(Path(sys.executable).parent / "evocode"), "results", str(directory), "--by", "round"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def killed_and_submitted_again(cluster: Path, shards: int, attempts: int) -> None:
    """Make all shards, of which the second is killed; make it again, and merge."""
    given = {"EVOCODE_SHARDS": str(shards)}
    tasks = {number: begin(cluster, number, attempts, shards) for number in range(1, shards + 1)}
    shard = cluster / "run" / "shard-2"
    wait_until(lambda: list(shard.rglob("round-1/round.json")), lambda: tasks[2].communicate()[0])
    tasks[2].send_signal(signal.SIGKILL)
    said = {number: task.communicate(timeout=300)[0] for number, task in tasks.items()}
    expected = {number: -signal.SIGKILL if number == 2 else 0 for number in tasks}
    assert {number: task.returncode for number, task in tasks.items()} == expected, said
    kept = {path: path.read_bytes() for path in shard.rglob("round-1/round.json")}

    assert run(cluster, "unfinished.sh", **given).stdout == "2\n"
    early = run(cluster, "merge.sh", **given)
    assert (early.returncode, "submit these shards again, which go on where they were: 2" in early.stderr) == (1, True)

    again = begin(cluster, 2, attempts, shards)
    told = again.communicate(timeout=300)[0]
    assert again.returncode == 0, told
    assert "evocode: resuming" in told
    assert {path: path.read_bytes() for path in kept} == kept
    merged = run(cluster, "merge.sh", **given)
    assert merged.returncode == 0, merged.stderr
    assert "nothing is missing" in merged.stdout
    assert run(cluster, "unfinished.sh", **given).stdout == "\n"


def made(cluster: Path) -> list[tuple[str, int]]:
    """Return what attempts the merged results have."""
    found = load_results([cluster / "run" / "merged"]).attempts
    return sorted((each.record.task, each.record.attempt) for each in found)


@pytest.mark.nightly  # By day a shard ends, below, and tests/acceptance/test_shards.py resumes one.
def test_a_killed_shard_is_submitted_again_and_goes_on_where_it_was(cluster: Path) -> None:
    shutil.rmtree(cluster / "tasks/c")
    killed_and_submitted_again(cluster, shards=2, attempts=1)
    assert made(cluster) == [("a", 1), ("b", 1)]


@pytest.mark.nightly
def test_the_merge_of_shards_one_of_which_was_killed_is_that_of_one_run(cluster: Path) -> None:
    killed_and_submitted_again(cluster, shards=SHARDS, attempts=2)
    whole = run(cluster, "shard.sh", EVOCODE_SHARDS="1", JOB_COMPLETION_INDEX="0", EVOCODE_OUTPUT=str(cluster / "one"))
    assert whole.returncode == 0, whole.stdout
    assert scores(cluster / "run" / "merged") == scores(cluster / "one")
    assert made(cluster) == [(task, number) for task in "abc" for number in (1, 2)]


def test_a_shard_that_ended_is_not_made_again_and_can_be_merged(cluster: Path) -> None:
    for name in ("b", "c"):
        shutil.rmtree(cluster / "tasks" / name)
    only = {"EVOCODE_SHARDS": "1", "JOB_COMPLETION_INDEX": "0", "attempts": "1"}
    first = run(cluster, "shard.sh", **only)
    assert first.returncode == 0, first.stdout
    again = run(cluster, "shard.sh", **only)
    assert again.returncode == 0, again.stdout
    assert "nothing to go" in again.stdout
    merged = run(cluster, "merge.sh", **only)
    assert merged.returncode == 0, merged.stderr
    assert "nothing is missing" in merged.stdout
    assert made(cluster) == [("a", 1)]


def test_a_shard_without_a_number_says_what_it_needs(cluster: Path) -> None:
    told = run(cluster, "shard.sh")
    assert (told.returncode, "name the shard" in told.stderr) == (4, True)


def submit(cluster: Path, *shards: str) -> tuple[str, list[str]]:
    """Submit shards to a queue that runs nothing, and return what is printed and how sbatch was called."""
    bin_ = cluster / "bin"
    bin_.mkdir()
    (bin_ / "sbatch").write_text('#!/bin/bash\necho "$@" >> sbatch.log\necho "17;cluster"\n')
    (bin_ / "sbatch").chmod(0o755)
    path = f"{bin_}:{os.environ['PATH']}"
    asked = ["bash", str(cluster / "deploy" / "slurm" / "submit.sh"), *shards]
    told = subprocess.run(asked, cwd=cluster, env=variables(cluster, PATH=path), capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    log = cluster / "sbatch.log"
    return told.stdout, log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def test_submitting_names_the_shards_and_the_merge_waits_for_them(cluster: Path) -> None:
    told, (array, merge) = submit(cluster, "1,3")
    assert told == "array 17, merge 17\n"
    assert re.search(r"--array=1,3 \S+/slurm/array.sbatch$", array)
    assert re.search(r"--dependency=afterany:17 \S+/slurm/merge.sbatch$", merge)


def test_where_no_shard_is_unfinished_nothing_is_submitted_again(cluster: Path) -> None:
    told, calls = submit(cluster, "")  # As unfinished.sh prints it.
    assert "none is unfinished" in told
    assert calls == []
