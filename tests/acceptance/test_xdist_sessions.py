"""pytest-xdist: the same session on several workers."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask


def outcomes_by_node_id(session: Session) -> dict[str, str]:
    """The outcome of every test that ``--json-report`` has."""
    return {test["nodeid"]: test["outcome"] for test in session.json_report()["tests"]}


def workers_by_attempt(session: Session) -> dict[str, set[str]]:
    """The workers that ran the rounds of each attempt, out of verbose lines."""
    workers = defaultdict(set)
    for line in session.result.outlines:
        match = re.match(r"\[(gw\d)\] \[ *\d+%\] [A-Z]+ (.*/task\.toml::[^:]*)::", line)
        if match:
            workers[match[2]].add(match[1])
    return workers


def test_a_session_with_workers_is_what_it_is_without(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, solve={2: "sed -i /line-1/d log.txt; echo line-2 >> log.txt"})
    write_task("b", 2, solve={1: "exit 1"})
    write_task("c", 1)
    write_task("broken", 1, toml="no toml")
    pytester.makepyfile(test_plain="def test_good(): pass\ndef test_bad(): assert 0\ndef test_other(): pass")
    arguments = ("-v", "--json-report", ".")
    alone = run_tasks(*arguments)
    outcomes, run = outcomes_by_node_id(alone), alone.run
    shutil.rmtree(alone.results)
    shared = run_tasks(*arguments, "-n2")
    # Neither node ids nor outcomes nor scores change.
    assert outcomes_by_node_id(shared) == outcomes
    assert shared.outcomes == alone.outcomes
    assert shared.exit_status == alone.exit_status == 1
    assert {**shared.run.scores["oracle"], "seconds": 0} == {**run.scores["oracle"], "seconds": 0}
    # All write into one run.
    assert len(list((shared.results / "runs").iterdir())) == 1
    assert len(shared.run.attempts) == len(run.attempts) == 3
    assert shared.record("c").rounds[0].passed
    # Attempts are shared out, each to one.
    workers = workers_by_attempt(shared)
    assert all(len(ran) == 1 for ran in workers.values())
    assert set().union(*workers.values()) == {"gw0", "gw1"}
    # What did not pass is told as ever.
    for session in (alone, shared):
        session.has("evocode: environment sandbox (asked for; *)")
        session.result.stdout.fnmatch_lines_random(
            [
                "*tasks/broken/task.toml:1: not valid TOML*",
                "round-2 failed: 1 of 2 cases failed (0 new misses, 1 regression)",
                "  has-line-1 [[]round-1 core]",
                "suite output: *",
                "FAILED tasks/a/task.toml::oracle::round-2 - round-2 failed: 1 of 2 cases failed*",
            ]
        )


@pytest.mark.slow
@pytest.mark.parametrize("dist", ["loadscope", "loadgroup"])
@pytest.mark.nightly
def test_an_attempt_stays_on_one_worker_whatever_dist_says(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, dist: str
) -> None:
    write_task("a", 4)
    pytester.makepyfile(test_plain="def test_good(): pass\ndef test_other(): pass")
    session = run_tasks("-v", "-n2", f"--dist={dist}", "--evocode-attempts=2")
    assert session.outcomes == {"passed": 10}
    workers = workers_by_attempt(session)
    assert set(workers) == {"tasks/a/task.toml::oracle", "tasks/a/task.toml::oracle.2"}
    assert all(len(ran) == 1 for ran in workers.values())


@pytest.mark.slow
@pytest.mark.every_python
def test_workers_play_the_rounds_before_a_selected_one_and_a_wanted_score_decides_the_status(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3, test={1: "echo 0 > /logs/verifier/reward.txt"})
    session = run_tasks("-n1", "-k", "round-2", "--evocode-fail-under=100", "tasks")
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert len(session.record().rounds) == 2
    assert session.exit_status == 0, "the round that was brought along does not count"


def test_an_unknown_agent_is_refused_before_workers_start(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("-n2", "tasks", agent="oracel")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "did you mean 'oracle'?" in session.text
    session.lacks("*worker*")


@pytest.mark.slow
@pytest.mark.nightly
def test_without_an_agent_workers_are_scheduled_as_ever(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makepyfile(test_plain="def test_good(): pass\ndef test_other(): pass")
    session = run_tasks("-n1", "-v", agent=None, env=None)
    assert session.outcomes == {"passed": 2}
    session.has("*scheduling tests via LoadScheduling*")
