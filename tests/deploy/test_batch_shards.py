"""The scripts of ``deploy/`` at work: shards as tasks of an array, one of them killed and submitted again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_evocode.results.loading import load_results
from tests.acceptance.tasks import task_writer

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


def variables(cluster: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PYTEST_", "JOB_"))}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "EVOCODE_SHARDS": str(SHARDS),
        "EVOCODE_OUTPUT": str(cluster / "run"),
        "EVOCODE_WORKERS": "0",
        "EVOCODE_OPTIONS": "--evocode-env=sandbox --evocode-attempts=2 --evocode-replay -p no:cacheprovider",
        "SLURM_SUBMIT_DIR": str(cluster),
        **more,
    }


def begin(cluster: Path, number: int) -> subprocess.Popen[str]:
    """Begin a task of the array as slurmd does: a copy of the script, elsewhere."""
    spool = cluster / "spool"
    spool.mkdir(exist_ok=True)
    script = shutil.copy(cluster / "deploy" / "slurm" / "array.sbatch", spool / f"slurm_script_{number}")
    return subprocess.Popen(
        ["bash", script],
        cwd=cluster,
        env=variables(cluster, SLURM_ARRAY_TASK_ID=str(number)),
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


def test_a_killed_shard_is_submitted_again_and_the_merge_is_that_of_one_run(cluster: Path) -> None:
    tasks = {number: begin(cluster, number) for number in range(1, SHARDS + 1)}
    shard = cluster / "run" / "shard-2"
    deadline = time.monotonic() + 120
    while not list(shard.rglob("round-1/round.json")):
        assert time.monotonic() < deadline, tasks[2].communicate()[0]
        time.sleep(0.05)
    tasks[2].send_signal(signal.SIGKILL)
    said = {number: task.communicate(timeout=300)[0] for number, task in tasks.items()}
    assert {number: task.returncode for number, task in tasks.items()} == {1: 0, 2: -signal.SIGKILL, 3: 0}, said
    kept = {path: path.read_bytes() for path in shard.rglob("round-1/round.json")}

    assert run(cluster, "unfinished.sh").stdout == "2\n"
    early = run(cluster, "merge.sh")
    assert (early.returncode, "submit these shards again, which go on where they were: 2" in early.stderr) == (1, True)

    again = begin(cluster, 2)
    told = again.communicate(timeout=300)[0]
    assert again.returncode == 0, told
    assert "evocode: resuming" in told
    assert {path: path.read_bytes() for path in kept} == kept
    merged = run(cluster, "merge.sh")
    assert merged.returncode == 0, merged.stderr
    assert "nothing is missing" in merged.stdout
    assert run(cluster, "unfinished.sh").stdout == "\n"

    whole = run(cluster, "shard.sh", EVOCODE_SHARDS="1", JOB_COMPLETION_INDEX="0", EVOCODE_OUTPUT=str(cluster / "one"))
    assert whole.returncode == 0, whole.stdout
    assert scores(cluster / "run" / "merged") == scores(cluster / "one")
    made = [(each.record.task, each.record.attempt) for each in load_results([cluster / "run" / "merged"]).attempts]
    assert sorted(made) == [(task, number) for task in "abc" for number in (1, 2)]


@pytest.mark.nightly
def test_a_shard_that_ended_is_not_made_again(cluster: Path) -> None:
    first = run(cluster, "shard.sh", JOB_COMPLETION_INDEX="0")
    assert first.returncode == 0, first.stdout
    again = run(cluster, "shard.sh", JOB_COMPLETION_INDEX="0")
    assert again.returncode == 0, again.stdout
    assert "nothing to go" in again.stdout


def test_a_shard_without_a_number_says_what_it_needs(cluster: Path) -> None:
    told = run(cluster, "shard.sh")
    assert (told.returncode, "name the shard" in told.stderr) == (4, True)


def test_submitting_names_the_shards_and_the_merge_waits_for_them(cluster: Path) -> None:
    bin_ = cluster / "bin"
    bin_.mkdir()
    (bin_ / "sbatch").write_text('#!/bin/bash\necho "$@" >> sbatch.log\necho "17;cluster"\n')
    (bin_ / "sbatch").chmod(0o755)
    path = f"{bin_}:{os.environ['PATH']}"
    asked = ["bash", str(cluster / "deploy" / "slurm" / "submit.sh"), "1,3"]
    told = subprocess.run(asked, cwd=cluster, env=variables(cluster, PATH=path), capture_output=True, text=True)
    assert told.stdout == "array 17, merge 17\n", told.stderr
    array, merge = (cluster / "sbatch.log").read_text(encoding="utf-8").splitlines()
    assert re.search(r"--array=1,3 \S+/slurm/array.sbatch$", array)
    assert re.search(r"--dependency=afterany:17 \S+/slurm/merge.sbatch$", merge)
