"""A session that is killed at any moment leaves nothing: its containers end, and the next session removes the rest."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pytest_evocode.environments.docker import engine as docker_engine
from pytest_evocode.environments.docker.engine import OWNER, connect
from tests.integrity import killing_agent
from tests.waiting import wait_until

MOMENTS = (
    "image build",
    "environment start",
    "upload",
    "agent's turn",
    "snapshot",
    "fork start",
    "suite running",
    "between rounds",
    "artifact gathering",
    "stop",
)
BY_DAY = {"sandbox": ("agent's turn", "suite running", "stop"), "docker": ("agent's turn", "suite running")}
WITH_SERVICES = ("services starting", "agent's turn", "snapshot", "suite running", "stop")
_NOTICING = 60.0  # seconds for a busy engine
TOML = '[verifier]\nnetwork_mode = "allowlist"\nallowed_hosts = ["example.org"]\n'
COMPOSE = """\
services:
  store:
    image: python:3.11-slim-bookworm
    command: [sleep, infinity]
    init: true
    volumes: ["kept:/var/lib/kept", "/var/lib/without-name"]
volumes: {kept: {}}
"""
TEST = """touch /tmp/suite-runs
if [ -e /tests/slow ]; then sleep 3; fi
echo 1 > /logs/verifier/reward.txt
"""


def moments() -> Iterator[Any]:
    """The moments in each environment, most of them by night alone."""
    for env, by_day in BY_DAY.items():
        for moment in MOMENTS:
            marks = [] if env == "sandbox" else [pytest.mark.docker]
            marks += [] if moment in by_day else [pytest.mark.nightly]
            yield pytest.param(env, moment, marks=marks, id=f"{env}-{moment}")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the agent and a task of two rounds, whose image no other session has built."""
    contents = {
        "conftest.py": inspect.getsource(killing_agent),
        "tasks/a/task.toml": TOML + '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n',
        "tasks/a/environment/Dockerfile": f"FROM python:3.11-slim-bookworm\nWORKDIR /app\nRUN echo {uuid4()}\n",
    }
    for name in ("round-1", "round-2"):
        contents[f"tasks/a/steps/{name}/instruction.md"] = "Go on.\n"
        contents[f"tasks/a/steps/{name}/tests/test.sh"] = TEST
        contents[f"tasks/a/steps/{name}/workdir/given"] = "x\n"
    contents["tasks/a/steps/round-1/tests/slow"] = ""
    for path, text in contents.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.fixture
def with_services(directory: Path) -> Path:
    """The same, with a service that has volumes."""
    (directory / "tasks/a/environment/docker-compose.yaml").write_text(COMPOSE)
    return directory


def session(directory: Path, env: str, moment: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--evocode-agent=working"]
    argv += [f"--evocode-env={env}", *arguments, "tasks"]
    environ = {**os.environ, "EVOCODE_TEST_MOMENT": moment, "EVOCODE_CACHE": str(directory / "cache")}
    environ["TMPDIR"] = str(directory / "scratch")
    environ.pop("PYTEST_XDIST_WORKER", None)  # Where the tests themselves are run by one.
    for name in ("cache", "scratch"):
        (directory / name).mkdir(exist_ok=True)
    with (directory / "output.txt").open("w+") as output:
        ended = subprocess.run(
            argv, cwd=directory, env=environ, stdout=output, stderr=output, start_new_session=True, check=False
        )
        output.seek(0)
        return subprocess.CompletedProcess(argv, ended.returncode, output.read())


@pytest.mark.parametrize(("env", "moment"), tuple(moments()))
@pytest.mark.slow
@pytest.mark.matrix
def test_nothing_is_left_of_a_session_that_is_killed(directory: Path, env: str, moment: str) -> None:
    killed = session(directory, env, moment)
    assert killed.returncode == -signal.SIGKILL, killed.stdout
    owner = (directory / "dead").read_text()
    volumes = _ended_alone(owner) if env == "docker" else []
    again = session(directory, env, "", "--evocode-resume")
    assert "2 passed" in again.stdout, again.stdout
    if env == "docker":
        assert not any(_everything(owner).values())
        assert not {*volumes} & _volumes()
    _assert_no_files(directory)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.nightly
def test_nothing_is_left_of_a_worker_that_is_killed(directory: Path, env: str, moment: str) -> None:
    ended = session(directory, env, moment, "-n1")
    assert "2 passed" in ended.stdout, ended.stdout
    owner = (directory / "dead").read_text()
    if env == "docker":
        _ended_alone(owner)
    again = session(directory, env, "")
    assert "2 passed" in again.stdout, again.stdout
    if env == "docker":
        assert not any(_everything(owner).values())
    _assert_no_files(directory)


@pytest.mark.parametrize("moment", WITH_SERVICES)
@pytest.mark.docker
@pytest.mark.nightly
def test_nothing_is_left_of_the_services_of_a_session_that_is_killed(with_services: Path, moment: str) -> None:
    killed = session(with_services, "docker", moment)
    assert killed.returncode == -signal.SIGKILL, killed.stdout
    owner = (with_services / "dead").read_text()
    had = json.loads((with_services / "had").read_text())
    assert had["running"]
    assert had["networks"]
    labelled, mounted = set(had["labelled volumes"]), set(had["mounted volumes"])
    assert labelled
    assert mounted - labelled  # These go with their containers alone.

    def left() -> dict[str, object]:
        return {kind: found for kind, found in _everything(owner).items() if found and kind != "image"}

    wait_until(lambda: not left(), left, seconds=_NOTICING)
    assert not (labelled | mounted) & _volumes()
    again = session(with_services, "docker", "", "--evocode-resume")
    assert "2 passed" in again.stdout, again.stdout
    assert not any(_everything(owner).values())
    assert not (labelled | mounted) & _volumes()


def _assert_no_files(directory: Path) -> None:
    assert [path for path in (directory / "cache").glob("sandboxes/*") if path.is_dir()] == []
    assert list((directory / "cache").glob("sandbox-snapshots/*/")) == []
    left = {path.name.partition("-of-")[0] for path in (directory / "scratch").iterdir()}
    assert left <= {"pytest"}  # pytest's own directory, which workers make.


def _ended_alone(owner: str) -> list[str]:
    """Wait until no container of a dead session runs any more, which nobody has ended, and return their volumes."""
    with contextlib.closing(connect()) as client:
        running = {"label": f"{OWNER}={owner}", "status": "running"}
        wait_until(
            lambda: not client.containers(filters=running),
            lambda: [each["Command"] for each in client.containers(filters=running)],
            seconds=_NOTICING,
        )
        found = client.containers(all=True, filters={"label": f"{OWNER}={owner}"})
    return [mount["Name"] for each in found for mount in each["Mounts"] if mount["Type"] == "volume"]


def _everything(owner: str) -> dict[str, list[dict[str, Any]]]:
    """Return what the engine has of a session, by kind: containers, networks, volumes and snapshots."""
    with contextlib.closing(connect()) as client:
        found = docker_engine.find_docker_leftovers(client, needed_too=True)
    return {kind: [each for each in entries if each["Labels"].get(OWNER) == owner] for kind, entries in found.items()}


def _volumes() -> set[str]:
    with contextlib.closing(connect()) as client:
        return {volume["Name"] for volume in client.volumes()["Volumes"] or ()}
