"""What holds for the ENTRYPOINT of an image, in every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.environments import Command, Engine, Environment
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import BuildError, TaskError
from pytest_evocode.tasks import Task
from tests.environments.conftest import ENGINES, MakeEnvironment, MakeTask

pytestmark = [
    pytest.mark.turns(2),
    pytest.mark.parametrize("engine", ENGINES, indirect=True),
    pytest.mark.matrix,
]

SERVICE = """#!/bin/bash
echo "about to serve $GREETING as $(id -un) in $PWD"
echo complaint >&2
(setsid bash -c 'while :; do sleep 0.05; date +%N > /tmp/beat; done' &)
until [[ -s /tmp/beat ]]; do sleep 0.02; done
exec "$@"
"""
DOCKERFILE = """\
FROM python:3.11-slim-bookworm
ENV GREETING=hello
COPY entry.sh /entry.sh
RUN chmod 755 /entry.sh && mkdir -p /app
WORKDIR /srv
ENTRYPOINT ["/entry.sh"]
"""


@pytest.fixture(scope="module")
def task(make_task: MakeTask) -> Task:
    return make_task(DOCKERFILE, files={"entry.sh": SERVICE}, toml='[environment]\nworkdir = "/app"\n')


def entered(environment: Environment) -> Environment:
    """Run the ENTRYPOINT, and wait until it has started its services."""
    program = environment.enter()
    assert program is not None
    program.wait_until_settled()
    environment.entry_point_settled()
    return environment


def beats(environment: Environment) -> bool:
    """Tell whether the service runs: whether it writes its file anew."""
    script = "rm -f /tmp/beat; for i in {1..100}; do [[ -s /tmp/beat ]] && exit 0; sleep 0.05; done; exit 1"
    return environment.exec(script, user="0").ok


def test_it_runs_beside_commands_as_the_image_s_user_in_its_own_directory(
    make_environment: MakeEnvironment, task: Task
) -> None:
    environment = entered(make_environment(task))
    assert beats(environment)
    program = environment.entered
    assert program is not None
    assert program.exit_code is None
    assert sorted(program.output().splitlines()) == ["about to serve hello as root in /srv", "complaint"]


def test_programs_that_are_run_beside_it_leave_it_alone(make_environment: MakeEnvironment, task: Task) -> None:
    environment = entered(make_environment(task))
    left = "sleep 1000 & (setsid sleep 1000 &)"
    result = environment.run_program(Command(("bash", "-c", left), cwd="/"))
    assert result.exit_code == 0
    assert beats(environment)
    assert not environment.exec(["pgrep", "-f", "sleep 1000"], user="0").ok


def test_a_fork_starts_it_anew_from_its_own_files(make_environment: MakeEnvironment, task: Task) -> None:
    environment = entered(make_environment(task))
    assert environment.exec("sed -i 's/about to serve/now serving/' /entry.sh", user="0").ok
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network="no-network")
    try:
        fork.start()
        assert beats(entered(fork))
        program = fork.entered
        assert program is not None
        assert "now serving hello" in program.output()
    finally:
        fork.stop()
        snapshot.discard()


def test_a_command_s_deadline_does_not_end_it_for_good(make_environment: MakeEnvironment, task: Task) -> None:
    environment = entered(make_environment(task))
    assert environment.exec("sleep 1000", timeout=0.3).timed_out
    assert beats(environment)
    program = environment.entered
    assert program is not None
    assert "[started again]" in program.output()


def test_how_it_ended_is_known_with_its_last_lines(make_environment: MakeEnvironment, make_task: MakeTask) -> None:
    dockerfile = 'FROM python:3.11-slim-bookworm\nSHELL ["/bin/bash", "-c"]\nENTRYPOINT echo "no database" && exit 3\n'
    environment = entered(make_environment(make_task(dockerfile)))
    program = environment.entered
    assert program is not None
    assert program.failed
    assert program.describe_end().endswith("ended with exit code 3; its last lines were:\nno database")


def test_an_image_without_one_runs_nothing(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    assert make_environment().enter() is None


TIMES = ("interval_sec", "timeout_sec", "start_period_sec", "start_interval_sec", "retries")
OPTIONS = "--interval=500ms --timeout=3s \\\n  --start-period=1m30s --retries=7"
CHECKS = {
    "HEALTHCHECK CMD curl -f localhost || exit 1": ("sh -c 'curl -f localhost || exit 1'", 30, 30, 30, 1, 3),
    f'HEALTHCHECK {OPTIONS} CMD ["test", "-e", "/a b"]': ("test -e '/a b'", 0.5, 3, 90.5, 0.5, 7),
    "HEALTHCHECK CMD true\nHEALTHCHECK NONE": None,
    "": None,
}


@pytest.mark.parametrize("lines", CHECKS, ids=["default", "options", "none", "without"])
def test_the_check_of_an_image_is_known_with_its_times(
    make_environment: MakeEnvironment, make_task: MakeTask, lines: str
) -> None:
    environment = make_environment(make_task(f"FROM python:3.11-slim-bookworm\n{lines}\n"))
    found = environment.healthcheck
    assert (found and (found.command, *(getattr(found, name) for name in TIMES))) == CHECKS[lines]


def test_an_image_is_waited_for_until_its_check_passes(
    engine: Engine, make_environment: MakeEnvironment, make_task: MakeTask
) -> None:
    check = "HEALTHCHECK --interval=100ms --retries=9 CMD echo . >> /tmp/tries; [ $(wc -l < /tmp/tries) -ge 4 ]"
    task = make_task(f"FROM python:3.11-slim-bookworm\n{check}\n")
    environment = make_environment(task)
    TaskEnvironment(task, engine, {}, lambda name: False).make_ready(environment)
    assert environment.exec("wc -l < /tmp/tries").output == "4\n"


def test_an_image_that_stays_unhealthy_is_the_authors_to_correct(
    engine: Engine, make_environment: MakeEnvironment, make_task: MakeTask
) -> None:
    check = "HEALTHCHECK --interval=10ms --retries=2 CMD echo no database; exit 1"
    task = make_task(f"FROM python:3.11-slim-bookworm\n{check}\n")
    environment = make_environment(task)
    with pytest.raises(TaskError) as caught:
        TaskEnvironment(task, engine, {}, lambda name: False).make_ready(environment)
    assert caught.value.path == task.dockerfile
    assert "the image's HEALTHCHECK failed 2 times in a row" in str(caught.value)
    assert str(caught.value).endswith("no database\n")


def test_a_healthcheck_in_task_toml_goes_before_the_images(
    engine: Engine, make_environment: MakeEnvironment, make_task: MakeTask
) -> None:
    toml = "[environment]\nhealthcheck = { command = 'true' }\n"
    task = make_task("FROM python:3.11-slim-bookworm\nHEALTHCHECK CMD touch /tmp/tried; exit 1\n", toml=toml)
    environment = make_environment(task)
    TaskEnvironment(task, engine, {}, lambda name: False).make_ready(environment)
    assert not environment.exec(["test", "-e", "/tmp/tried"]).ok


@pytest.mark.parametrize("said", ["", "true", "CMD", "CMD []", "--interval=soon CMD true", "--tries=3 CMD true"])
def test_a_check_that_is_none_is_refused_with_its_line(engine: Engine, make_task: MakeTask, said: str) -> None:
    task = make_task(f"FROM python:3.11-slim-bookworm\nHEALTHCHECK {said}\n")
    with pytest.raises(BuildError, match=r"(?i)HEALTHCHECK|Dockerfile"):
        engine.create(task, env={}, network=None)
