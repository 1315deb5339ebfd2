"""What holds for the ENTRYPOINT of an image, in every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.environments import Command, Environment, ProgramEnvironment
from pytest_evocode.environments.entry_points import EnterableEnvironment, enter, entered_program
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


def entered(environment: Environment) -> EnterableEnvironment:
    """Run the ENTRYPOINT, and wait until it has started its services."""
    assert isinstance(environment, EnterableEnvironment)
    program = enter(environment)
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
    program = entered_program(environment)
    assert program is not None
    assert program.exit_code is None
    assert sorted(program.output().splitlines()) == ["about to serve hello as root in /srv", "complaint"]


def test_programs_that_are_run_beside_it_leave_it_alone(make_environment: MakeEnvironment, task: Task) -> None:
    environment = entered(make_environment(task))
    assert isinstance(environment, ProgramEnvironment)
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
        program = entered_program(fork)
        assert program is not None
        assert "now serving hello" in program.output()
    finally:
        fork.stop()
        snapshot.discard()


def test_a_command_s_deadline_does_not_end_it_for_good(make_environment: MakeEnvironment, task: Task) -> None:
    environment = entered(make_environment(task))
    assert environment.exec("sleep 1000", timeout=0.3).timed_out
    assert beats(environment)
    program = entered_program(environment)
    assert program is not None
    assert "[started again]" in program.output()


def test_how_it_ended_is_known_with_its_last_lines(make_environment: MakeEnvironment, make_task: MakeTask) -> None:
    dockerfile = 'FROM python:3.11-slim-bookworm\nSHELL ["/bin/bash", "-c"]\nENTRYPOINT echo "no database" && exit 3\n'
    environment = entered(make_environment(make_task(dockerfile)))
    program = entered_program(environment)
    assert program is not None
    assert program.failed
    assert program.describe_end().endswith("ended with exit code 3; its last lines were:\nno database")


def test_an_image_without_one_runs_nothing(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    assert enter(make_environment()) is None
