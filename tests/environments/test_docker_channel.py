"""The channel to a container's PID 1: what goes over it, what does not, and what an agent can do to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_evocode.environments import read_environment_file
from pytest_evocode.environments.docker.channel import Channel
from pytest_evocode.environments.docker.engine import DockerEngine
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.errors import EnvironmentFault
from tests.environments.conftest import BASE, MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]


@pytest.fixture
def container(docker: DockerEngine, make_task: MakeTask) -> Iterator[DockerEnvironment]:
    """A container for a test that leaves it, or what it is made of, otherwise than it was."""
    yield from started(docker, make_task)


@pytest.fixture(scope="module")
def lasting(docker: DockerEngine, make_task: MakeTask) -> Iterator[DockerEnvironment]:
    """A container for tests that leave no more than files of their own."""
    yield from started(docker, make_task)


def started(docker: DockerEngine, make_task: MakeTask) -> Iterator[DockerEnvironment]:
    task = make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\n')
    environment = docker.create(task, env={}, network="no-network")
    environment.start()
    yield environment
    environment.stop()


@pytest.fixture
def engine_commands(docker: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the engine is asked to run from here on."""
    seen: list[list[str]] = []
    client: Any = docker._client
    create = client.exec_create

    def exec_create(container: str, command: list[str], **options: object) -> Any:
        seen.append(command)
        return create(container, command, **options)

    monkeypatch.setattr(client, "exec_create", exec_create)
    return seen


def test_roots_commands_cost_no_engine_call(lasting: DockerEnvironment, engine_commands: list[list[str]]) -> None:
    for index in range(20):
        result = lasting.exec(f"echo said {index}; exit {index}", env={"A": "b c"})
        assert (result.output, result.exit_code) == (f"said {index}\n", index)
    assert engine_commands == []


BY_ENGINE: dict[str, tuple[dict[str, Any], str, str]] = {
    "another user": ({"user": "nobody"}, "id -un", "nobody\n"),
    "a name that bash refuses": ({"env": {"not-a.name": "x"}}, "env | grep not-a", "not-a.name=x\n"),
    "a variable of bash's own": ({"env": {"UID": "7"}}, "env | grep ^UID", "UID=7\n"),
    "a long script": ({}, f"printf %s {'x' * 80_000} | wc -c", "80000\n"),
}


def test_what_is_not_for_the_channel_goes_by_the_engine(
    lasting: DockerEnvironment, engine_commands: list[list[str]]
) -> None:
    for number, (why, (options, script, output)) in enumerate(BY_ENGINE.items(), 1):
        assert lasting.exec(script, **options).output == output, why
        assert len(engine_commands) == number, why


