"""What only Docker has: built images, labels, limits, and traces to be left nowhere."""

from __future__ import annotations

import http.client
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_evocode.environments.docker.engine import ENGINE, OWNER, DockerEngine
from pytest_evocode.environments.docker.execs import FramedStream
from pytest_evocode.environments.owners import Owner
from pytest_evocode.errors import BuildError
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.content_hash import hash_directory
from tests.environments.conftest import BASE, MakeTask

pytestmark = pytest.mark.turns(2)

FROM = "FROM python:3.11-slim-bookworm\n"


@pytest.fixture
def unique(make_task: MakeTask, docker: DockerEngine) -> Iterator[Task]:
    """A task whose image nobody has built yet, and which is removed again."""
    task = make_task(f"{FROM}WORKDIR /app\nRUN date +%s.%N > /stamp\nLABEL unique={uuid.uuid4().hex}\n")
    yield task
    if tag_of(task) in tags(docker, "evocode-task"):
        docker._client.remove_image(tag_of(task), force=True)


def tag_of(task: Task) -> str:
    return f"evocode-task:{hash_directory(task.environment_directory)[:32]}"


def tags(engine: DockerEngine, repository: str) -> set[str]:
    return {tag for image in engine._client.images(name=repository) for tag in image["RepoTags"] or ()}


def containers(engine: DockerEngine, value: str, label: str = ENGINE) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine._client.containers(all=True, filters={"label": f"{label}={value}"})
    return found


def images(engine: DockerEngine, value: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine._client.images(filters={"label": f"{ENGINE}={value}"})
    return found


@pytest.mark.docker
def test_an_image_is_built_once_per_content(docker: DockerEngine, unique: Task) -> None:
    stamps = []
    for _ in range(2):
        environment = docker.create(unique, env={}, network=None)
        environment.start()
        stamps.append(environment.exec(["cat", "/stamp"]).output)
        environment.stop()
    assert stamps[0] == stamps[1]
    assert tag_of(unique) in tags(docker, "evocode-task")


@pytest.mark.docker
@pytest.mark.nightly
def test_two_processes_build_an_image_once(docker: DockerEngine, unique: Task) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from pytest_evocode.environments.docker.engine import DockerEngine\n"
        "from pytest_evocode.tasks import load_task\n"
        "engine = DockerEngine(); e = engine.create(load_task(Path(sys.argv[1])), env={}, network=None); e.start()\n"
        "print(e.exec('cat /stamp').output, end=''); engine.close()"
    )
    argv = [sys.executable, "-c", script, str(unique.directory)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    stamps = [process.communicate(timeout=300)[0] for process in running]
    assert stamps[0].strip()
    assert stamps[0] == stamps[1]


@pytest.mark.docker
def test_a_failing_build_shows_its_last_lines(docker: DockerEngine, make_task: MakeTask) -> None:
    task = make_task(f"{FROM}RUN for i in 1 2 3; do echo said $i; done; echo oops-$((40 + 2)) >&2; exit 3\n")
    with pytest.raises(BuildError) as caught:
        docker.create(task, env={}, network=None)
    message = str(caught.value)
    assert message.startswith(f"{task.dockerfile}: the build failed. Correct the Dockerfile; its last lines were:\n")
    assert "said 3" in message
    assert "oops-42" in message
    assert len(message.splitlines()) <= 21


@pytest.mark.docker
def test_a_build_over_its_time_limit(docker: DockerEngine, make_task: MakeTask) -> None:
    task = make_task(f"{FROM}RUN sleep 300\n", toml="[environment]\nbuild_timeout_sec = 0.5\n")
    with pytest.raises(BuildError, match=r"the build did not end within build_timeout_sec = 0\.5"):
        docker.create(task, env={}, network=None)


@pytest.mark.docker
def test_a_finished_image_that_is_nowhere(docker: DockerEngine, make_task: MakeTask) -> None:
    task = make_task(None, toml='[environment]\ndocker_image = "localhost:1/no/such:image"\n')
    with pytest.raises(BuildError) as caught:
        docker.create(task, env={}, network=None)
    where = task.directory / "task.toml"
    assert str(caught.value).startswith(
        f"{where}: the image localhost:1/no/such:image is not on this machine and cannot be pulled: "
    )
    assert "correct docker_image" in str(caught.value)


@pytest.mark.docker
def test_limits_and_labels_reach_the_container_of_a_finished_image_which_is_taken_as_it_is(
    docker: DockerEngine, make_task: MakeTask
) -> None:
    task = make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\ncpus = 0.5\nmemory = "64M"\n')
    environment = docker.create(task, env={}, network="no-network")
    environment.start()
    client: Any = docker._client
    assert client.inspect_container(environment._id)["Image"] == client.inspect_image(BASE)["Id"]
    assert environment.exec(["python3", "--version"]).output.startswith("Python 3.11")
    assert environment.workdir == "/"
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network="public")
    fork.start()
    for each, network in ((environment, "none"), (fork, docker._network)):
        seen = client.inspect_container(each._id)  # type: ignore[attr-defined]
        assert seen["HostConfig"]["NanoCpus"] == 500_000_000
        assert seen["HostConfig"]["Memory"] == 64 * 2**20
        assert seen["HostConfig"]["MemorySwap"] == 64 * 2**20
        assert seen["HostConfig"]["PidsLimit"] == 4096
        assert seen["HostConfig"]["NetworkMode"] == network
        assert seen["Config"]["Labels"][OWNER] == str(Owner.this())
        assert seen["Config"]["Labels"]["evocode.task"] == task.name
    fork.stop()
    snapshot.discard()
    environment.stop()


