"""The scripts of the workflows."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_evocode.results.records import Usage
from tests.result_trees import write_attempt

SCRIPTS = Path(__file__).parents[2] / ".github" / "scripts"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shell(name: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script where ``pytest`` prints what it is called with."""
    bin_ = cwd / "bin"
    bin_.mkdir(exist_ok=True)
    (bin_ / "pytest").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (bin_ / "pytest").chmod(0o755)
    path = f"{bin_}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    environment = {**kept, "PATH": path, **variables}
    return subprocess.run(["bash", SCRIPTS / name], cwd=cwd, env=environment, capture_output=True, text=True)


def plan(root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    tasks = Path(__file__).parents[2] / "example_tasks"
    asked = {"AGENTS": "oracle openai/gpt-5", "TASKS": str(tasks), "ATTEMPTS": "2", "SHARDS": "3", **variables}
    files = {name: str(root / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment = {**os.environ, **asked, **files}
    return subprocess.run([sys.executable, SCRIPTS / "plan.py"], env=environment, capture_output=True, text=True)


def test_a_plan_has_a_job_for_each_agent_and_shard(tmp_path: Path) -> None:
    told = plan(tmp_path)
    assert told.returncode == 0, told.stderr
    name, _, matrix = (tmp_path / "GITHUB_OUTPUT").read_text(encoding="utf-8").partition("=")
    jobs = [(each["agent"], each["shard"]) for each in json.loads(matrix)["include"]]
    assert name == "matrix"
    assert jobs == [(agent, shard) for agent in ("oracle", "openai/gpt-5") for shard in (1, 2, 3)]
    assert "unknown" in told.stdout


def test_a_plan_says_what_it_will_cost_before_it_is_spent(tmp_path: Path) -> None:
    write_attempt(tmp_path / "before", "other", "openai-gpt-5", "p", usage=Usage(cost_usd=0.5))
    script = load("plan")
    stored = script.load_results([tmp_path / "before"]).attempts
    seconds = script.ExpectedAmounts(stored, script.seconds_of)
    costs = script.ExpectedAmounts(stored, script.cost_of)
    lines = script.plan_lines(["openai/gpt-5", "oracle"], {"other": 1, "new": 3}, 2, 4, seconds, costs)
    assert lines[2].endswith("| 4 | 4 | 0.00 | 4.00 |")
    assert lines[3].endswith("| unknown |")


def test_a_plan_says_how_long_the_longest_job_is_expected_to_take(tmp_path: Path) -> None:
    """Of an attempt of an hour and one of half an hour in three jobs, it is the hour and not the mean."""
    for task, hours in (("long", 1.0), ("short", 0.5)):
        write_attempt(tmp_path / "before", task, "oracle", "p", usage=Usage(cost_usd=hours * 3600))
    script = load("plan")
    seconds = script.ExpectedAmounts(script.load_results([tmp_path / "before"]).attempts, script.cost_of)
    lines = script.plan_lines(["oracle"], {"long": 1, "short": 1}, 1, 3, seconds, seconds)
    assert lines[2].startswith("| oracle | 2 | 3 | 1.00 |")


def test_a_plan_of_nothing_is_refused(tmp_path: Path) -> None:
    assert plan(tmp_path, AGENTS="").returncode == 2


def test_what_a_fork_wrote_is_only_text_in_a_comment() -> None:
    text = load("comment").body('<img src="x">@everyone ![a](https://evil.example)' + "x" * 99_999, "https://run")
    assert text.startswith("<!-- evocode-benchmark -->")
    for bad in ("<img", "@everyone", "![", "https://evil"):
        assert bad not in text
    assert len(text) < 65_536


def test_the_pull_request_is_found_by_its_newest_commit_and_repository() -> None:
    event = {"workflow_run": {"head_sha": "abc", "head_repository": {"id": 7}}}
    ones = [
        {"number": number, "head": {"sha": sha, "repo": repo}}
        for number, sha, repo in ((1, "abc", {"id": 8}), (2, "old", {"id": 7}), (3, "abc", None), (4, "abc", {"id": 7}))
    ]
    find = load("comment").pull_request
    assert (find(event, ones), find(event, ones[:3])) == (4, None)


def test_changed_tasks_are_those_that_files_changed_in(tmp_path: Path) -> None:
    (tmp_path / "tasks" / "a" / "steps").mkdir(parents=True)
    (tmp_path / "tasks" / "a" / "task.toml").touch()
    changed = ["tasks/a/steps/1/test.sh", "tasks/gone/task.toml", "README.md", ""]
    assert load("changed_tasks").tasks_of(changed, tmp_path) == ["tasks/a"]


def test_only_changed_tasks_are_checked(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    for name in ("a", "b c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").touch()
    git("init", "-q")
    git("add", "a", "b c")
    git("commit", "-qm", "tasks")
    assert "no task has changed" in shell("check-changed.sh", tmp_path, BASE="HEAD").stdout
    (tmp_path / "b c" / "new").touch()
    git("add", "b c")
    git("commit", "-qm", "change")
    assert shell("check-changed.sh", tmp_path, BASE="HEAD~1").stdout.splitlines()[-2:] == ["--", "b c"]


def test_a_job_takes_its_inputs_as_data(tmp_path: Path) -> None:
    given = {"AGENT": "a; touch bad", "SHARD": "1", "SHARDS": "2", "ATTEMPTS": "1", "MODE": "chain"}
    told = shell("run-shard.sh", tmp_path, **given, ENVIRONMENT="auto", RESULTS="r", TASKS="tasks", BASELINE="nowhere")
    assert "--evocode-agent=a; touch bad" in told.stdout.splitlines()
    assert "shard-times" not in told.stdout
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(("extras", "wanted"), [("", "./source"), ("sandbox,openai", "./source[sandbox,openai]")])
def test_what_is_installed_is_the_source_with_its_extras(extras: str, wanted: str, tmp_path: Path) -> None:
    for name in ("pip", "sudo"):  # Neither installs or changes anything here.
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/bash\necho {name} "$@"\n')
        program.chmod(0o755)
    told = shell("install.sh", tmp_path, SOURCE="./source", EXTRAS=extras)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0] == f"pip install {wanted}"


@pytest.mark.parametrize(("now", "status"), [("pp", "0"), ("ff", "1")])
def test_a_summary_has_the_leaderboard_and_the_status_of_the_comparison(tmp_path: Path, now: str, status: str) -> None:
    write_attempt(tmp_path / "before", outcomes="pp")
    write_attempt(tmp_path / "shards" / "evocode-job-0", outcomes=now)
    output = tmp_path / "output"
    told = shell(
        "summarize.sh", tmp_path, SHARDS="shards", MERGED="merged", BASELINE="before", GITHUB_OUTPUT=str(output)
    )
    assert output.read_text(encoding="utf-8") == f"status={status}\n", told.stderr
    assert "gpt" in (tmp_path / "comment.md").read_text(encoding="utf-8")


def test_a_baseline_is_what_an_earlier_benchmark_packed(tmp_path: Path) -> None:
    write_attempt(tmp_path / "merged")
    baseline = tmp_path / "baseline"
    baseline.mkdir()
    for _ in range(2):
        subprocess.run(["tar", "-czf", baseline / "evocode-results.tar.gz", "merged"], cwd=tmp_path, check=True)
        subprocess.run(["bash", SCRIPTS / "unpack.sh", baseline], check=True)
        assert len(load("plan").load_results([baseline]).attempts) == 1


def test_the_comment_of_an_earlier_run_is_changed_and_none_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comment = load("comment")
    repository = {"id": 7, "owner": {"login": "somebody"}}
    run = {"head_sha": "abc", "head_branch": "fix", "head_repository": repository, "html_url": "https://run"}
    (tmp_path / "event.json").write_text(json.dumps({"workflow_run": run}))
    (tmp_path / "comment.md").write_text("scores")
    comments: list[dict[str, object]] = []
    written = []

    def call(url: str, method: str = "GET", data: dict[str, str] | None = None) -> object:
        if method == "GET":
            return comments if "comments" in url else [{"number": 4, "head": {"sha": "abc", "repo": repository}}]
        written.append((method, url.rpartition("/repos/")[2], data))
        return {}

    monkeypatch.setattr(comment, "_call", call)
    monkeypatch.setattr(sys, "argv", ["comment.py", str(tmp_path / "comment.md")])
    for name, value in (("EVENT_PATH", str(tmp_path / "event.json")), ("API_URL", "api"), ("REPOSITORY", "o/r")):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    assert comment.main() == 0
    # Somebody's copy of the mark is not ours.
    body = comment.body("old", "https://run")
    comments += [{"id": number, "body": body, "user": {"type": kind}} for number, kind in ((1, "User"), (2, "Bot"))]
    assert comment.main() == 0
    assert [each[:2] for each in written] == [("POST", "o/r/issues/4/comments"), ("PATCH", "o/r/issues/comments/2")]
