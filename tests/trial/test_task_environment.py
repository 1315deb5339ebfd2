"""Whoever plays a task's rounds starts its environment and prepares them in one way."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT, TaskEnvironment
from pytest_evocode.errors import Cancelled, TaskError
from pytest_evocode.tasks import Task

if TYPE_CHECKING:
    from tests.trial.conftest import MakeTask

PLANTED = f"FROM debian:bookworm-slim\nRUN mkdir -p {' '.join(HIDDEN_FROM_AGENT)}\nWORKDIR /app\n"
UNHEALTHY = 'healthcheck = { command = "false", interval_sec = 0.01, retries = 2 }'
SECRET = '[environment]\nenv = { KEY = "${API_KEY:-none}" }\n'


def of(task: Task, engine: Engine, withheld: Callable[[str], bool] = lambda name: False) -> TaskEnvironment:
    """The task's environment, as one with an API key has it."""
    return TaskEnvironment(task, engine, {"API_KEY": "k-0123456789"}, withheld)


@contextlib.contextmanager
def started(task_environment: TaskEnvironment) -> Iterator[Environment]:
    """An environment that was made ready, while the context lasts."""
    environment = task_environment.create()
    try:
        task_environment.start(environment)
        yield environment
    finally:
        environment.stop()


def test_what_the_image_must_not_bring_is_gone(engine: Engine, make_task: MakeTask) -> None:
    with started(of(make_task("true", dockerfile=PLANTED), engine)) as environment:
        assert environment.exec(f"ls -d {' '.join(HIDDEN_FROM_AGENT)} 2>/dev/null").output == ""


def test_variables_that_are_withheld_count_as_unset(engine: Engine, make_task: MakeTask) -> None:
    task = make_task("true", toml=SECRET)
    with started(of(task, engine)) as environment:
        assert environment.exec("echo $KEY").output == "k-0123456789\n"
    with started(of(task, engine, lambda name: name == "API_KEY")) as environment:
        assert environment.exec("echo $KEY").output == "none\n"


def test_an_environment_that_stays_unhealthy_is_the_authors_to_correct(engine: Engine, make_task: MakeTask) -> None:
    task = make_task("true", toml=f"[environment]\n{UNHEALTHY}")
    with (
        pytest.raises(TaskError, match="the healthcheck of the environment failed 2 times in a row: false"),
        started(of(task, engine)),
    ):
        pass


def test_a_round_is_brought_whether_its_health_is_waited_for_or_not(engine: Engine, make_task: MakeTask) -> None:
    files = {"steps/round-1/workdir/setup.sh": "echo ready > made.txt"}
    task = make_task("true", steps={1: UNHEALTHY}, files=files)
    task_environment = of(task, engine)
    with started(task_environment) as environment:
        task_environment.prepare_round(environment, task.rounds[0], wait_until_healthy=False)
        assert environment.exec("cat made.txt").output == "ready\n"
        with pytest.raises(TaskError, match="the healthcheck of round-1 failed 2 times in a row"):
            task_environment.prepare_round(environment, task.rounds[0])


def test_nothing_starts_once_the_session_is_being_stopped(engine: Engine, make_task: MakeTask) -> None:
    stopped = threading.Event()
    stopped.set()
    task_environment = TaskEnvironment(make_task("true"), engine, {}, lambda name: False, stopped)
    with pytest.raises(Cancelled), started(task_environment):
        pass
