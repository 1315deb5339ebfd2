"""Containers whose session was killed end by themselves, with all that runs in them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments.docker.engine import DockerEngine
from tests.environments.conftest import BASE, MakeTask
from tests.waiting import wait_until

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker

_NOTICING = 60.0  # seconds for a busy engine
SESSION = """
import sys, threading
from pathlib import Path
from pytest_evocode.environments.docker.engine import DockerEngine
from pytest_evocode.tasks import load_task

environment = DockerEngine().create(load_task(Path(sys.argv[1])), env={}, network="no-network")
environment.start()
command = dict(command="echo begun > /begun; sleep 100000", user=sys.argv[2] or None, timeout=9000)
if sys.argv[2]:
    threading.Thread(target=environment.exec, kwargs=command, daemon=True).start()
    while not environment.exec(["test", "-e", "/begun"], user="0").ok:
        pass
print(environment._id, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("user", ["", "0"], ids=["nothing runs", "a program of root runs"])
@pytest.mark.matrix
def test_a_container_ends_when_its_session_was_killed(docker: DockerEngine, make_task: MakeTask, user: str) -> None:
    client: APIClient = docker._client
    task = make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\n')
    argv = [sys.executable, "-c", SESSION, str(task.directory), user]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        container = session.stdout.readline().strip()
        assert client.inspect_container(container)["State"]["Running"]
        session.kill()
    wait_until(lambda: not client.inspect_container(container)["State"]["Running"], seconds=_NOTICING)
    DockerEngine().close()  # The next session removes it.
    assert container not in [each["Id"] for each in client.containers(all=True)]
