"""pytest-xdist: workers that are lost, and sessions that stop in the middle of attempts."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import remembering_agent
from tests.remembering_agent import turns

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

# Put behind the agent, this loses its worker in round 3 of task a until so many turns of that task were begun.
CRASHES = """
import os, signal

def end_of_turn(task, index):
    if task == "a" and index == 3 and len(turns(HERE)) < CRASHES_BELOW:
        while not list(HERE.glob("evocode-results/a/harbor_jobs/*/*/*/steps/round-2/round.json")):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
"""
# The controller counts the rounds that are reported, and no worker begins the task before there are so many.
HOLDS_BACK = """
import pathlib, time

REPORTED = pathlib.Path(__file__).with_name("reported")
REPORTED.touch()

def pytest_runtest_logreport(report):
    if report.when == "call" and hasattr(report, "node"):
        with REPORTED.open("a") as file:
            file.write(report.nodeid + "\\n")

def pytest_runtest_setup(item):
    deadline = time.monotonic() + 300
    while "tasks/TASK/" in item.nodeid and len(REPORTED.read_text().splitlines()) < REPORTS:
        assert time.monotonic() < deadline, "the rounds to wait for are not run"
        time.sleep(0.01)
"""


def crashing(below: int) -> str:
    return inspect.getsource(remembering_agent) + CRASHES.replace("CRASHES_BELOW", str(below))


def holding_back(task: str, reports: int) -> str:
    return HOLDS_BACK.replace("TASK", task).replace("REPORTS", str(reports))


def outcomes(session: Session, task: str = "a") -> list[str]:
    """By round, out of what was reported."""
    reports = session.json_report()["tests"]
    return [test["outcome"] for test in reports if f"tasks/{task}/" in test["nodeid"]]


def test_an_attempt_whose_worker_is_lost_goes_on_from_its_last_round(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    lose_a_worker(pytester, write_task, run_tasks, "sandbox")


@pytest.mark.docker
@pytest.mark.nightly
def test_an_attempt_in_docker_whose_worker_is_lost_goes_on_from_its_last_round(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    lose_a_worker(pytester, write_task, run_tasks, "docker")


def lose_a_worker(pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    pytester.makeconftest(crashing(below=4))
    said = [1, 2, 3, 4]
    for name in ("a", "b"):
        write_task(
            name,
            4,
            toml='environment.network_mode = "no-network"',
            test={4: f'grep -Fqx "{said}" said && echo 1 > /logs/verifier/reward.txt'},
        )
    session = run_tasks("-n2", "--json-report", "tasks", agent=remembering_agent.NAME, env=env)
    assert session.outcomes == {"passed": 8}
    assert session.exit_status == 0
    assert turns(pytester.path) == [1, 2, 3, 3, 4]
    assert turns(pytester.path, "b") == said
    assert outcomes(session) == ["passed"] * 4
    assert session.run.scores[remembering_agent.NAME]["dataset_score"] == 100
    session.has("*replacing crashed worker*")


@pytest.mark.nightly
def test_an_attempt_whose_workers_are_lost_again_is_given_up_and_others_are_not(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(crashing(below=99))
    for name in ("a", "b"):
        write_task(name, 6)
    session = run_tasks("-n2", "--json-report", "-rs", "tasks", agent=remembering_agent.NAME)
    assert session.outcomes == {"passed": 8, "errors": 1, "skipped": 3}
    assert session.exit_status == 1
    assert turns(pytester.path) == [1, 2, 3, 3]
    assert sorted(outcomes(session)) == sorted(["passed"] * 2 + ["error"] + ["skipped"] * 3)
    session.has(
        "*ERROR at setup of *round-3*",
        "not run: worker lost (worker gw? crashed, as another one had before)",
        "agent * Dataset Score *",
        "remembering * 66.7 * 1/2 *",
        "a * .  .  E  -  -  -",
        "b * .  .  .  .  .  .",
        "SKIPPED*not run: worker lost*",
    )
    assert [each.outcome for each in session.record("b", remembering_agent.NAME).rounds] == ["passed"] * 6


@pytest.mark.nightly
def test_no_round_is_without_a_report_when_no_worker_is_left(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(crashing(below=99))
    for name in ("a", "b"):
        write_task(name, 4)
    arguments = ("-n1", "--max-worker-restart=0", "--json-report", "tasks")
    session = run_tasks(*arguments, agent=remembering_agent.NAME)
    assert session.outcomes == {"passed": 2, "errors": 2, "skipped": 4}
    assert session.exit_status == 1
    session.has("*not run: worker lost (no worker is left)*")
    assert (outcomes(session)[2], outcomes(session, "b")) == ("error", ["error"] + ["skipped"] * 3)


@pytest.mark.nightly
def test_what_a_lost_worker_leaves_is_cleared_up_by_its_session(
    pytester: pytest.Pytester,
    write_task: WriteTask,
    run_tasks: RunTasks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    pytester.makeconftest(crashing(below=99))
    write_task("a", 4)
    run_tasks("-n1", "--max-worker-restart=0", "tasks", agent=remembering_agent.NAME)
    assert [path for path in (tmp_path / "cache/sandboxes").iterdir() if path.is_dir()] == []


@pytest.mark.nightly
def test_a_first_failure_stops_the_attempts_of_other_workers(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(holding_back("a", reports=1))
    write_task("a", 2, solve={1: "true"})
    write_task("b", 2, solve={2: "sleep 300"})
    write_task("c", 2)
    session = run_tasks("-n2", "-x", "--json-report", "tasks")
    assert session.exit_status == pytest.ExitCode.INTERRUPTED
    assert outcomes(session, "a") == ["failed"]
    assert outcomes(session, "b") == ["passed", "skipped"]
    assert outcomes(session, "c") == []
    session.has("*stopping after 1 failures*")


@pytest.mark.parametrize("dist", ["load", "worksteal"])
@pytest.mark.nightly
def test_ordinary_tests_and_attempts_of_one_session_are_all_run_once(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, dist: str
) -> None:
    pytester.makepyfile(
        test_plain="import pytest\n@pytest.mark.parametrize('n', range(30))\ndef test_number(n): assert n != 7"
    )
    for name in ("a", "b", "c"):
        write_task(name, 2)
    session = run_tasks("-n2", f"--dist={dist}", "--json-report")
    assert session.outcomes == {"passed": 35, "failed": 1}
    seen = [test["nodeid"] for test in session.json_report()["tests"]]
    assert len(seen) == len(set(seen)) == 36


@pytest.mark.nightly
def test_an_ordinary_test_that_takes_its_worker_down_fails_alone(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makepyfile(
        test_plain="import os\ndef test_good(): pass\ndef test_bad(): os._exit(1)\ndef test_fine(): pass"
    )
    write_task("a", 2)
    session = run_tasks("-n2")
    assert session.outcomes == {"passed": 4, "failed": 1}
    session.has("*worker 'gw?' crashed while running 'test_plain.py::test_bad'*")


@pytest.mark.nightly
def test_the_longest_attempts_begin_first_and_each_worker_has_one(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    """With one round each, xdist alone would give every worker two at once."""
    for name in ("a", "b", "c"):
        write_task(name, 1)
    write_task("d", 1, toml="agent.timeout_sec = 9999")
    first = run_tasks("tasks/a", "tasks/b", "tasks/c")
    assert first.outcomes == {"passed": 3}
    an_hour_before = datetime.fromisoformat(first.record("c").finished) - timedelta(hours=1)
    record = first.record("c").model_copy(update={"started": an_hour_before.isoformat()})
    (first.attempt("c") / "result.json").write_text(record.model_dump_json())
    pytester.makeconftest(holding_back("c", reports=3))
    session = run_tasks("-n2", "-v", "tasks")
    assert session.outcomes == {"passed": 4}
    lines = [line for line in session.result.outlines if "PASSED" in line]
    workers = {line.split("tasks/")[1][0]: line.split("[")[1][:3] for line in lines}
    # d was never run, so its timeouts count; then c. While one worker has c, the other does the rest.
    assert (next(iter(workers)), list(workers)[-1]) == ("d", "c")
    assert workers["a"] == workers["b"] == workers["d"] != workers["c"]


@pytest.mark.nightly
def test_what_breaks_a_worker_breaks_the_session(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        "import os\ndef pytest_runtest_logfinish(nodeid):\n"
        "    if 'PYTEST_XDIST_WORKER' in os.environ and 'test_two' in nodeid: raise ValueError('broken')\n"
    )
    pytester.makepyfile(test_plain="def test_one(): pass\ndef test_two(): pass\ndef test_three(): assert 0")
    session = run_tasks("-n1")
    assert session.exit_status not in (0, 5)
