"""The benchmark's workflow and its action, step by step as a runner takes them."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.workflows.runner import ROOT, Job, Runner

BENCHMARK = ROOT / ".github" / "workflows" / "benchmark.yml"


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Return a runner with a repository of one task, where the package is installed already."""
    shutil.copytree(ROOT / "example_tasks" / "process" / "recipes", tmp_path / "workspace" / "tasks" / "recipes")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("pip", "sudo"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (programs / name).chmod(0o755)
    return Runner(tmp_path, programs=programs)


def results(jobs: dict[str, list[Job]]) -> dict[str, list[str]]:
    return {name: [job.result for job in each] for name, each in jobs.items()}


@pytest.mark.slow("two agents play a task")
def test_a_benchmark_is_planned_run_merged_and_reported(runner: Runner) -> None:
    jobs = runner.play(BENCHMARK, {"agents": "oracle nop", "shards": 1, "environment": "sandbox"})
    (oracle, nop), (merge,) = jobs["run"], jobs["merge"]
    assert results(jobs) == {
        "plan": ["success"],
        "approve": ["skipped"],
        "run": ["success", "success"],
        "merge": ["success"],
        "pages": ["skipped"],
    }, f"{oracle.log}{nop.log}{merge.log}"
    assert f"pip install {runner.root}/workspace/.evocode/.github/actions/evocode/../../..[sandbox" in oracle.log
    assert "::error" not in oracle.log
    # A round that failed is a result, and no failure of the job: it is shown where task.toml declares it, as a warning.
    rounds = re.findall(r"^::(\w+) file=tasks/recipes/task\.toml,line=\d+,title=([^:]*)::", nop.log, re.MULTILINE)
    assert rounds == [("warning", f"recipes nop round-{number}") for number in (1, 2, 3)]
    assert [line for line in oracle.summary.splitlines() if line.startswith("| oracle | 100.0 |")] != []
    for agent, score in (("oracle", "100.0"), ("nop", "0.0")):
        assert f"\n| {agent} | 1 | {score} |" in merge.summary
    assert merge.summary.endswith("\n[Report](https://artifacts.example/evocode-report.html)\n")
    assert merge.outputs == {"report": "https://artifacts.example/evocode-report.html"}
    with tarfile.open(runner.artifacts / "evocode-results" / "evocode-results.tar.gz") as packed:
        assert {name.partition("/")[0] for name in packed.getnames()} == {"merged", "report", "comment.md"}


@pytest.mark.slow("an agent plays a task")
def test_what_other_jobs_left_is_merged_where_one_fails(runner: Runner) -> None:
    jobs = runner.play(BENCHMARK, {"agents": "nobody nop", "shards": 1, "environment": "sandbox"})
    assert results(jobs)["run"] == ["failure", "success"]
    assert "unknown agent 'nobody'" in jobs["run"][0].summary
    (merge,) = jobs["merge"]
    assert "\n| nop | 1 | 0.0 |" in merge.summary
    assert "evocode-results" in {path.name for path in runner.artifacts.iterdir()}
