"""``--evocode-resume``: what was finished stays, what was not goes on where it stopped."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from tests import remembering_agent
from tests.inner_sessions import UNUSED
from tests.remembering_agent import turns

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
# Put behind the agent, this ends its session at the end of a turn for which there is a file.
DIES = """
import json, os, signal, time

def end_of_turn(task, index):
    if (HERE / f"die-in-{index}").exists():
        # A turn is noted once its snapshot is made, which may be beside the next turn.
        while not is_noted(task, index - 1):
            time.sleep(0.01)
        os.killpg(0, signal.SIGKILL)

def is_noted(task, index):
    states = HERE.glob(f"evocode-results/{task}/harbor_jobs/*/*/*/state.json")
    turns = [turn["index"] for state in states for turn in json.loads(state.read_text())["turns"]]
    return index <= max(turns, default=0)
"""


@pytest.fixture
def session(pytester: pytest.Pytester, run_tasks: RunTasks) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a session; one that ``dies`` has a process group of its own, as it kills itself."""
    pytester.makeconftest(inspect.getsource(remembering_agent) + DIES)

    def run(*arguments: str, env: str = "sandbox", dies: bool = False) -> subprocess.CompletedProcess[str]:
        if not dies:
            ended = run_tasks(*arguments, agent=remembering_agent.NAME, env=env, replay=False)
            return subprocess.CompletedProcess(arguments, ended.exit_status, ended.text)
        options = (*UNUSED, f"--evocode-agent={remembering_agent.NAME}", f"--evocode-env={env}")
        argv = [sys.executable, "-m", "pytest", *options, *arguments]
        return subprocess.run(
            argv, cwd=pytester.path, capture_output=True, text=True, timeout=300, start_new_session=True, check=False
        )

    return run


def attempt(pytester: pytest.Pytester) -> Path:
    (found,) = pytester.path.glob("evocode-results/a/harbor_jobs/*/*/a__a1")
    return found


def outcomes(directory: Path) -> list[str]:
    return [record["outcome"] for record in json.loads((directory / "result.json").read_text())["rounds"]]


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_a_killed_run_goes_on_in_its_environment_with_its_files_and_its_conversation_until_it_has_ended(
    pytester: pytest.Pytester, write_task: WriteTask, session: Callable[..., subprocess.CompletedProcess[str]], env: str
) -> None:
    write_task("a", 3, test={3: 'grep -qx "[[]1, 2, 3]" said && echo 1 > /logs/verifier/reward.txt'})
    (pytester.path / "die-in-2").touch()
    assert session("tasks", env=env, dies=True).returncode == -signal.SIGKILL
    (pytester.path / "die-in-2").unlink()
    if env == "docker":
        refused = session("--evocode-resume", "tasks", env="sandbox")
        assert "begun in docker; continue it with --evocode-env=docker" in refused.stdout
        assert turns(pytester.path) == [1, 2]
    done = session("--evocode-resume", "tasks", env=env)
    assert "3 passed" in done.stdout, done.stdout
    assert turns(pytester.path) == [1, 2, 2, 3]
    assert len(list((pytester.path / "evocode-results/runs").glob("*.json"))) == 1
    assert not (attempt(pytester) / "state.json").exists()
    assert outcomes(attempt(pytester)) == ["passed"] * 3
    # What has ended is shown again, and nothing is run.
    again = session("--evocode-resume", "tasks", env=env)
    assert "3 passed" in again.stdout, again.stdout
    assert turns(pytester.path) == [1, 2, 2, 3]


