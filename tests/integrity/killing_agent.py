"""The conftest.py of sessions that are killed at a named moment, with everything in their process group.

It imports nothing of the tests, since sessions get a copy of it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_evocode.agents import Agent, RoundContext, RoundTranscript
from pytest_evocode.environments.docker.compose.network import ComposeNetwork
from pytest_evocode.environments.docker.engine import OWNER, connect
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.owners import Owner
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.suites.left_forks import LeftFork

HERE = Path(__file__).parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
#: A worker that takes the place of the one that died goes on.
MOMENT = "" if (HERE / "dead").exists() and WORKER else os.environ.get("EVOCODE_TEST_MOMENT", "")
ENVIRONMENTS: tuple[type, ...] = (DockerEnvironment, SandboxEnvironment)
forks: set[int] = set()
ready: set[int] = set()


def die() -> None:
    """Note who dies, and what it has of services, and kill the whole process group, or a worker alone."""
    with (HERE / "dead").open("w") as file:
        file.write(str(Owner.this()))
    if (HERE / "tasks/a/environment/docker-compose.yaml").exists():
        with (HERE / "had").open("w") as file:
            json.dump(all_of_services(str(Owner.this())), file)
    if WORKER:
        os.kill(os.getpid(), signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)


def all_of_services(owner: str) -> dict[str, list[str]]:
    """List what the engine has of a session, which others remove as soon as it is dead."""
    with contextlib.closing(connect()) as client:
        label = {"label": f"{OWNER}={owner}"}
        running = client.containers(filters={**label, "status": "running"})
        mounts = [mount for each in client.containers(all=True, filters=label) for mount in each["Mounts"]]
        return {
            "running": [each["Id"] for each in running],
            "networks": [each["Id"] for each in client.networks(filters=label)],
            "labelled volumes": [each["Name"] for each in client.volumes(filters=label)["Volumes"] or ()],
            "mounted volumes": [mount["Name"] for mount in mounts if mount["Type"] == "volume"],
        }


def around(
    owner: Any, name: str, *, before: Callable[..., object] | None = None, after: Callable[..., bool] | None = None
) -> None:
    """Let a function die before or after it has done its work, where a condition on its arguments holds."""
    real = getattr(owner, name)

    @functools.wraps(real)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if before is not None and before(*arguments, **named):
            die()
        result = real(*arguments, **named)
        if after is not None and after(*arguments, **named):
            die()
        return result

    setattr(owner, name, wrapped)


def always(*arguments: Any, **named: Any) -> bool:
    """Tell that now is the moment."""
    return True


def is_fork(environment: Any, *arguments: Any, **named: Any) -> bool:
    """Tell whether an environment is a fork."""
    return id(environment) in forks


def noting_forks(kind: Any) -> None:
    """Note which environments are forks."""
    real = kind.fork

    def fork(self: Any, *arguments: Any, **named: Any) -> Any:
        made = real(self, *arguments, **named)
        forks.add(id(made))
        KEPT.append(made)  # Or another would get its number.
        return made

    kind.fork = fork


KEPT: list[Any] = []


def dying_in_suite(kind: Any) -> None:
    """Die while the suite's script runs, which has made a file then."""
    real = kind.exec

    def run(self: Any, command: Any, **named: Any) -> Any:
        if "/tests/test.sh" not in command:
            return real(self, command, **named)
        threading.Thread(target=real, args=(self, command), kwargs=named, daemon=True).start()
        while not real(self, ["test", "-e", "/tmp/suite-runs"], user="0", cwd="/").ok:
            pass
        return die()

    kind.exec = run


def dying_in_build() -> None:
    """Die while Docker builds an image."""
    real = subprocess.Popen.communicate

    def communicate(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return real(self, *arguments, **named)
        except subprocess.TimeoutExpired:
            if "docker" in self.args and "build" in self.args:
                die()
            raise

    subprocess.Popen.communicate = communicate  # type: ignore[method-assign]


for each in ENVIRONMENTS:
    noting_forks(each)
around(TaskEnvironment, "make_ready", before=lambda made, environment: ready.add(id(environment)))
match MOMENT:
    case "image build":
        dying_in_build()
        around(SandboxEnvironment, "exec", before=lambda environment, command, **named: "echo" in str(command))
    case "environment start":
        around(TaskEnvironment, "make_ready", before=always)
    case "services starting":
        around(ComposeNetwork, "open", after=always)
    case "upload":
        for each in ENVIRONMENTS:
            around(each, "upload", after=always)
    case "snapshot":
        for each in ENVIRONMENTS:
            around(each, "snapshot", after=always)
    case "fork start":
        for each in ENVIRONMENTS:
            around(each, "start", after=is_fork)
    case "suite running":
        for each in ENVIRONMENTS:
            dying_in_suite(each)
    case "between rounds":
        around(AgentTurns, "take", before=lambda turns, environment, round_, prepare: round_.index == 2)
    case "artifact gathering":
        around(LeftFork, "gather", before=always)
    case "stop":
        for each in ENVIRONMENTS:
            around(each, "stop", before=lambda environment: id(environment) in ready)


class Working:
    """Leaves a program running in its turn, and dies there if that is the moment."""

    name = "working"

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Take the turn."""
        context.environment.exec(
            "echo line >> log.txt; setsid sleep 100000 > /dev/null 2>&1 & mkdir -p /logs/artifacts"
        )
        if MOMENT == "agent's turn":
            die()
        return RoundTranscript()


def pytest_evocode_make_agent(name: str) -> Agent | None:
    """Offer it to ``--evocode-agent``."""
    return Working() if name == Working.name else None
