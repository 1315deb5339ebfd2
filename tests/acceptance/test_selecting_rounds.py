"""A selected round brings those before it along, and none after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

FAILS = "echo 0 > /logs/verifier/reward.txt"


def rounds_of(session: Session) -> list[str]:
    """The rounds that a verbose session reported, in order, without the task's path."""
    lines = (line for line in session.result.outlines if "/task.toml::" in line and "%]" in line)
    return [line.split()[0].partition("/task.toml::")[2] for line in lines]


def collected(session: Session) -> list[str]:
    """The rounds that ``--collect-only -q`` listed, in order: the task and the round's number."""
    lines = (line for line in session.result.outlines if "/task.toml::oracle::" in line)
    return [line.removeprefix("tasks/").replace("/task.toml::oracle::round-", " ") for line in lines]


def test_a_selected_round_brings_those_before_it_along_and_none_after_it(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 4)
    session = run_tasks("-v", "tasks/a/task.toml::oracle::round-3")
    assert rounds_of(session) == ["oracle::round-1", "oracle::round-2", "oracle::round-3"]
    assert session.exit_status == 0
    assert [record.round for record in session.record().rounds] == ["round-1", "round-2", "round-3"]
    assert not (session.attempt() / "steps/round-4").exists()
    session.has("oracle † * 100.0 * n/a *", "† Not all rounds were selected, only these count: a round-3")


def test_rounds_that_were_brought_along_are_played_and_marked_and_do_not_count(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 4, test={1: FAILS, 3: FAILS})
    session = run_tasks("-k", "round-2 or round-4", "tasks")
    assert session.outcomes == {"passed": 2, "failed": 2}
    session.has("oracle † * 100.0 *", "† Not all rounds were selected, only these count: a round-2 round-4")
    rounds = session.record().rounds
    assert [record.round for record in rounds if record.brought_along] == ["round-1", "round-3"]
    assert session.run.partial == {"a": {"oracle": {1: (2, 4)}}}
    assert session.run.scores["oracle"]["dataset_score"] == 100.0


def test_a_round_counts_once_a_resumed_session_selects_it(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, test={1: FAILS})
    assert run_tasks("-k", "round-2", "tasks").run.scores["oracle"]["dataset_score"] == 100.0
    session = run_tasks("--evocode-resume", "tasks")
    assert session.run.scores["oracle"]["dataset_score"] == 50.0
    assert session.run.partial == {}
    assert [record.brought_along for record in session.record().rounds] == [False, False]
    session.lacks("*Not all rounds were selected*")


def test_two_selected_rounds_are_one_attempt(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 4)
    names = [f"tasks/a/task.toml::oracle::round-{index}" for index in (3, 1)]
    assert collected(run_tasks("--collect-only", "-q", *names)) == ["a 1", "a 2", "a 3"]


def test_k_brings_predecessors_along_in_every_attempt_of_the_agent_that_it_picks(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3)
    session = run_tasks("-v", "--evocode-agent=nop", "--evocode-attempts=2", "-k", "oracle and round-2", "tasks")
    expected = ["oracle::round-1", "oracle::round-2", "oracle.2::round-1", "oracle.2::round-2"]
    assert rounds_of(session) == expected
    assert session.outcomes == {"passed": 4, "deselected": 8}  # What is brought along counts once.


def test_a_deselected_round_comes_back_only_when_a_later_one_needs_it(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3)
    write_task("b", 3)
    deselected = [f"--deselect=tasks/{task}/task.toml::oracle::round-{index}" for task, index in (("a", 1), ("b", 3))]
    session = run_tasks("--collect-only", "-q", *deselected, "tasks")
    assert collected(session) == ["a 1", "a 2", "a 3", "b 1", "b 2"]


@pytest.mark.every_python  # It depends on a plugin of pytest's own.
def test_last_failed_brings_predecessors_along_and_failed_first_keeps_rounds_in_order(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2)
    write_task("b", 3, test={2: FAILS})
    assert run_tasks("tasks").outcomes == {"passed": 4, "failed": 1}
    assert collected(run_tasks("--collect-only", "-q", "--ff", "tasks")) == ["b 1", "b 2", "b 3", "a 1", "a 2"]
    session = run_tasks("-v", "--lf", "tasks")
    assert rounds_of(session) == ["oracle::round-1", "oracle::round-2"]
    assert session.outcomes["failed"] == 1


@pytest.mark.every_python  # It depends on a plugin of pytest's own.
def test_stepwise_goes_on_from_the_start_of_the_failed_attempt(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    task = write_task("b", 3, test={2: FAILS})
    assert run_tasks("--sw", "tasks").exit_status == pytest.ExitCode.INTERRUPTED
    (task / "steps/round-2/tests/test.sh").write_text("echo 1 > /logs/verifier/reward.txt")
    session = run_tasks("-v", "--sw", "tasks")
    assert rounds_of(session) == ["oracle::round-1", "oracle::round-2", "oracle::round-3"]
    assert session.exit_status == 0


def test_predecessors_stay_beside_ordinary_tests(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2)
    pytester.makepyfile(test_plain="def test_round(): pass\ndef test_other(): pass")
    session = run_tasks("-v", "-k", "round-2 or test_other", "test_plain.py", "tasks")
    assert [line.split()[0] for line in session.result.outlines if "%]" in line] == [
        "test_plain.py::test_other",
        "tasks/a/task.toml::oracle::round-1",
        "tasks/a/task.toml::oracle::round-2",
    ]


def test_selecting_nothing_runs_nothing(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    session = run_tasks("-k", "no_such_round", "tasks")
    assert session.exit_status == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not session.results.exists()  # Not even a record of the run.


def test_a_name_that_no_round_has_is_answered_with_those_there_are(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    session = run_tasks("tasks/a/task.toml::oracle::round-3", "tasks/a::round-1")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "did you mean tasks/a/task.toml::oracle::round-1? " in session.text
    assert "tasks/a/task.toml has the rounds round-1, round-2, each for oracle" in session.text


@pytest.mark.parametrize("place", ["steps/round-2", "steps/round-2/instruction.md", "steps/round-2/tests"])
def test_a_path_in_a_task_is_answered_with_the_round_that_is_meant(
    write_task: WriteTask, run_tasks: RunTasks, place: str
) -> None:
    write_task("a", 2)
    session = run_tasks(f"tasks/a/{place}", "--evocode-attempts=2")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "did you mean tasks/a/task.toml::oracle::round-2? " in session.text


@pytest.mark.every_python
def test_the_order_of_another_plugin_cannot_split_an_attempt(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3)
    write_task("b", 2)
    pytester.makeconftest("def pytest_collection_modifyitems(items): items.sort(key=lambda item: item.name)")
    assert collected(run_tasks("--collect-only", "-q", "tasks")) == ["a 1", "a 2", "a 3", "b 1", "b 2"]
