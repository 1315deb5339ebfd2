"""The oracle's next attempt begins while the one before it waits for its last verdict."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.tasks import suite_up_to

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

SLOW = f"sleep 4\n{suite_up_to(1)}"
STOPS = """
    def pytest_runtest_logreport(report):
        if report.when == "call" and "tasks/a" in report.nodeid:
            SESSION[0].shouldstop = "enough"

    SESSION = []

    def pytest_sessionstart(session):
        SESSION.append(session)
"""

MARKS = """
    import pytest

    def pytest_collection_modifyitems(items):
        for item in items:
            if "tasks/b" in item.nodeid:
                item.add_marker(pytest.mark.skip)
"""
SKIPS = """
    import threading
    import pytest

    def pytest_runtest_setup(item):
        if "tasks/b" in item.nodeid:
            pytest.skip("not today")
        if "tasks/c" in item.nodeid:
            assert not any("trial-b" in thread.name for thread in threading.enumerate())
"""

SIGNALS = """
    import os, signal, threading
    from pytest_evocode.trial.trial import Trial

    close = Trial.close

    def signalled(self):
        if self.task.name == "b":
            os.kill(os.getpid(), signal.SIGINT)
        close(self)

    Trial.close = signalled

    def pytest_unconfigure(config):
        print("b has ended:", not any("trial-b" in thread.name for thread in threading.enumerate()))
"""


def overlap(session: Session) -> bool:
    """Whether the attempt at the task ``b`` began before that at ``a`` had ended."""
    return session.record("b").started < session.record("a").finished


def test_the_next_attempt_begins_before_the_last_verdict(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 2)
    session = run_tasks("-v", "tasks")
    assert session.outcomes == {"passed": 3}
    session.has("*a/task.toml::oracle::round-1 PASSED*", "*b/task.toml::oracle::round-1 PASSED*", "*round-2 PASSED*")
    assert overlap(session)


def test_it_begins_when_the_last_turn_is_over(write_task: WriteTask, run_tasks: RunTasks) -> None:
    """Turns have limits of time."""
    write_task("a", 1, solve={1: "sleep 2; echo line-1 >> log.txt"}, test={1: SLOW})
    write_task("b", 1)
    session = run_tasks("tasks")
    phases = session.record("a").rounds[0].phases
    assert phases is not None
    assert phases.turn_began is not None
    began = datetime.fromisoformat(session.record("b").started).timestamp()
    assert began >= phases.turn_began + (phases.agent or 0.0)
    assert overlap(session)


def test_an_attempt_whose_rounds_are_marked_as_skipped_is_not_begun(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 2)
    pytester.makeconftest(MARKS)
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 1, "skipped": 2}
    assert not session.attempt("b").exists()


def test_an_attempt_whose_rounds_are_skipped_later_has_ended_when_the_next_begins(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 1, solve={1: "sleep 60"})
    write_task("c", 1)
    pytester.makeconftest(SKIPS)
    assert run_tasks("tasks").outcomes == {"passed": 2, "skipped": 1}


@pytest.mark.parametrize("more", ["-x", "--maxfail=3", "--sw"])
def test_a_session_that_may_end_with_a_failure_begins_none(
    write_task: WriteTask, run_tasks: RunTasks, more: str
) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 1)
    assert not overlap(run_tasks("tasks", more, "-p", "cacheprovider"))


def test_agents_that_may_cost_something_wait_for_the_verdict(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 1)
    (pytester.path / "pyproject.toml").write_text(
        '[tool.pytest-evocode.commands.mine]\nstart = "echo line-1 >> log.txt"\n'
    )
    session = run_tasks("tasks", agent="cmd:mine")
    assert session.outcomes == {"passed": 2}
    assert session.record("b", "mine").started >= session.record("a", "mine").finished


def test_an_attempt_that_cannot_begin_is_its_own_error(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 1, toml='[environment.env]\nTOKEN = "${NOBODY_HAS_THIS}"')
    write_task("c", 1)
    assert run_tasks("tasks").outcomes == {"passed": 2, "errors": 1}


def test_a_session_that_is_stopped_ends_the_attempt_that_was_begun(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 1, solve={1: "sleep 60"})
    pytester.makeconftest(STOPS)
    session = run_tasks("tasks")
    session.has("*1 attempt is unfinished; continue with --evocode-resume=*", "*enough*")
    assert session.outcomes == {"passed": 1}


def test_no_signal_keeps_the_attempt_that_was_begun_from_being_ended(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, test={1: SLOW})
    write_task("b", 1, solve={1: "sleep 60"})
    pytester.makeconftest(STOPS + SIGNALS)
    run_tasks("tasks", subprocess=True).has("b has ended: True")
