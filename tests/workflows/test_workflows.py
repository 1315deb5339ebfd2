"""The workflows: what linters say of them, and the rules that no linter has."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_evocode.llm.providers import PROVIDERS

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted((GITHUB / "actions").rglob("action.yml"))


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def steps(path: Path) -> list[dict[str, Any]]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = content["jobs"].values() if "jobs" in content else [content["runs"]]
    return [step for job in jobs for step in job.get("steps", ())]


def test_actionlint_has_nothing_to_say() -> None:
    told = subprocess.run([tool("actionlint"), *map(str, WORKFLOWS)], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (0, "")


def test_zizmor_has_nothing_to_say() -> None:
    asked = [tool("zizmor"), "--offline", "--no-progress", "-q", str(GITHUB)]
    told = subprocess.run(asked, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_rights_that_a_job_does_not_ask_for(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content["permissions"] == {}
    assert "group" in content["concurrency"]


@pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS], ids=lambda path: path.name)
def test_actions_are_pinned_and_keep_no_credentials(path: Path) -> None:
    for step in steps(path):
        uses = step.get("uses", "$/")
        assert uses.startswith("$/") or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", uses)
        if "actions/checkout" in uses:
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS], ids=lambda path: path.name)
def test_a_shell_step_is_one_command_without_expressions(path: Path) -> None:
    for step in steps(path):
        if path.name not in ("ci.yml", "nightly.yml"):
            assert "\n" not in step.get("run", "").strip()
            assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("path", sorted((GITHUB / "scripts").glob("*.sh")), ids=lambda path: path.name)
def test_bash_understands_the_scripts(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


def test_what_runs_everything_leaves_no_environment_of_tox_out() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    listed = tox["tox"]["env_list"].split(", ")
    labels = dict(re.findall(r"(\w+) = (.*)", tox["tox"]["labels"]))
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    taken = [name for label in re.findall(r"\" run.* -m (\w+)", run) for name in labels[label].split(", ")]
    assert sorted(taken) == sorted(listed)


def test_the_job_that_comments_runs_nothing_of_the_other_run() -> None:
    checkout, *_ = steps(GITHUB / "workflows" / "comment.yml")
    assert "ref" not in checkout["with"]
    assert "repository" not in checkout["with"]


def test_no_job_with_keys_of_models_begins_before_the_plan_is_approved() -> None:
    jobs = benchmark()["jobs"]
    assert (jobs["approve"]["needs"], jobs["approve"]["environment"]) == ("plan", "${{ inputs.approval }}")
    paid = {name for name, job in jobs.items() if "secrets." in str(job)}
    assert paid == {"run"}
    assert jobs["run"]["needs"] == ["plan", "approve"]
    assert "inputs.approval == '' || needs.approve.result == 'success'" in jobs["run"]["if"]


def benchmark() -> dict[Any, Any]:
    content: dict[Any, Any] = yaml.safe_load((GITHUB / "workflows" / "benchmark.yml").read_text(encoding="utf-8"))
    return content


def test_the_benchmark_takes_the_keys_of_all_providers_and_passes_them_on() -> None:
    taken = set(benchmark()[True]["workflow_call"]["secrets"])  # YAML 1.1 reads "on" as true.
    known = {name for each in PROVIDERS.values() for name in (*each.key_variables, each.token_variable) if name}
    pages = [(ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("providers", "agents", "clis")]
    shown = {name for page in pages for name in re.findall(r"(?m)^    export (\w+_(?:KEY|TOKEN\w*))=\.\.\.$", page)}
    assert len(shown) > 5
    assert known | shown <= taken
    (run,) = (step for step in benchmark()["jobs"]["run"]["steps"] if "secrets." in str(step))
    assert run["env"] == {name: f"${{{{ secrets.{name} }}}}" for name in run["env"]}
    assert set(run["env"]) == taken
    assert set(re.findall(r"`([A-Z_]+)`", secrets_in_docs())) == taken


def secrets_in_docs() -> str:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return page.partition("| provider | secrets |")[2].partition("\n\n")[0]


def test_the_comment_looks_for_the_job_and_the_artifacts_of_the_benchmark() -> None:
    jobs = benchmark()["jobs"]
    assert jobs["pages"]["name"] == "Report"
    uploads = [step["with"] for step in jobs["merge"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert [each.get("name", each["path"]) for each in uploads] == ["evocode-results", "evocode-report.html"]


def test_a_benchmark_that_left_nothing_does_not_fail_the_comment() -> None:
    """A download by name fails where there is nothing of that name, one by pattern does not."""
    (download,) = (step for step in steps(GITHUB / "workflows" / "comment.yml") if "download" in step.get("uses", ""))
    assert download["with"]["pattern"] == "evocode-results"
    assert "name" not in download["with"]


def test_main_keeps_the_baseline_of_the_pull_requests_workflow() -> None:
    content = yaml.safe_load((GITHUB / "workflows" / "benchmark-pr.yml").read_text(encoding="utf-8"))
    on, job = content[True], content["jobs"]["benchmark"]
    assert on["push"]["branches"] == [job["with"]["baseline"]]
    assert on["push"]["paths"] == on["pull_request"]["paths"]
    assert "secrets" not in job


def test_kept_images_are_those_of_the_same_package_platform_and_environments() -> None:
    (action,) = ACTIONS
    states, images = (step["with"] for step in steps(action) if "actions/cache" in step.get("uses", ""))
    for each in (states, images):
        assert "steps.install.outputs.made-of" in each["key"]
    assert "/**/environment/**" in images["key"]
    assert "restore-keys" not in images
