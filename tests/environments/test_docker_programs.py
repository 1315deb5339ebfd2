"""Programs in a container: what root inside can do to PID 1, and what somebody outside can do to the container."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_evocode.environments import Command
from pytest_evocode.environments.docker.engine import DockerEngine
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.errors import EnvironmentFault
from tests.environments.conftest import BASE, MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]

WAIT = 120.0  # seconds after which something that should have happened at once has not


@pytest.fixture
def container(docker: DockerEngine, make_task: MakeTask) -> Iterator[DockerEnvironment]:
    task = make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\n')
    environment = docker.create(task, env={}, network="no-network")
    environment.start()
    yield environment
    environment.stop()


def bash(script: str) -> Command:
    return Command(("bash", "-c", script))


def test_a_program_of_another_user_is_killed_at_its_timeout(container: DockerEnvironment) -> None:
    command = Command(("bash", "-c", "echo begun; sleep 300 & sleep 300"), user="nobody")
    result = container.run_program(command, timeout=1)
    assert (result.exit_code, result.stdout) == (None, b"begun\n")
    assert_well(container)


def assert_well(container: DockerEnvironment) -> None:
    result = container.run_program(Command(("echo", "well")), timeout=WAIT)
    assert (result.exit_code, result.stdout, result.stderr) == (0, b"well\n", b"")


def test_what_is_done_to_pid_1s_streams_does_not_change_how_a_run_ends(container: DockerEnvironment) -> None:
    scripts = [
        "printf 'rubbish ( \" ' > /proc/1/fd/0",
        "for i in {1..20}; do kill -USR1 1; sleep 0.02; done",
        "printf '\\0%032d 1 0\\n' 0; printf '\\0%032d 1 0\\n' 0 >&2",
        "head -c 3000000 /dev/zero > /proc/1/fd/3",
        'for fd in 1 3; do python3 -c "import os; os.set_blocking(1, False)" >&$fd; done',
    ]
    for script in scripts:
        assert container.run_program(bash(f"{script}; exit 3"), timeout=WAIT).exit_code == 3, script
        assert_well(container)
    container.run_program(bash("printf 'exit 0\\0' > /proc/1/fd/0; exit 3"), timeout=WAIT)
    assert_well(container)  # Though PID 1 ends as soon as it looks for requests.


def test_a_flood_of_signals_to_pid_1_costs_at_most_the_exit_code(container: DockerEnvironment) -> None:
    result = container.run_program(bash("while :; do kill -USR1 1; done & sleep 0.5; exit 3"), timeout=WAIT)
    assert result.exit_code in (3, 128 + signal.SIGUSR1)  # Bash loses a child's status now and then.
    assert_well(container)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("script", ["printf 'while :; do :; done\\0' > /proc/1/fd/0", "cat /proc/1/fd/0 >/dev/null"])
def test_a_pid_1_that_does_not_answer_is_started_anew(container: DockerEnvironment, script: str) -> None:
    result = container.run_program(bash(f"{script} & sleep 300"), timeout=1)
    assert result.exit_code is None
    assert result.seconds < 60
    assert_well(container)


@pytest.mark.nightly
def test_what_ended_with_pid_1_says_so_and_the_next_program_runs(container: DockerEnvironment) -> None:
    server = container.open_program(Command(("sleep", "300")), lambda *_: None)
    container.run_program(bash("printf 'exit 137\\0' > /proc/1/fd/0"), timeout=WAIT, alongside=[server])
    assert server.wait(WAIT) == 137
    other = container.open_program(Command(("true",)), lambda *_: None)
    assert other.wait(WAIT) == 0
    assert_well(container)


GREETS = """
import socket
with socket.create_server(("127.0.0.1", 8123)) as server:
    print("ready", flush=True)
    while True:
        with server.accept()[0] as connection:
            connection.sendall(b"hello")
"""


def greeting(container: DockerEnvironment) -> bytes:
    """What a program at a port of the container says, which is started for that."""
    ready = threading.Event()
    server = container.open_program(Command(("python3", "-c", GREETS)), lambda *_: ready.set())
    assert ready.wait(WAIT)
    with container.connect(8123, WAIT) as connection, connection.makefile("rb") as file:
        said = file.read()
    server.signal(signal.SIGKILL)
    assert server.wait(WAIT) == 137
    with pytest.raises(ConnectionRefusedError):
        container.connect(8123, WAIT)
    return said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters a container's network")
def test_a_connection_takes_no_program_of_the_image(container: DockerEnvironment) -> None:
    forged = "printf '#!/bin/sh\ntouch /seen\n' > /usr/bin/perl; chmod 755 /usr/bin/perl"
    container.run_program(bash(forged), timeout=WAIT)
    assert greeting(container) == b"hello"
    assert container.file_status("/seen") is None


def test_a_container_that_was_started_again_is_reached(container: DockerEnvironment) -> None:
    assert greeting(container) == b"hello"
    container._start_again()
    assert greeting(container) == b"hello"


def test_a_container_of_another_machine_is_reached(
    container: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_pid", lambda: os.getpid())
    assert greeting(container) == b"hello"


CALLS: dict[str, Callable[[DockerEnvironment], object]] = {
    "run": lambda container: container.run_program(Command(("true",))),
    "run as another user": lambda container: container.run_program(Command(("true",), user="nobody")),
    "open": lambda container: container.open_program(Command(("true",)), lambda *_: None),
    "end": lambda container: container.end_programs(),
    "connect": lambda container: container.connect(80, 5),
    "write": lambda container: container.write_files("/opt/a/b", {"c": b"c"}),
    "status": lambda container: container.file_status("/etc"),
    "list": lambda container: container.list_directory("/etc"),
}


@pytest.mark.parametrize("call", list(CALLS))
@pytest.mark.matrix
def test_a_container_that_somebody_removed_is_a_fault_that_names_it(
    docker: DockerEngine, container: DockerEnvironment, call: str
) -> None:
    docker._client.remove_container(container._id, force=True)
    time.sleep(0.2)
    with pytest.raises(EnvironmentFault, match=container._id[:12]):
        CALLS[call](container)


@pytest.mark.parametrize("call", ["run", "open", "end", "write"])
@pytest.mark.matrix
def test_a_container_that_somebody_killed_is_a_fault_that_names_it(
    docker: DockerEngine, container: DockerEnvironment, call: str
) -> None:
    docker._client.kill(container._id)
    time.sleep(0.2)
    with pytest.raises(EnvironmentFault, match=f"{container._id[:12]} was killed from outside"):
        CALLS[call](container)


def test_a_user_whose_number_is_none_is_a_user_that_is_not_there(container: DockerEnvironment) -> None:
    numbers = {"superscript": "\u00b2", "arabic": "\u0661", "underscore": "1_0", "long": "9" * 5000}
    for name, number in numbers.items():
        add = 'echo "$1:x:$2:$2::/:/bin/sh" >> /etc/passwd'
        container.exec(["bash", "-c", add, "bash", name, number], user="0")
        with pytest.raises(OSError, match=f"no user {name}"):
            container.write_files("/opt", {"a": b"a"}, user=name)