@pytest.mark.docker
def test_nothing_is_left_of_an_attempt(docker: DockerEngine, make_task: MakeTask) -> None:
    task = make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\n')
    engine = DockerEngine()
    environment = engine.create(task, env={}, network=None)
    environment.start()
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network=None, only=["/srv"])
    fork.start()
    fork.stop()
    snapshot.discard()
    mine = engine._own[ENGINE]
    assert len(containers(docker, mine)) == 1
    environment.stop()
    assert containers(docker, mine) == []
    assert images(docker, mine) == []
    engine.close()


@pytest.mark.docker
@pytest.mark.nightly
def test_closing_an_engine_removes_what_still_runs_of_it_and_nothing_of_anybody_else(
    make_task: MakeTask, docker: DockerEngine, request: pytest.FixtureRequest
) -> None:
    task = make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\n')
    of_another = docker.create(task, env={}, network=None)
    of_another.start()
    labelled = docker._client.create_container(BASE, ["true"], labels={OWNER: "somebody-else"})["Id"]
    request.addfinalizer(lambda: docker._client.remove_container(labelled, force=True))
    engine = DockerEngine()
    environment = engine.create(task, env={}, network=None)
    environment.start()
    snapshot = environment.snapshot()
    environment.fork(snapshot, network=None).start()
    mine = engine._own[ENGINE]
    assert len(containers(docker, mine)) == 2
    engine.close()
    assert containers(docker, mine) == []
    assert images(docker, mine) == []
    assert of_another.exec(["true"]).ok
    of_another.stop()
    assert len(containers(docker, "somebody-else", OWNER)) == 1


@pytest.mark.docker
def test_leftovers_of_a_dead_session_are_removed_and_a_living_ones_kept(
    make_task: MakeTask, docker: DockerEngine
) -> None:
    task = make_task(None, toml=f'[environment]\ndocker_image = "{BASE}"\n')
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from pytest_evocode.environments.docker.engine import DockerEngine\n"
        "from pytest_evocode.tasks import load_task\n"
        "engine = DockerEngine(); e = engine.create(load_task(Path(sys.argv[1])), env={}, network=None); e.start()\n"
        "e.snapshot(); print(engine._own['evocode.engine'], flush=True); signal.pause()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(task.directory)], stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdout is not None
        owner = session.stdout.readline().strip()
        DockerEngine().close()
        assert len(containers(docker, owner)) == 1
        assert len(images(docker, owner)) == 1
        session.kill()
    DockerEngine().close()
    # An engine of another test may have begun to remove them, and the engine does so in its own time.
    for _ in range(600):
        if not containers(docker, owner) and not images(docker, owner):
            break
        time.sleep(0.1)
    assert containers(docker, owner) == []
    assert images(docker, owner) == []


# The stream of a command's output, without an engine.


def frame(payload: bytes, channel: int = 1) -> bytes:
    return struct.pack(">BxxxI", channel, len(payload)) + payload


def connect(sent: bytes) -> tuple[Any, socket.socket]:
    """What the SDK returns for a started command, and the engine's end of its connection."""
    ours, theirs = socket.socketpair()
    theirs.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n" + sent)
    response = http.client.HTTPResponse(ours)
    response.begin()
    stream: Any = response.fp.raw
    stream._response = SimpleNamespace(raw=SimpleNamespace(_fp=response), close=response.close)
    return stream, theirs


def test_output_that_comes_with_the_header_is_kept() -> None:
    output: list[tuple[int, bytes]] = []
    stream, engine = connect(frame(b"early ") + frame(b"late", 2)[:10])
    with engine, FramedStream(stream, lambda *piece: output.append(piece)) as collected:
        engine.sendall(b"te")
        engine.shutdown(socket.SHUT_WR)
        assert collected.collect(time.monotonic() + 300)
    assert output == [(1, b"early "), (2, b"la"), (2, b"te")]


def test_a_frame_that_is_cut_by_a_deadline_goes_on_after_it() -> None:
    output: list[tuple[int, bytes]] = []
    stream, engine = connect(b"")
    with engine, FramedStream(stream, lambda *piece: output.append(piece)) as collected:
        sent = frame(b"one") + frame(b"two", 2)
        for cut in (3, 6, 5):
            part, sent = sent[:cut], sent[cut:]
            engine.sendall(part)
            assert not collected.collect(time.monotonic() + 0.05)
        engine.sendall(sent)
        engine.shutdown(socket.SHUT_WR)
        assert collected.collect(None)
    assert b"".join(piece for number, piece in output if number == 1) == b"one"
    assert b"".join(piece for number, piece in output if number == 2) == b"two"


@pytest.mark.docker
def test_the_engine_runs_no_healthcheck_of_an_image_by_itself(docker: DockerEngine, make_task: MakeTask) -> None:
    environment = docker.create(make_task(f"{FROM}HEALTHCHECK --interval=1s CMD false\n"), env={}, network=None)
    try:
        environment.start()
        assert "Health" not in docker._client.inspect_container(environment._id)["State"]
    finally:
        environment.stop()
