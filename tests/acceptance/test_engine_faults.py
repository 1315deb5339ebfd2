"""An engine that goes away is an error of the attempts it carried, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments.docker.engine import OWNER, connect
from pytest_evocode.environments.owners import Owner

if TYPE_CHECKING:
    from tests.acceptance.conftest import RunTasks, WriteTask

ENGINE = "/var/run/docker.sock"
AGENT = """
import os, pathlib
from pytest_evocode.agents import RoundTranscript

HERE = pathlib.Path(__file__).parent

class Agent:
    name = "cutter"

    def run_round(self, context):
        index = context.round.index
        if index == 2 and context.task.name == "a":
            (HERE / "cut").touch()
            while not (HERE / "is-cut").exists():
                pass
        context.environment.exec(f"echo line-{index} >> log.txt")
        return RoundTranscript()

def pytest_evocode_make_agent(name):
    return Agent() if name == "cutter" else None
"""


class Wire:
    """A socket in front of the engine's that can be cut, with everything that goes over it."""

    def __init__(self, path: Path) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(64)
        self._open: list[socket.socket] = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listening.accept()
                theirs = socket.socket(socket.AF_UNIX)
                theirs.connect(ENGINE)
                self._open += [ours, theirs]
                for source, target in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(2**16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """End every connection, and take no other."""
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    if not Path(ENGINE).is_socket():
        pytest.skip(f"the engine has no socket at {ENGINE}")
    made = Wire(tmp_path / "d.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'd.sock'}")
    yield made
    made.cut()
    monkeypatch.delenv("DOCKER_HOST")
    # This process lives, so no session clears up what it could not reach any more.
    with contextlib.closing(connect()) as client:
        label = {"label": [f"{OWNER}={Owner.this()}", "evocode.task=a"]}
        for container in client.containers(all=True, filters=label):
            client.remove_container(container["Id"], v=True, force=True)
        for image in client.images(filters=label):
            client.remove_image(image["Id"], force=True)


@pytest.mark.docker
def test_an_engine_that_goes_away_is_an_error_with_its_cause_and_loses_no_verdict(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, wire: Wire
) -> None:
    write_task("a", 3, toml='environment.network_mode = "no-network"')
    pytester.makeconftest(AGENT)

    def watch() -> None:
        recorded = pytester.path.glob
        while not (pytester.path / "cut").exists() or not list(recorded("evocode-results/**/round-1/round.json")):
            threading.Event().wait(0.05)
        wire.cut()
        (pytester.path / "is-cut").touch()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    session = run_tasks("tasks", agent="cutter", env="docker")
    watcher.join(10)
    assert session.outcomes["passed"] == 1
    assert session.outcomes["errors"] >= 1
    assert session.exit_status != 0
    session.has("*ERROR at setup of a cutter round-2*", "*Docker failed while *")
    for path in session.results.rglob("*.json"):
        json.loads(path.read_text())
    assert os.path.exists(session.attempt("a", "cutter") / "steps/round-1/round.json")
