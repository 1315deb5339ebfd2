"""An engine, a snapshot or a disk that goes away is an error of the attempts it carried, and of no other."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments.docker.engine import OWNER, connect, remove_docker_leftovers
from pytest_evocode.environments.owners import Owner
from tests.environments.fake_engine import REAL, FakeEngine, fake_engine

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

NO_NETWORK = 'environment.network_mode = "no-network"'
AGENT = """
import pathlib, time
from pytest_evocode.agents import RoundTranscript

HERE = pathlib.Path(__file__).parent

class Agent:
    name = "saboteur"

    def run_round(self, context):
        index = context.round.index
        if context.task.name == "a" and index == 2:
            self.sabotage(context.environment)
        context.environment.exec(f"echo line-{index} >> log.txt; head -c 3000000 /dev/urandom > /logs/artifacts/large")
        return RoundTranscript()

    def sabotage(self, environment):
        SABOTAGE

def pytest_evocode_make_agent(name):
    return Agent() if name == "saboteur" else None
"""


def with_sabotage(*lines: str) -> str:
    return AGENT.replace("SABOTAGE", "\n        ".join(lines))


def assert_readable(session: Session) -> None:
    for path in session.results.rglob("*.json"):
        json.loads(path.read_text())


@pytest.mark.parametrize("env", ["sandbox"])
def test_a_snapshot_that_is_gone_is_an_error_of_its_round(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    write_task("b", 1, toml=NO_NETWORK)
    pytester.makeconftest(
        with_sabotage(
            "def fork(snapshot, **how):",
            "    snapshot.discard()",
            "    return type(environment).fork(environment, snapshot, **how)",
            "environment.fork = fork",
        )
    )
    # Not before round 1 has its fork, which is made of the same environment.
    write_task("a", 3, toml=NO_NETWORK, step={1: "min_reward = 1"})
    session = run_tasks("tasks", agent="saboteur", env=env)
    assert [each.outcome for each in session.record("a", "saboteur").rounds] == ["passed", "error", "error"]
    assert [each.outcome for each in session.record("b", "saboteur").rounds] == ["passed"]
    cause = session.record("a", "saboteur").rounds[1].cause
    assert ("was discarded" if env == "docker" else "is gone") in cause
    assert session.outcomes == {"passed": 2, "errors": 2}
    assert_readable(session)


@pytest.mark.parametrize("env", ["sandbox"])
def test_a_full_disk_is_an_error_of_the_attempt_that_filled_it(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    floods = "head -c 3000000 /dev/zero | tr '\\0' x; echo 1 > /logs/verifier/reward.txt"
    write_task("a", 2, toml=NO_NETWORK, test={1: floods, 2: floods})
    write_task("b", 1, toml=NO_NETWORK)
    # Artifacts are gathered behind the records, so when these find the disk full would be chance.
    pytester.makeconftest(with_sabotage("pass").replace("head -c 3000000", "head -c 3000"))
    small = pytester.path / "evocode-results/a"
    small.mkdir(parents=True)
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk can be made by who may mount one: {error}")
    try:
        session = run_tasks("tasks", agent="saboteur", env=env)
        assert session.outcomes == {"passed": 1, "errors": 2}
        session.has("*ERROR at setup of a saboteur round-1*", "the results could not be written*No space left*")
        assert [each.outcome for each in session.record("b", "saboteur").rounds] == ["passed"]
        assert_readable(session)
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.docker
@pytest.mark.nightly
def test_a_snapshot_that_is_gone_in_docker(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    test_a_snapshot_that_is_gone_is_an_error_of_its_round(pytester, write_task, run_tasks, "docker")


@pytest.mark.docker
@pytest.mark.nightly
def test_a_full_disk_beside_docker(pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_a_full_disk_is_an_error_of_the_attempt_that_filled_it(pytester, write_task, run_tasks, "docker")


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    """A socket in front of the engine's."""
    if not Path(REAL).is_socket():
        pytest.skip(f"the engine has no socket at {REAL}")
    with fake_engine(REAL) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        yield engine
    monkeypatch.delenv("DOCKER_HOST")
    with contextlib.closing(connect()) as client:
        remove_docker_leftovers(client)


@pytest.mark.docker
def test_an_engine_that_goes_away_is_an_error_with_its_cause_and_loses_no_verdict(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, wire: FakeEngine
) -> None:
    write_task("a", 3, toml=NO_NETWORK, step={1: "min_reward = 1"})
    pytester.makeconftest(
        with_sabotage(
            "(HERE / 'cut').touch()",
            "while not (HERE / 'is-cut').exists():",
            "    time.sleep(0.01)",
        )
    )

    def watch() -> None:
        while not (pytester.path / "cut").exists():
            threading.Event().wait(0.01)
        wire.cut()
        (pytester.path / "is-cut").touch()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    # The SDK does not close a socket that could not be connected.
    quietly = ("-W", "ignore::ResourceWarning")
    session = run_tasks(*quietly, "tasks", agent="saboteur", env="docker", subprocess=True)
    watcher.join(300)
    assert (session.outcomes, session.exit_status) == ({"passed": 1, "errors": 1, "skipped": 1}, 1)
    session.has("*ERROR at setup of a saboteur round-2*", "Docker failed while *")
    assert "evocode: left behind: container " in session.text
    assert (session.attempt("a", "saboteur") / "steps/round-1/round.json").is_file()
    assert_readable(session)


@pytest.mark.docker
@pytest.mark.nightly  # By day tests/environments/test_docker_hanging_calls.py has it, without a session.
def test_a_container_that_the_engine_does_not_delete_is_named_and_stops_no_session(
    write_task: WriteTask, run_tasks: RunTasks, wire: FakeEngine
) -> None:
    write_task("a", 1, toml=NO_NETWORK)
    # A real one would be removed by any other session of this machine.
    stuck, dead = "0123456789ab" * 5 + "cdef", str(replace(Owner.this(), started=1))
    wire.lies("GET /containers/json", [{"Id": stuck, "Names": ["/stuck"], "ImageID": "i", "Labels": {OWNER: dead}}])
    wire.hangs(f"DELETE /containers/{stuck}")
    session = run_tasks("tasks", env="docker", subprocess=True)
    assert (session.outcomes, session.exit_status) == ({"passed": 1}, 0)
    assert f"evocode: left behind: container {stuck[:12]}; to remove it, run: evocode clean" in session.text
    assert f"DELETE /containers/{stuck}" in wire.calls