def test_a_verdict_that_was_missing_is_reached_without_another_turn(
    pytester: pytest.Pytester,
    write_task: WriteTask,
    session: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toml = '[verifier]\nenv = { SECONDS_TO_SLEEP = "${EVOCODE_TEST_SECONDS:-0}" }\n'
    write_task("a", 2, toml=toml, test={1: "sleep $SECONDS_TO_SLEEP; echo 1 > /logs/verifier/reward.txt"})
    (pytester.path / "die-in-2").touch()
    monkeypatch.setenv("EVOCODE_TEST_SECONDS", "600")
    session("tasks", dies=True)
    monkeypatch.delenv("EVOCODE_TEST_SECONDS")
    assert not (attempt(pytester) / "steps/round-1/round.json").exists()
    (pytester.path / "die-in-2").unlink()
    assert "2 passed" in session("--evocode-resume", "tasks").stdout
    assert turns(pytester.path) == [1, 2, 2]


def test_without_its_snapshot_an_attempt_stays_unfinished_and_what_it_reached_is_reported_again(
    pytester: pytest.Pytester,
    write_task: WriteTask,
    session: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_task("a", 3)
    with (pytester.path / "conftest.py").open("a") as file:  # It dies when the first verdict is there.
        file.write("\ndef is_noted(task, index):\n    return any(HERE.glob('evocode-results/**/round-1/round.json'))\n")
    (pytester.path / "die-in-2").touch()
    session("tasks", dies=True)
    (pytester.path / "die-in-2").unlink()
    with monkeypatch.context() as other:
        other.setenv("EVOCODE_CACHE", str(pytester.path / "cache of another job"))
        refused = session("--evocode-resume", "tasks")
    assert refused.returncode == 1
    assert "1 passed, 2 skipped" not in refused.stdout
    assert "round 1 is gone, or on another machine, in the cache that EVOCODE_CACHE names; carry that" in refused.stdout
    assert "1 attempt is unfinished; its snapshots are missing here: bring them" in refused.stdout
    assert "unfinished" in next(line for line in refused.stdout.splitlines() if re.match(r"a +\. +E +-", line))
    counted = CliRunner().invoke(main, ["results", "--json"]).stdout
    assert json.loads(counted)["rows"] == []
    assert [each["state"] for each in json.loads(counted)["unscored"]] == ["unfinished"]
    # Where the cache is, it goes on all the same.
    assert "3 passed" in session("--evocode-resume", "tasks").stdout
    assert turns(pytester.path) == [1, 2, 2, 3]


@pytest.mark.nightly
def test_what_suites_keep_for_later_ones_is_there_when_a_run_goes_on(
    pytester: pytest.Pytester, write_task: WriteTask, session: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    count = "cd /var/verifier; [ $(cat seen | wc -l) = $((EVOCODE_ROUND_INDEX - 1)) ] && reward=1; echo x >> seen"
    test = dict.fromkeys(
        (1, 2, 3), f"touch /var/verifier/seen; {count}; echo ${{reward:-0}} > /logs/verifier/reward.txt"
    )
    write_task("a", 3, toml='[metadata.evocode]\nverifier_state = ["/var/verifier"]\n', test=test)
    with (pytester.path / "conftest.py").open("a") as file:  # It dies when the first verdict is there.
        file.write("\ndef is_noted(task, index):\n    return any(HERE.glob('evocode-results/**/round-1/round.json'))\n")
    (pytester.path / "die-in-3").touch()
    session("tasks", dies=True)
    (pytester.path / "die-in-3").unlink()
    assert (attempt(pytester) / "verifier-state/1.tar").stat().st_mode & 0o777 == 0o600
    assert "3 passed" in session("--evocode-resume", "tasks").stdout
    assert not (attempt(pytester) / "verifier-state").exists()


@pytest.mark.nightly
def test_an_attempt_of_other_task_contents_is_refused(
    pytester: pytest.Pytester, write_task: WriteTask, session: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    task = write_task("a", 3)
    (pytester.path / "die-in-2").touch()
    session("tasks", dies=True)
    with (task / "steps/round-3/instruction.md").open("a") as file:
        file.write("And more.\n")
    before = {path: path.read_bytes() for path in attempt(pytester).rglob("*") if path.is_file()}
    refused = session("--evocode-resume", "tasks")
    assert "the task's files have changed since this attempt was begun" in refused.stdout
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert turns(pytester.path) == [1, 2]
    assert {path: path.read_bytes() for path in attempt(pytester).rglob("*") if path.is_file()} == before


@pytest.mark.nightly
def test_the_run_that_goes_on_has_what_is_selected(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 3, solve={2: "exit 3"})
    write_task("b", 1)
    first = run_tasks("tasks/a").run.run
    run_tasks("tasks/b")
    again = run_tasks("-n1", "--evocode-resume", "tasks/a")
    again.has(f"evocode: resuming {first}: 1 turn kept, 2 to go")
    assert again.outcomes == {"passed": 1, "errors": 1, "skipped": 1}
    assert len(list((again.results / "a/harbor_jobs/oracle").iterdir())) == 1
    foreign = run_tasks("--evocode-resume", "tasks/b", agent="nop")
    assert foreign.exit_status == pytest.ExitCode.USAGE_ERROR
    foreign.result.stderr.fnmatch_lines(["*no run in * has an attempt of what is selected, b by nop; *"])


@pytest.mark.nightly
def test_a_fault_is_tried_again_and_says_how(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 3, solve={2: "exit 3"})
    first = run_tasks("tasks")
    first.has(
        "evocode: 1 attempt is unfinished; continue with --evocode-resume=* while the task's files stay as they are*"
    )
    assert first.outcomes == {"passed": 1, "errors": 1, "skipped": 1}
    again = run_tasks("--evocode-resume", "tasks")
    again.has("evocode: resuming *: 1 turn kept, 2 to go")
    assert again.outcomes == first.outcomes
    assert task.exists()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--evocode-resume", "there is no run to continue in *evocode-results"),
        ("--evocode-resume=2020-01-01__00-00-00", "there is no run to continue in *"),
    ],
)
def test_a_run_that_is_not_there_is_one_clear_error(
    write_task: WriteTask, run_tasks: RunTasks, argument: str, message: str
) -> None:
    write_task("a", 1)
    session = run_tasks(argument, "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([f"*--evocode-resume: {message}*"])


def test_where_there_is_nothing_to_resume_auto_begins_a_run_and_else_goes_on(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, solve={2: "exit 3"})
    begun = run_tasks("--evocode-resume=auto", "tasks")
    assert begun.outcomes == {"passed": 1, "errors": 1}
    first = begun.run.run
    begun.has(
        f"evocode: results evocode-results, run {first}",
        f"evocode: nothing to resume: no run there fits what is selected, so {first} begins",
    )
    again = run_tasks("--evocode-resume=auto", "tasks")
    again.has(
        "evocode: results evocode-results, the newest unfinished run of what is selected, or a new one",
        f"evocode: resuming {first}: 1 turn kept, 1 to go",
    )
    assert len(list((again.results / "runs").glob("*.json"))) == 1


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "workers"])
@pytest.mark.nightly
def test_auto_begins_a_run_where_the_others_are_of_other_conditions_or_tasks(
    write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    write_task("a", 1, solve={1: "exit 3"})
    write_task("b", 1)
    first = run_tasks("tasks/a").run.run
    others = [("--evocode-verify-times=2", "tasks/a"), ("tasks/b",)]
    for number, other in enumerate(others, 2):
        session = run_tasks("--evocode-resume=auto", *workers, *other)
        session.has(f"evocode: nothing to resume: no run there fits what is selected, so {session.run.run} begins")
        assert len(list((session.results / "runs").glob("*.json"))) == number
    run_tasks("--evocode-resume=auto", *workers, "tasks/a").has(f"evocode: resuming {first}: 0 turns kept, 1 to go")


@pytest.mark.nightly
def test_a_run_that_is_under_way_is_not_taken_over(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, test={1: "sleep 20"})
    argv = [sys.executable, "-m", "pytest", *UNUSED, "--evocode-agent=oracle", "--evocode-env=sandbox", "tasks"]
    with subprocess.Popen(argv, cwd=pytester.path, stdout=subprocess.DEVNULL, start_new_session=True) as running:
        try:
            while not list(pytester.path.glob("evocode-results/runs/*.json")):
                assert running.poll() is None
            session = run_tasks("--evocode-resume", "tasks")
            assert session.exit_status == pytest.ExitCode.USAGE_ERROR
            session.result.stderr.fnmatch_lines(["*is still under way in another session*"])
        finally:
            running.terminate()


@pytest.fixture
def killed(
    pytester: pytest.Pytester, write_task: WriteTask, session: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[[str], Path]:
    """Kill a session in the third of four rounds, of which two are done, and return its attempt's directory."""

    def kill(env: str) -> Path:
        write_task("a", 4, step={1: "min_reward = 1", 2: "min_reward = 1"})
        (pytester.path / "die-in-3").touch()
        session("tasks", env=env, dies=True)
        (pytester.path / "die-in-3").unlink()
        assert (attempt(pytester) / "steps/round-2/round.json").exists()
        return attempt(pytester)

    return kill


@pytest.mark.nightly
@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_damaged_record_of_the_last_round_is_made_anew(
    killed: Callable[[str], Path],
    pytester: pytest.Pytester,
    session: Callable[..., subprocess.CompletedProcess[str]],
    env: str,
) -> None:
    directory = killed(env)
    (directory / "steps/round-2/round.json").write_text('{"task": ')
    done = session("--evocode-resume", "tasks", env=env)
    assert "4 passed" in done.stdout, done.stdout
    assert turns(pytester.path) == [1, 2, 3, 3, 4]
    assert (directory / "steps/round-2/round.json.damaged").read_text() == '{"task": '


DAMAGES = pytest.mark.parametrize(
    "text", ["", '{"task": "a", ', "[]", '{"version": 2}'], ids=["empty", "cut", "list", "other"]
)


@DAMAGES
@pytest.mark.matrix
def test_a_damaged_record_is_made_anew_if_it_is_the_last_and_else_dropped_and_the_attempt_goes_on(
    killed: Callable[[str], Path],
    pytester: pytest.Pytester,
    session: Callable[..., subprocess.CompletedProcess[str]],
    text: str,
) -> None:
    directory = killed("sandbox")
    first, second = (directory / f"steps/round-{index}/round.json" for index in (1, 2))
    first.write_text(text)
    second.write_text(text)
    shown = CliRunner().invoke(main, ["results", str(pytester.path / "evocode-results")])
    assert f"{first}: " in shown.stderr
    assert "--evocode-resume sets it aside" in shown.stderr
    done = session("--evocode-resume", "tasks")
    assert "3 passed, 1 error" in done.stdout, done.stdout
    assert f"the record of this round is lost, so it counts as not passed: {first}: " in done.stdout
    assert turns(pytester.path) == [1, 2, 3, 3, 4]
    assert outcomes(directory) == ["error", "passed", "passed", "passed"]
    assert second.with_name("round.json.damaged").read_text() == text
    # What was lost stays so, and nothing is run again.
    again = session("--evocode-resume", "tasks")
    assert turns(pytester.path) == [1, 2, 3, 3, 4]
    assert "3 passed, 1 error" in again.stdout, again.stdout


@DAMAGES
@pytest.mark.matrix
@pytest.mark.nightly
def test_a_damaged_state_is_left_alone_and_says_what_to_do(
    killed: Callable[[str], Path],
    pytester: pytest.Pytester,
    session: Callable[..., subprocess.CompletedProcess[str]],
    text: str,
) -> None:
    directory = killed("sandbox")
    state = directory / "state.json"
    state.write_text(text)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    refused = session("--evocode-resume", "tasks")
    assert refused.returncode == 1
    assert f"{state}: " in refused.stdout
    assert f"or remove {directory} to run the attempt anew" in refused.stdout
    assert turns(pytester.path) == [1, 2, 3]
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
    shown = CliRunner().invoke(main, ["results", str(pytester.path / "evocode-results")])
    assert f"warning: {state}: " in shown.stderr
    assert f"remove {directory} to run the attempt anew" in shown.stderr
    shutil.rmtree(directory)
    assert "4 passed" in session("--evocode-resume", "tasks").stdout


def test_a_run_is_not_resumed_under_conditions_that_could_change_its_verdicts(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    first = run_tasks("--evocode-verify-times=2", "--evocode-budget=total-cost=1", "tasks")
    assert first.run.conditions is not None
    assert first.run.conditions["verify-times"] == "2"
    of_attempt = first.record().conditions
    assert of_attempt is not None
    assert of_attempt == {**first.run.conditions, "image": of_attempt["image"]}
    refused = run_tasks("--evocode-resume", "tasks")
    assert refused.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"the run {first.run.run} was begun under other conditions, verify-times 2 against 1 now; " in refused.text
    assert "evocode benchmark" not in refused.text
    again = run_tasks("--evocode-resume", "--evocode-verify-times=2", "tasks")
    assert again.outcomes == {"passed": 1}
