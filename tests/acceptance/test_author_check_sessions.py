"""``pytest --evocode-check``: the checks are pytest items like any others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.acceptance.tasks import DOCKERFILE

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks, RunTasks
    from tests.acceptance.tasks import WriteNative, WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

NOTHING_ASKED = {2: "echo 1 > /logs/verifier/reward.txt"}
UNBUILDABLE = f"{DOCKERFILE}RUN false\n"
CRASHES = """
import os, signal

def pytest_runtest_setup(item):
    if item.name == "nop" and "tasks/a/" in item.nodeid:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_collecting_checks_starts_nothing(
    write_native: WriteNative, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    write_native("a", 2)
    session = run_tasks("--evocode-check", "--collect-only", "-q", "tasks", agent=None, env="docker")
    assert [line for line in session.result.outlines if "::" in line] == [
        f"tasks/a/task.toml::check::{name}"
        for name in (
            "lint",
            "oracle",
            "nop",
            "needs-work[round-1]",
            "needs-work[round-2]",
            "deterministic[round-1]",
            "deterministic[round-2]",
            "hermetic[round-1]",
            "hermetic[round-2]",
            "clean",
            "active[line-1]",
            "active[line-2]",
            "cheat[hard-coded]",
            "cheat[exit-zero]",
            "cheat[patched-assert]",
            "cheat[shadowed-tests]",
            "cheat[stubs]",
            "cheat[shadowed-pytest]",
            "cheat[shadowed-modules]",
            "under-load",
            "starter-clean",
            "time",
        )
    ]


def test_lint_alone_needs_no_image(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, dockerfile=UNBUILDABLE)
    assert check_tasks("tasks/a/task.toml::check::lint").outcomes == {"lint": "failed"}


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (["-k", "needs-work"], ["needs-work[round-1]", "needs-work[round-2]"]),
        (["tasks/a/task.toml::check::oracle"], ["oracle"]),
        (["tasks/a/task.toml::check::needs-work[round-2]"], ["needs-work[round-2]"]),
        (["tasks/a/task.toml::check::hermetic"], ["hermetic[round-1]", "hermetic[round-2]"]),
        (["-k", "oracle or nop", "--deselect", "tasks/a/task.toml::check::oracle"], ["nop"]),
    ],
)
@pytest.mark.matrix
def test_checks_are_selected_like_tests(
    write_task: WriteTask, check_tasks: CheckTasks, selection: list[str], selected: list[str]
) -> None:
    write_task("a", 2)
    assert check_tasks(*selection).outcomes == dict.fromkeys(selected, "passed")


@pytest.mark.nightly
def test_what_failed_last_is_checked_again_alone(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 2, test=NOTHING_ASKED)
    failed = ["lint", "nop", "needs-work[round-2]"]
    assert [name for name, outcome in check_tasks().outcomes.items() if outcome == "failed"] == failed
    assert list(check_tasks("--lf").outcomes) == failed


def test_the_checks_of_a_task_stay_together_whatever_their_order(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    """They share what is played, which would be played anew after another task's."""
    write_task("a", 1)
    write_task("b", 1)
    names = [("b", "time"), ("a", "nop"), ("b", "oracle"), ("a", "oracle")]
    checked = check_tasks(*(f"tasks/{task}/task.toml::check::{name}" for task, name in names))
    assert [test["nodeid"] for test in checked.session.json_report()["tests"]] == [
        f"tasks/{task}/task.toml::check::{name}"
        for task, name in (("b", "time"), ("b", "oracle"), ("a", "nop"), ("a", "oracle"))
    ]


def test_a_first_failure_ends_the_checks_under_way(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 2, test={2: "sleep 4321"})
    assert check_tasks("-x").outcomes == {"lint": "failed"}


def test_a_junit_file_and_the_short_summary_have_what_checks_say_and_no_results_are_written(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    task = write_task("a", 2, solve={2: "true"}, test={1: "echo 1 > /logs/verifier/reward.txt"})
    before = sorted(task.rglob("*"))
    checked = check_tasks("-koracle or needs-work or time", "--junitxml=junit.xml", "--tb=line")
    suite = ElementTree.parse(checked.session.directory / "junit.xml").getroot()[0]
    cases = {str(case.get("name")): case for case in suite.iter("testcase")}
    assert list(cases) == ["oracle", "needs-work[round-1]", "needs-work[round-2]", "time"]
    assert {case.get("classname") for case in cases.values()} == {"tasks.a.task.toml.check"}
    assert [[said.tag for said in case] for case in cases.values()] == [["failure"], ["failure"], ["skipped"], []]
    assert [cases[name][0].get("message") for name in ("oracle", "needs-work[round-1]")] == [
        "round-2 does not pass: 1 of 2 cases failed",
        "the suite of round-1 passes before its solution was played: "
        "either the round asks for nothing new, or no test of it looks",
    ]
    checked.session.has("FAILED tasks/a/task.toml::check::oracle - round-2 does not pass: 1 of 2 cases failed")
    assert not checked.session.results.exists()
    assert sorted(task.rglob("*")) == before
    checked.session.lacks("*evocode benchmark*")


@pytest.mark.parametrize(
    "option",
    ["--evocode-agent=nop", "--evocode-pin", "--evocode-resume", "--evocode-fail-under=50"],
)
def test_options_of_runs_are_refused(write_task: WriteTask, run_tasks: RunTasks, option: str) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-check", option, "tasks", agent=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    name = option.partition("=")[0]
    assert f"ERROR: --evocode-check runs no agent and pins nothing; leave out {name}" in session.text


# Workers.


@pytest.mark.nightly
def test_the_checks_of_a_task_are_made_by_one_worker(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    for name in ("a", "b", "c"):
        write_task(name, 1)
    checked = check_tasks("-n2", "-v", "-koracle or nop or needs-work", "tasks")
    lines = [line.split() for line in checked.session.result.outlines if "PASSED" in line]
    assert len(lines) == 9
    workers = {(words[-1].partition("::")[0], words[0]) for words in lines}
    assert len(workers) == 3
    assert {worker for _, worker in workers} == {"[gw0]", "[gw1]"}


@pytest.mark.nightly
def test_checks_whose_workers_are_lost_are_errors_and_nothing_is_left(
    pytester: pytest.Pytester,
    write_task: WriteTask,
    check_tasks: CheckTasks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    pytester.makeconftest(CRASHES)
    write_task("a", 1)
    write_task("b", 1)
    checked = check_tasks("-n1", "-koracle or nop or time", "tasks")
    assert checked.session.outcomes == {"passed": 4, "errors": 2}
    assert checked.session.exit_status == 1
    tests = checked.session.json_report()["tests"]
    lost = {test["nodeid"]: test["setup"]["longrepr"] for test in tests if test["outcome"] == "error"}
    assert list(lost) == ["tasks/a/task.toml::check::nop", "tasks/a/task.toml::check::time"]
    assert set(lost.values()) == {"not run: worker lost (worker gw1 crashed, as another one had before)"}
    assert [path for path in (tmp_path / "cache/sandboxes").iterdir() if path.is_dir()] == []
