"""``--evocode-keep``: forks of failed rounds that outlive their session."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.sessions import sandboxes_left
from tests.terminals import HANGS, Person

if TYPE_CHECKING:
    from tests.acceptance.sessions import AtTerminal, RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

FAIL = "echo 0 > /logs/verifier/reward.txt"
PROMPT = "bash-"


def lines_of(text: str) -> list[str]:
    """The command lines of kept forks in a summary."""
    _, _, summary = text.partition("evocode: forks of failed rounds")
    kept = summary.partition("remove all that is kept with: evocode clean --kept")[0]
    lines = [line.strip() for line in kept.splitlines() if line.startswith("  ")]
    return [line for line in lines if not line.startswith("not kept: ")]


def remove(line: str) -> None:
    """Remove one kept fork, and nobody else's."""
    from pytest_evocode.environments.cleanup import leftovers

    (name,) = (word for word in shlex.split(line) if "-round-" in word)
    with leftovers(kept=True) as found:
        (mine,) = (each for each in found if name in each.what)
        mine.remove()


def enter(line: str, script: str) -> str:
    """Run a script in a kept fork."""
    with Person() as person:
        person.resize(24, 200)
        with person.start(["bash", "-c", line]) as process:
            person.sees(PROMPT)
            person.type(f"stty -echo; echo be''gin; {script}; echo e''nd; exit\n")
            person.sees("begin\r\n")
            printed = person.sees("end\r\n")
            assert process.wait(HANGS) == 0
    return printed.replace("\r\n", "\n")


@pytest.mark.parametrize(("env", "workers"), [("sandbox", ())], ids=["sandbox, one process"])
@pytest.mark.nightly
def test_the_forks_of_failed_rounds_stay_and_what_is_printed_of_them_has_no_secrets(
    write_task: WriteTask,
    run_tasks: RunTasks,
    monkeypatch: pytest.MonkeyPatch,
    env: str,
    workers: tuple[str, ...],
) -> None:
    monkeypatch.setenv("GRADER_TOKEN", "zebra-crossing-42")
    write_task(
        "a",
        3,
        toml='[verifier.env]\nTOKEN = "${GRADER_TOKEN}"',
        solve={1: "echo line-1 > log.txt; echo never read > untouched", 2: "echo wrong > log.txt"},
    )
    write_task("b", 1)
    write_task("place", 1, toml='[metadata.evocode]\nverify_in = "in-place"', test={1: FAIL})
    session = run_tasks(*workers, "--evocode-keep", "tasks", env=env, subprocess=True)
    assert session.outcomes == {"passed": 2, "failed": 3}
    lines = lines_of(session.text)
    assert len(lines) == 2
    try:
        assert "zebra" not in session.text
        # A suite that ran in place leaves no fork.
        session.has("*place/task.toml::oracle::round-1", '  not kept: with verify_in = "in-place" the suite ran where*')
        assert "a-oracle-round-2" in lines[0]
        looks = "cat log.txt untouched /logs/verifier/reward.txt; echo $TOKEN"
        assert enter(lines[0], looks) == "wrong\nnever read\n0\n[GRADER_TOKEN]\n"
        run_tasks("tasks/b", env=env)  # The next session clears up, but not these.
        assert enter(lines[1], "cat log.txt; grep -c CASE_RESULT /tests/test.sh") == "wrong\nline-3\n1\n"
    finally:
        for line in lines:
            remove(line)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("env", "workers"),
    [
        pytest.param("sandbox", ("-n2",), id="sandbox, two workers"),
        pytest.param("docker", (), id="docker, one process", marks=pytest.mark.docker),
    ],
)
def test_the_forks_of_workers_stay_and_those_in_docker(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, env: str, workers: tuple[str, ...]
) -> None:
    test_the_forks_of_failed_rounds_stay_and_what_is_printed_of_them_has_no_secrets(
        write_task, run_tasks, monkeypatch, env, workers
    )


@pytest.mark.nightly
def test_the_fork_of_the_failure_that_stops_a_session_stays(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    # Time for the attempt to be ended by its own failure, before the round's teardown.
    pytester.makeconftest(
        "import time, pytest\n"
        "@pytest.hookimpl(trylast=True)\n"
        "def pytest_runtest_logreport(report):\n"
        "    time.sleep(1 if report.failed else 0)\n"
    )
    write_task("a", 3, test={2: FAIL}, solve={3: "sleep 4321"})
    write_task("b", 1, solve={1: "sleep 4322"})
    session = run_tasks("-n2", "-x", "--evocode-keep", "tasks")
    assert session.outcomes["failed"] == 1
    (line,) = lines_of(session.text)
    try:
        assert enter(line, "cat log.txt") == "line-1\nline-2\n"
    finally:
        remove(line)


def test_a_fork_that_cannot_be_kept_is_an_error(write_task: WriteTask, run_tasks: RunTasks, cache: Path) -> None:
    write_task("a", 2, test={1: FAIL})
    cache.mkdir()
    (cache / "sandboxes-kept").touch()
    session = run_tasks("--evocode-keep", "tasks")
    assert session.outcomes == {"passed": 1, "failed": 1, "errors": 1}
    assert f"the fork of round-1 could not be kept: a sandbox's files could not be kept at {cache}" in session.text
    session.has("*task.toml::oracle::round-1", "  not kept: the environment failed")
    assert sandboxes_left(cache) == []


@pytest.mark.nightly
def test_evocode_clean_removes_what_was_kept(write_task: WriteTask, run_tasks: RunTasks, cache: Path) -> None:
    def clean(*arguments: str) -> str:
        argv = [sys.executable, "-c", "from pytest_evocode.cli import main; main()", "clean", "--dry-run", *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    write_task("a", 1, test={1: FAIL})
    (line,) = lines_of(run_tasks("--evocode-keep", "tasks", subprocess=True).text)
    directory = line.split()[-1]
    assert directory not in clean()
    assert f"would remove sandbox files {directory}" in clean("--kept")
    remove(line)
    assert directory not in clean("--kept")
    assert not os.path.exists(directory)


@pytest.mark.nightly
def test_a_shell_can_change_what_stays(write_task: WriteTask, person: AtTerminal) -> None:
    write_task("a", 1, test={1: FAIL})
    person.pytest("--evocode-shell", "--evocode-keep", "tasks")
    person.sees(PROMPT)
    person.type("echo mine > /tests/mine; exit\n")
    (line,) = lines_of(person.ends()[1])
    try:
        assert enter(line, "cat /tests/mine") == "mine\n"
    finally:
        remove(line)
