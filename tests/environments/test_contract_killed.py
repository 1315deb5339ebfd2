"""What somebody outside kills is an engine's fault that says so, and never how a command ended."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.environments import Command, Engine, Environment
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Task

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

KILLED = "killed from outside"
LONG = "sleep 600"


def killer_of(environment: Environment) -> Callable[[], None]:
    """Return what kills an environment as somebody on the machine would."""
    if isinstance(environment, DockerEnvironment):
        client, container = environment._client, environment._id
        return lambda: client.kill(container)
    assert isinstance(environment, SandboxEnvironment)
    pid = first_process(environment)
    return lambda: os.kill(pid, signal.SIGKILL)


def first_process(environment: SandboxEnvironment) -> int:
    """The number of a sandbox's PID 1 on the host."""
    lines = Path(f"/proc/self/fdinfo/{environment._pidfd}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))


def soon(kill: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        time.sleep(0.5)
        kill()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.parametrize("user", ["0", "nobody"])
@pytest.mark.parametrize("begin", [True, False], ids=["during", "before"])
def test_a_command_in_what_is_killed_has_no_result(environment: Environment, user: str, begin: bool) -> None:
    assert environment.exec("true", user=user).ok
    kill = killer_of(environment)
    if begin:
        thread = soon(kill)
    else:
        kill()
    with pytest.raises(EnvironmentFault, match=KILLED):
        environment.exec(LONG, user=user, timeout=60)
    if begin:
        thread.join()
    with pytest.raises(EnvironmentFault):
        environment.exec("true", user=user)


def test_a_sandbox_that_was_killed_and_does_not_end_has_no_result(sandbox_engine: Engine, plain_task: Task) -> None:
    environment = sandbox_engine.create(plain_task, env={}, network=None)
    assert isinstance(environment, SandboxEnvironment)
    environment.start()
    pid = first_process(environment)
    users = os.readlink("/proc/self/ns/user") != os.readlink(f"/proc/{pid}/ns/user")
    inside = ["nsenter", f"--target={pid}", "--pid", *(["--user", "--preserve-credentials"] if users else [])]
    # PID 1 ends after all others have been waited for, which the one that waits for this one does not do while stopped.
    with subprocess.Popen([*inside, "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE) as waiting:
        try:
            assert waiting.stdout is not None
            waiting.stdout.readline()
            waiting.send_signal(signal.SIGSTOP)
            thread = soon(killer_of(environment))
            with pytest.raises(EnvironmentFault, match=KILLED):
                environment.exec(LONG, timeout=60)
            thread.join()
        finally:
            waiting.kill()
    environment.stop()


@pytest.mark.parametrize("user", ["0", "nobody"])
def test_a_program_in_what_is_killed_has_no_result(environment: Environment, user: str) -> None:
    thread = soon(killer_of(environment))
    with pytest.raises(EnvironmentFault, match=KILLED):
        environment.run_program(Command(("sleep", "600"), user=user), timeout=60)
    thread.join()


def test_a_program_that_was_opened_in_what_is_killed_has_no_result(environment: Environment) -> None:
    taken: list[Any] = []
    program = environment.open_program(Command(("sleep", "600")), lambda *args: taken.append(args))
    killer_of(environment)()
    with pytest.raises(EnvironmentFault, match=KILLED):
        program.wait(60)
    with pytest.raises(EnvironmentFault, match=KILLED):
        environment.run_program(Command(("true",)), timeout=60)


@pytest.mark.parametrize("user", ["0", "nobody"])
def test_a_program_that_is_killed_inside_has_a_result(environment: Environment, user: str) -> None:
    assert environment.exec("kill -9 $$", user=user).exit_code == 137
    assert environment.run_program(Command(("sh", "-c", "kill -9 $$"), user=user), timeout=60).exit_code == 137
    assert environment.exec("true", user=user).ok
