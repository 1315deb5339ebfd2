"""The scripts of the workflows."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_evocode.results.records import Usage
from tests.result_trees import write_attempt, write_session
from tests.workflows.github_server import GitHub, github

pytestmark = pytest.mark.turns(2)

RUN = "2026-03-01__00-00-00-000000000"
SCRIPTS = Path(__file__).parents[2] / ".github" / "scripts"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPTS))
        spec.loader.exec_module(module)
    return module


def python(name: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script without proxies, which a server of this machine needs none of."""
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    argv = [sys.executable, SCRIPTS / f"{name}.py", *arguments]
    return subprocess.run(argv, env={**kept, **variables}, capture_output=True, text=True)


def shell(name: str, cwd: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script where ``pytest`` prints what it is called with, after its variables."""
    bin_ = cwd / "bin"
    bin_.mkdir(exist_ok=True)
    (bin_ / "pytest").write_text('#!/bin/bash\nenv; printf "%s\\n" "$@"\n')
    (bin_ / "pytest").chmod(0o755)
    path = f"{bin_}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    environment = {**kept, "PATH": path, **variables}
    return subprocess.run(
        ["bash", SCRIPTS / name, *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )


def plan_variables(root: Path, **variables: str) -> dict[str, str]:
    tasks = Path(__file__).parents[2] / "example_tasks"
    asked = {"AGENTS": "oracle openai/gpt-5", "TASKS": str(tasks), "ATTEMPTS": "2", "SHARDS": "3", **variables}
    return asked | {name: str(root / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}


def plan(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **plan_variables(root)}
    return subprocess.run([sys.executable, SCRIPTS / "plan.py"], env=environment, capture_output=True, text=True)


def plan_here(root: Path, **variables: str) -> int:
    """Plan in this process, which loads nothing anew, and return the exit code."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in plan_variables(root, **variables).items():
            patch.setenv(name, value)
        return int(load("plan").main())


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
    assert plan_here(tmp_path, AGENTS="") == 2


def test_a_plan_of_more_jobs_than_a_matrix_takes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_here(tmp_path, SHARDS="129") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "2 agents by 129 shards are 258 jobs, and GitHub takes 256" in said
    assert not (tmp_path / "GITHUB_OUTPUT").exists()
    assert plan_here(tmp_path, SHARDS="128") == 0


def test_what_a_fork_wrote_is_only_text_in_a_comment() -> None:
    bad = ("<img", "@everyone", "&lt;", "](", "https://evil", "www.evil", "#17")
    text = load("comment").body(
        '<img src="x">@everyone &lt;b ![a](https://evil.example) www.evil.example #17' + "@x\n" * 49_999,
        "https://report",
        "https://run",
    )
    head, _, untrusted = text.partition("\n\n")[2].partition("\n\n")
    assert text.startswith("<!-- evocode-benchmark -->")
    assert head == "[Report](https://report), [run](https://run)"
    assert [each for each in bad if each in untrusted] == []
    assert len(text) < 65_536
    assert text.endswith("The rest is in the report.\n")


def test_a_comment_shows_what_was_written_also_in_a_block_of_code() -> None:
    text = load("comment").body("```text\np <0.001 & more\n```", "https://report", "https://run")
    assert "p <0.001 & more" in text.replace("\u200b", "")


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


def run_shard(root: Path, **variables: str) -> list[str]:
    """Return the lines that ``pytest`` would print of its options and some of its variables."""
    given = {"AGENT": "oracle", "SHARD": "1", "SHARDS": "2", "ATTEMPTS": "1", "MODE": "chain", "ENVIRONMENT": "auto"}
    (root / "bin").mkdir()
    told = shell("run-shard.sh", root, **given, RESULTS="r", TASKS="tasks", **variables)
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def test_a_job_takes_an_option_of_agents_from_each_line(tmp_path: Path) -> None:
    told = run_shard(tmp_path, OPTIONS='key_env=OPENROUTER_API_KEY\nextra_body={"a": [1]}\n')
    assert [each for each in told if "agent-option" in each] == [
        "--evocode-agent-option=key_env=OPENROUTER_API_KEY",
        '--evocode-agent-option=extra_body={"a": [1]}',
    ]


def test_a_key_that_was_not_given_is_no_empty_variable(tmp_path: Path) -> None:
    """Anthropic's SDK, for one, would send an empty token."""
    told = run_shard(tmp_path, ANTHROPIC_AUTH_TOKEN="", GEMINI_API_KEY="key")
    assert "GEMINI_API_KEY=key" in told
    assert not any(each.startswith("ANTHROPIC_AUTH_TOKEN") for each in told)


def test_credentials_of_google_are_a_file_for_its_libraries(tmp_path: Path) -> None:
    told = run_shard(tmp_path, GOOGLE_CREDENTIALS='{"type": "service_account"}', RUNNER_TEMP=str(tmp_path))
    (file,) = (Path(each.partition("=")[2]) for each in told if each.startswith("GOOGLE_"))
    assert (file.parent, file.stat().st_mode & 0o777) == (tmp_path, 0o600)
    assert json.loads(file.read_text(encoding="utf-8")) == {"type": "service_account"}


def docker(root: Path, images: str, layers: str = "layers") -> None:
    """Put a ``docker`` where scripts find it, which has these images, and says what it was called with."""
    (root / "bin").mkdir(exist_ok=True)
    program = root / "bin" / "docker"
    program.write_text(
        f"""#!/bin/bash
case "$1" in
    image) printf '%s' '{images}' ;;
    save) printf '%s' '{layers}' ;;
esac
echo "$@" >>{root}/called
"""
    )
    program.chmod(0o755)


def test_images_of_tasks_are_kept_and_loaded_by_the_next_run(tmp_path: Path) -> None:
    docker(tmp_path, "evocode-task:a\nevocode-task:b\n")
    assert "kept 2 images" in shell_of_images(tmp_path, "save").stdout
    assert (tmp_path / "kept" / "images.tar").read_text() == "layers"
    shell_of_images(tmp_path, "load")
    called = (tmp_path / "called").read_text().splitlines()
    assert "save evocode-task:a evocode-task:b" in called
    assert called[-1] == "load --quiet --input kept/images.tar"


def test_images_that_are_too_large_together_are_not_kept(tmp_path: Path) -> None:
    docker(tmp_path, "evocode-task:a\n", layers="x" * 11)
    assert "over 10 bytes" in shell_of_images(tmp_path, "save", MOST_BYTES="10").stdout
    assert not (tmp_path / "kept" / "images.tar").exists()
    assert "kept 1 images" in shell_of_images(tmp_path, "save", MOST_BYTES="11").stdout


def test_no_images_are_nothing_to_keep_or_to_load(tmp_path: Path) -> None:
    docker(tmp_path, "")
    assert [shell_of_images(tmp_path, what).stdout for what in ("save", "load")] == ["", ""]
    assert not (tmp_path / "kept").exists()


def shell_of_images(root: Path, what: str, **variables: str) -> subprocess.CompletedProcess[str]:
    told = shell("images.sh", root, what, "kept/images.tar", **variables)
    assert told.returncode == 0, told.stderr
    return told


@pytest.mark.parametrize(("extras", "wanted"), [("", "./source"), ("sandbox,openai", "./source[sandbox,openai]")])
def test_what_is_installed_is_the_source_with_its_extras(extras: str, wanted: str, tmp_path: Path) -> None:
    for name in ("pip", "sudo"):  # Neither installs or changes anything here.
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/bash\necho {name} "$@"\n')
        program.chmod(0o755)
    output = tmp_path / "output"
    told = shell(
        "install.sh", tmp_path, SOURCE="./source", EXTRAS=extras, ImageOS="ubuntu24", GITHUB_OUTPUT=str(output)
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0] == f"pip install {wanted}"
    made_of = f"{version('pytest-evocode')}-ubuntu24-{platform.machine()}"
    assert output.read_text(encoding="utf-8") == f"made-of={made_of}\n"


def summarize(root: Path, **variables: str) -> tuple[str, str, str]:
    """Return the comment, the job's summary and the outputs."""
    files = {name: root / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    asked = {"SHARDS": "shards", "MERGED": "merged", "BASELINE": ".baseline", **variables}
    told = shell("summarize.sh", root, **asked, **{name: str(file) for name, file in files.items()})
    assert told.returncode == 0, told.stderr
    comment, *others = (file.read_text(encoding="utf-8") for file in (root / "comment.md", *files.values()))
    assert "gpt" in comment
    return comment, others[0], others[1]


@pytest.mark.parametrize(("now", "status"), [("pp", "0"), ("ff", "1")])
@pytest.mark.nightly
def test_a_summary_has_the_leaderboard_and_the_status_of_the_comparison(tmp_path: Path, now: str, status: str) -> None:
    write_attempt(tmp_path / ".baseline" / "merged", outcomes="pp")
    write_attempt(tmp_path / "shards" / "evocode-job-0", outcomes=now)
    comment, summary, output = summarize(tmp_path, AGAINST="main")
    assert output == f"status={status}\n"
    assert ("(regressed)" in comment) == (status == "1")
    assert "B - A" in summary


def test_a_comment_has_the_rounds_that_flipped_and_whether_the_agent_regressed(tmp_path: Path) -> None:
    for task, before, now in (("ledger", "ppf", "pfp"), ("shop", "pp", "pp"), ("gone", "p", ""), ("new", "", "f")):
        for where, outcomes in ((".baseline/merged", before), ("shards/evocode-job-0", now)):
            if outcomes:
                write_attempt(tmp_path / where, task, "gpt", outcomes)
    comment, summary, output = summarize(tmp_path, AGAINST="main")
    assert output == "status=0\n"
    assert "(regressed)" not in comment
    assert "B - A" in summary
    after = comment.partition("### Compared with main")[2]
    lost, _, won = after.partition("**Passed before, fail now: 1**")[2].partition("**Failed before, pass now: 1**")
    assert lost.strip().splitlines()[2:] == ["| gpt | ledger | round-2 | passed | failed |"]
    assert "| gpt | ledger | round-3 | failed | passed |" in won
    assert "New tasks, not compared: new" in won
    assert "Tasks that are gone, not compared: gone" in won


def test_what_has_no_record_has_not_regressed_but_was_not_run(tmp_path: Path) -> None:
    selected = {task: {"gpt": [1]} for task in ("ledger", "shop")}
    for task in selected:
        write_attempt(tmp_path / ".baseline" / "merged", task, "gpt", "pp")
    shard = tmp_path / "shards" / "evocode-job-0"
    write_attempt(shard, "ledger", "gpt", "pp", run=RUN)
    write_session(shard, selected, run=RUN, shard=(1, 2))
    comment, summary, output = summarize(tmp_path, AGAINST="main")
    assert output == "status=1\n"
    for told in (comment, summary):
        assert "shard 2 of 2 is not here" in told
        assert "| gpt (1 attempt not run) | 100.0 | 50.0 |" in told
        assert "Tasks that were not run, or not by every attempt, not compared: shop" in told
    assert "regressed" not in comment
    assert "| passed | failed |" not in comment


def test_the_documented_steps_fail_where_a_shard_is_missing(tmp_path: Path) -> None:
    recipe = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
    steps = recipe[recipe.index("    evocode merge shards/*") :].partition("\n\n")[0]
    write_attempt(tmp_path / "shards" / "one", run=RUN)
    write_session(tmp_path / "shards" / "one", {"ledger": {"gpt": [1]}}, run=RUN, shard=(1, 2))
    (tmp_path / "steps.sh").write_text(steps)
    told = shell(str(tmp_path / "steps.sh"), tmp_path, GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
    assert told.returncode == 1
    assert "Dataset Score" in (tmp_path / "summary").read_text()


@pytest.mark.parametrize(("against", "says"), [("main", True), ("", False)])
@pytest.mark.matrix
def test_a_comment_says_that_there_is_no_baseline_yet(tmp_path: Path, against: str, says: bool) -> None:
    write_attempt(tmp_path / "shards" / "evocode-job-0")
    comment, summary, output = summarize(tmp_path, AGAINST=against)
    assert ("**There is no baseline yet:** no run on main has left results" in comment) is says
    assert (summary, output) == (comment, "status=0\n")


@pytest.mark.nightly
def test_that_nothing_can_be_compared_is_said_and_is_no_regression(tmp_path: Path) -> None:
    write_attempt(tmp_path / ".baseline" / "merged", "old")
    write_attempt(tmp_path / "shards" / "evocode-job-0", "new")
    comment, _, output = summarize(tmp_path, AGAINST="main")
    assert "**Not compared with main:** gpt and gpt: there is no task" in comment
    assert output == "status=0\n"


def test_a_report_is_pages_and_one_file(tmp_path: Path) -> None:
    write_attempt(tmp_path / "merged")
    assert shell("report.sh", tmp_path, RESULTS="merged").returncode == 0
    assert (tmp_path / "report" / "index.html").is_file()
    assert (tmp_path / "evocode-report.html").is_file()


def test_the_summary_ends_with_the_address_of_the_report(tmp_path: Path) -> None:
    told = shell("link.sh", tmp_path, REPORT="https://github.example/artifacts/1")
    assert told.stdout.strip() == "[Report](https://github.example/artifacts/1)"


def test_a_baseline_is_what_an_earlier_benchmark_packed(tmp_path: Path) -> None:
    write_attempt(tmp_path / "merged")
    baseline = tmp_path / "baseline"
    baseline.mkdir()
    for _ in range(2):
        subprocess.run(["tar", "-czf", baseline / "evocode-results.tar.gz", "merged"], cwd=tmp_path, check=True)
        subprocess.run(["bash", SCRIPTS / "unpack.sh", baseline], check=True)
        assert len(load("plan").load_results([baseline]).attempts) == 1


def run_of_main(number: int, event: str = "push", fork: bool = False) -> dict[str, Any]:
    return {"id": number, "event": event, "head_repository": {"id": 8 if fork else 7}, "repository": {"id": 7}}


def find_baseline(wanted: str, runs: list[dict[str, Any]], artifacts: dict[int, bool], root: Path) -> tuple[str, str]:
    """Return what is printed and the outputs; of each run's artifact, whether it has expired."""
    with github() as (has, variables):
        has.lists["actions/workflows/benchmark-pr.yml/runs"] = runs
        for run, expired in artifacts.items():
            results = {"id": run, "name": "evocode-results", "expired": expired}
            has.lists[f"actions/runs/{run}/artifacts"] = [{"id": 1, "name": "evocode-job-0", "expired": False}, results]
        reference = "o/r/.github/workflows/benchmark-pr.yml@refs/pull/4/merge"
        output = root / "output"
        output.touch()
        told = python(
            "baseline", **variables, BASELINE=wanted, GITHUB_WORKFLOW_REF=reference, GITHUB_OUTPUT=str(output)
        )
        assert told.returncode == 0, told.stderr
        assert all("branch=main" in each for each in has.asked if "workflows" in each)
        return told.stdout, output.read_text(encoding="utf-8")


def test_the_baseline_is_the_newest_run_on_the_branch_that_left_results(tmp_path: Path) -> None:
    runs = [
        run_of_main(9, fork=True),
        run_of_main(8, event="pull_request"),
        run_of_main(7),  # It left no results.
        run_of_main(6),  # Its results have expired.
        run_of_main(5),
        run_of_main(4),
    ]
    kept = {9: False, 8: False, 6: True, 5: False, 4: False}
    assert find_baseline("main", runs, kept, tmp_path)[1] == "run=5\n"


def test_that_there_is_no_baseline_yet_is_a_notice(tmp_path: Path) -> None:
    told, output = find_baseline("main", [], {}, tmp_path)
    assert told.startswith("::notice::no baseline yet: no run of benchmark-pr.yml on main")
    assert output == ""


def test_a_run_can_be_named_as_the_baseline(tmp_path: Path) -> None:
    assert find_baseline("123", [], {}, tmp_path)[1] == "run=123\n"


def comment_on(has: GitHub, variables: dict[str, str], root: Path) -> subprocess.CompletedProcess[str]:
    """Comment on the pull request 4, whose benchmark was run 5."""
    repository = {"id": 7, "owner": {"login": "somebody"}}
    run = {"id": 5, "head_sha": "abc", "head_branch": "fix", "head_repository": repository, "html_url": "https://run"}
    event = root / "event.json"
    event.write_text(json.dumps({"workflow_run": run}))
    has.lists["pulls"] = [{"number": 4, "head": {"sha": "abc", "repo": repository}}]
    told = python("comment", root / "comment.md", **variables, GITHUB_EVENT_PATH=str(event))
    assert told.returncode == 0, told.stderr
    return told


def test_the_comment_of_an_earlier_run_is_changed_and_none_is_added(tmp_path: Path) -> None:
    (tmp_path / "comment.md").write_text("scores")
    mark = load("comment").MARK
    with github() as (has, variables):
        comment_on(has, variables, tmp_path)
        # Somebody's copy of the mark is not ours, which comes after a page of other comments.
        talk = [{"id": number, "body": None, "user": {"type": "User"}} for number in range(150)]
        ours = [
            {"id": 200 + number, "body": mark, "user": {"type": kind}} for number, kind in enumerate(("User", "Bot"))
        ]
        has.lists["issues/4/comments"] = talk + ours
        comment_on(has, variables, tmp_path)
    assert [each[:2] for each in has.written] == [("POST", "issues/4/comments"), ("PATCH", "issues/comments/201")]


@pytest.mark.parametrize(
    ("artifact", "published", "link"),
    [
        ("evocode-report.html", None, "https://run/artifacts/31"),
        ("evocode-results", None, "https://run/artifacts/31"),
        ("evocode-report.html", "failure", "https://run/artifacts/31"),
        ("evocode-report.html", "success", "https://o.github.example/r/"),
        ("other", None, "https://run"),
    ],
)
def test_a_comment_links_to_the_report(tmp_path: Path, artifact: str, published: str | None, link: str) -> None:
    (tmp_path / "comment.md").write_text("scores")
    with github() as (has, variables):
        has.objects["pages"] = {"html_url": "https://o.github.example/r/"}
        has.lists["actions/runs/5/jobs"] = [{"name": "benchmark / Report", "conclusion": published}]
        has.lists["actions/runs/5/artifacts"] = [{"id": 31, "name": artifact, "expired": False}]
        comment_on(has, variables, tmp_path)
    assert f"[Report]({link})" in has.written[0][2]["body"]


def test_a_benchmark_that_left_nothing_is_a_notice_and_no_comment(tmp_path: Path) -> None:
    with github() as (has, variables):
        assert comment_on(has, variables, tmp_path).stdout.startswith("::notice::the benchmark left no results")
    assert has.written == []


class TestReleaseNotes:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
        (tmp_path / "changelog.d").mkdir()
        (tmp_path / "changelog.d" / "README.md").write_text("How to write fragments.\n")
        (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0\n\n- New.\n\n## 1.2.0rc1\n\n- Old.\n")
        return tmp_path

    def test_they_are_those_of_the_version_alone(self, root: Path) -> None:
        assert load("release_notes").notes_of("v1.2.0", root) == "- New."

    def test_a_tag_of_another_version_is_refused(self, root: Path) -> None:
        with pytest.raises(SystemExit, match=r"the tag is v1\.2\.1, and pyproject\.toml has version 1\.2\.0"):
            load("release_notes").notes_of("v1.2.1", root)

    def test_fragments_that_are_left_are_named(self, root: Path) -> None:
        (root / "changelog.d" / "45.added.md").write_text("Something.\n")
        with pytest.raises(SystemExit, match=r"changelog\.d has 45\.added\.md: run towncrier build --version 1\.2\.0"):
            load("release_notes").notes_of("v1.2.0", root)

    def test_a_release_without_notes_is_refused(self, root: Path) -> None:
        (root / "CHANGELOG.md").write_text("# Changelog\n\n## 1.1.0\n\n- Old.\n")
        with pytest.raises(SystemExit, match=r"no notes below a heading ## 1\.2\.0"):
            load("release_notes").notes_of("v1.2.0", root)

    def test_notes_that_nobody_would_read_to_the_end_are_refused(self, root: Path) -> None:
        (root / "CHANGELOG.md").write_text(f"## 1.2.0\n\n{'word ' * 601}\n")
        with pytest.raises(SystemExit, match="601 words"):
            load("release_notes").notes_of("v1.2.0", root)
