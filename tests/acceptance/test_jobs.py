"""Several attempts at once in one process: what differs from one after the other is the time."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

JOBS = "--evocode-jobs=4"
BESIDE = """
    import pathlib, pytest

    HERE = pathlib.Path(__file__).parent

    @pytest.fixture(autouse=True)
    def notes(request, evocode_container):
        with open(HERE / "notes", "a") as file:
            file.write(f"{request.node.parent.name} {request.node.name} {evocode_container is not None}\\n")
"""


def outcomes_by_node_id(session: Session) -> dict[str, str]:
    return {test["nodeid"]: test["outcome"] for test in session.json_report()["tests"]}


def test_a_session_is_what_it_is_with_one_attempt_at_a_time(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, solve={2: "sed -i /line-1/d log.txt; echo line-2 >> log.txt"})
    write_task("b", 2, solve={1: "exit 1"})
    write_task("c", 1)
    write_task("broken", 1, toml="no toml")
    pytester.makepyfile(test_plain="def test_good(): pass\ndef test_bad(): assert 0\ndef test_other(): pass")
    arguments = ("-v", "--json-report", "--evocode-attempts=2", ".")
    alone = run_tasks(*arguments)
    outcomes, run = outcomes_by_node_id(alone), alone.run
    shutil.rmtree(alone.results)
    together = run_tasks(*arguments, JOBS)
    assert outcomes_by_node_id(together) == outcomes
    assert together.outcomes == alone.outcomes
    assert together.exit_status == alone.exit_status == 1
    assert {**together.run.scores["oracle"], "seconds": 0} == {**run.scores["oracle"], "seconds": 0}
    assert len(together.run.attempts) == len(run.attempts) == 6
    assert together.record("c").rounds[0].passed
    together.has("evocode: agent oracle (2 attempts each), 4 attempts at once")


def test_attempts_run_at_once_and_rounds_of_each_are_reported_together_with_their_fixtures(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, solve={1: "sleep 3; echo line-1 >> log.txt", 2: "sleep 3; echo line-2 >> log.txt"})
    pytester.makeconftest(BESIDE)
    began = time.monotonic()
    session = run_tasks("tasks", JOBS, "--evocode-attempts=4")
    assert session.outcomes == {"passed": 8}
    assert time.monotonic() - began < 20  # 24 one after the other.
    notes = (session.directory / "notes").read_text().splitlines()
    attempts = [note.split()[0] for note in notes]
    assert len(set(attempts)) == 4
    assert [attempts[place] == attempts[place + 1] for place in (0, 2, 4, 6)] == [True] * 4
    assert [note.split()[1:] for note in notes] == [["round-1", "True"], ["round-2", "True"]] * 4


def test_the_first_failure_ends_the_session_and_the_run_goes_on_later(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, solve={1: "sleep 3"})
    for name in "bcd":
        write_task(name, 2, solve={2: "sleep 12; echo line-2 >> log.txt"})
    session = run_tasks("tasks", JOBS, "-x")
    assert session.outcomes == {"failed": 1}
    session.has("*3 attempts are unfinished; continue with --evocode-resume=*")
    again = run_tasks("tasks", JOBS, "--evocode-resume")
    assert again.outcomes == {"failed": 1, "passed": 6}
    again.lacks("*attempt* unfinished*")


def test_what_failed_last_is_run_again_with_the_rounds_before_it(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, solve={2: "exit 0"})
    write_task("b", 2)
    assert run_tasks("tasks", JOBS, "-p", "cacheprovider").outcomes == {"passed": 3, "failed": 1}
    assert run_tasks("tasks", JOBS, "-p", "cacheprovider", "--lf").outcomes == {
        "passed": 1,
        "failed": 1,
        "deselected": 2,
    }


def test_each_round_may_be_an_attempt_of_its_own(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 3, solve={2: "exit 0"})
    alone = run_tasks("tasks", "--evocode-mode=single-round").outcomes
    assert run_tasks("tasks", JOBS, "--evocode-mode=single-round").outcomes == alone


def test_an_attempt_that_cannot_begin_is_an_error_beside_others(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    write_task("b", 2, dockerfile="FROM python:3.11-slim-bookworm\nRUN exit 3\n")
    session = run_tasks("tasks", JOBS)
    assert session.outcomes == {"passed": 2, "errors": 1, "skipped": 1}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("--evocode-jobs=0", "it has to be a number of attempts"),
        ("-n2", "leave out -n, or use -n0"),
        ("--evocode-keep", "where --evocode-keep would have no effect"),
        ("--pdb", "looks into one attempt at a time"),
    ],
)
def test_what_makes_no_sense_beside_it_is_refused(
    write_task: WriteTask, run_tasks: RunTasks, more: str, why: str
) -> None:
    write_task("a", 1)
    session = run_tasks("tasks", JOBS, more)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert why in session.text