def test_two_commands_run_at_the_same_time(lasting: DockerEnvironment) -> None:
    waiting = "echo $0 > $0; until [ -e $1 ]; do sleep 0.05; done; echo $0 saw $1"
    results = {}

    def run(mine: str, other: str) -> None:
        results[mine] = lasting.exec(["bash", "-c", waiting, mine, other], timeout=60).output

    threads = [threading.Thread(target=run, args=names) for names in (("/tmp/a", "/tmp/b"), ("/tmp/b", "/tmp/a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"/tmp/a": "/tmp/a saw /tmp/b\n", "/tmp/b": "/tmp/b saw /tmp/a\n"}


def test_a_background_service_is_never_held_up_by_what_it_prints(lasting: DockerEnvironment) -> None:
    started = lasting.exec("(head -c 20000000 /dev/zero; touch /tmp/through) & echo started")
    assert started.ok
    assert lasting.exec("until [ -e /tmp/through ]; do sleep 0.05; done", timeout=60).ok
    assert lasting.exec("echo alone").output == "alone\n"


def test_output_that_looks_like_the_end_is_output(lasting: DockerEnvironment) -> None:
    fake = "printf '\\0%032d 0\\n' 0"
    result = lasting.exec(f"{fake}; echo more; exit 3")
    assert result.exit_code == 3
    assert result.output == "\0" + "0" * 32 + " 0\nmore\n"


def test_what_is_written_into_pid_1s_stdin_does_not_touch_the_next_command(container: DockerEnvironment) -> None:
    container.exec("printf 'rubbish ( \" ' > /proc/1/fd/0")
    assert container.exec("echo well", timeout=30).output == "well\n"


@pytest.mark.parametrize("by_deadline", [False, True])
def test_a_pid_1_that_was_told_not_to_kill_is_found_out(container: DockerEnvironment, by_deadline: bool) -> None:
    container.exec("printf 'kill() { :; }; evocode_sweep() { :; }\\0' > /proc/1/fd/0")
    container.exec("sleep 300 > /dev/null 2>&1 &")
    if by_deadline:
        assert container.exec("sleep 300", timeout=0.5, user="nobody").timed_out
    else:
        container.kill_processes()
    assert "sleep" not in container.exec("cat /proc/[0-9]*/comm").output


def test_a_pid_1_that_hangs_is_passed_by(container: DockerEnvironment) -> None:
    container.exec("(sleep 0.3; printf 'while :; do :; done\\0' > /proc/1/fd/0) & true")
    time.sleep(1)
    assert container.exec("echo lost", timeout=1).timed_out
    assert container.exec("echo found", timeout=30).output == "found\n"


def test_a_pid_1_that_was_made_to_end_is_started_again_with_its_files(container: DockerEnvironment) -> None:
    container.exec("echo kept > /app-file; printf 'exit 0\\0' > /proc/1/fd/0")
    result = container.exec("sleep 60", timeout=30)
    assert not result.ok
    assert container.exec("cat /app-file").output == "kept\n"


def test_a_pid_1_that_was_made_to_end_is_started_again_without_a_shell_of_its_own(container: DockerEnvironment) -> None:
    with container.mendable():
        container.exec("rm -f /usr/bin/bash /bin/bash; printf 'exit 0\\0' > /proc/1/fd/0")
        assert not container.exec("sleep 60", timeout=30).ok
        assert container.exec("echo ran").output == "ran\n"


@pytest.mark.nightly
def test_a_container_that_is_removed_under_a_command_is_a_fault(
    docker: DockerEngine, container: DockerEnvironment
) -> None:
    remover = threading.Timer(0.5, lambda: docker._client.remove_container(container._id, force=True))
    remover.start()
    with pytest.raises(EnvironmentFault, match=f"{container._id[:12]} was killed from outside"):
        container.exec("sleep 60")
    remover.join()


def test_a_file_that_bash_cannot_hold_is_read_whole(lasting: DockerEnvironment) -> None:
    lasting.exec("printf 'a\\0b' > /tmp/nul; printf '\\377\\n\\n' > /tmp/bytes; : > /tmp/empty")
    assert read_environment_file(lasting, "/tmp/nul", 100) == b"a\0b"
    assert read_environment_file(lasting, "/tmp/bytes", 100) == b"\377\n\n"
    assert read_environment_file(lasting, "/tmp/empty", 100) == b""


def test_an_image_without_tar_is_uploaded_to(container: DockerEnvironment, make_task: MakeTask) -> None:
    container.exec("rm -f /bin/tar /usr/bin/tar")
    task = make_task(files={"a.txt": "a\n"})
    container.upload([task.directory / "environment"], "/solution")
    assert container.exec("cat /solution/a.txt").output == "a\n"


def test_a_container_that_may_have_to_be_mended_is_attached_to_once(
    docker: DockerEngine, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine closes the input of PID 1, which ends it, when the first of its attachments ends."""
    attached: list[str] = []
    attach = Channel.attach

    def count(channel: Channel) -> None:
        attached.append(channel._container)
        attach(channel)

    monkeypatch.setattr(Channel, "attach", count)
    environment = docker.create(make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\n'), env={}, network=None)
    with environment.mendable():
        environment.start()
    try:
        assert environment.exec("echo works").output == "works\n"
        assert len(attached) == 1
    finally:
        environment.stop()
