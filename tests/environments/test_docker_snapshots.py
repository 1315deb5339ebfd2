"""Snapshots of a container that works on: images on top of one another, each with what the container had then."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Environment
from pytest_evocode.environments.docker import snapshot_chain, snapshots
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.docker.mapped_files import mapped_inodes
from pytest_evocode.environments.docker.snapshots import DockerSnapshot
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from pytest_evocode.environments.docker.engine import DockerEngine
    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]

LISTING = (
    "cd / && find app srv -printf '%p %y %m %U:%G %s %l\\n' | sort;"
    " find app srv -type f | sort | xargs sha256sum; find app srv -type f -links +1 -printf '%n %p\\n' | sort -k2"
)
TURNS = (
    "mkdir -p /srv/a/b; echo 1 > /srv/a/b/f; ln /srv/a/b/f /srv/g; ln -s a /srv/l; mkfifo /srv/p; rm /app/from-image",
    "rm -r /app/tree; mkdir /app/tree; echo new > /app/tree/leaf; chmod 4711 /srv/g; rm /srv/l; mkdir /srv/l",
    "mv /srv/a /srv/moved; rm -r /app/tree; echo file > /app/tree; truncate -s 1M /srv/hole; rm /srv/p",
    "true",
    "rm -r /srv/moved /srv/g /srv/l; touch -d 2001-01-01 /srv/hole; chown 7:8 /srv/hole; echo > /app/from-image",
)


@pytest.fixture
def environment(docker: DockerEngine, make_task: MakeTask) -> Iterator[DockerEnvironment]:
    """A started container, whose layer can be read."""
    started = docker.create(make_task(), env={}, network="no-network")
    started.start()
    container = docker._client.inspect_container(started._id)
    if os.getuid() != 0 or not snapshots.layers_can_be_read(container):
        started.stop()
        pytest.skip("the engine's layers cannot be read here")
    yield started
    started.stop()


def listing(environment: Environment) -> str:
    """All that a fork is to have as the container had it."""
    listed = environment.exec(LISTING)
    assert listed.ok, listed.output
    return listed.output


def own_layers(docker: DockerEngine, snapshot: DockerSnapshot) -> int:
    """How many layers a snapshot has on top of the task's image."""
    layers = docker._client.inspect_image(snapshot.image)["RootFS"]["Layers"]  # type: ignore[no-untyped-call]
    return len(layers) - snapshot.image_layers


def listing_in_fork(environment: DockerEnvironment, snapshot: DockerSnapshot) -> str:
    fork = environment.fork(snapshot, network="no-network")
    fork.start()
    try:
        return listing(fork)
    finally:
        fork.stop()


@pytest.mark.parametrize("deepest", [40, 2])
@pytest.mark.matrix
def test_every_fork_has_what_the_container_had_then(
    docker: DockerEngine, environment: DockerEnvironment, deepest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_chain, "_DEEPEST", deepest)
    taken: list[DockerSnapshot] = []
    expected = []
    for turn in TURNS:
        assert environment.exec(turn).ok
        expected.append(listing(environment))
        taken.append(environment._snapshots.take(environment._id))
    assert [listing_in_fork(environment, each) for each in (taken[1], taken[4])] == [expected[1], expected[4]]
    assert [own_layers(docker, each) <= deepest for each in taken] == [True] * len(TURNS)
    paths = [each.changed_paths(["/logs"]) for each in taken]
    assert paths[0] == ["/app/from-image", "/srv/a/b/f", "/srv/g", "/srv/l", "/srv/p"]
    assert paths[4] == ["/app/from-image", "/app/tree", "/srv/hole"]
    for each in (taken[0], taken[2], taken[1]):
        each.discard()
    assert listing_in_fork(environment, taken[3]) == expected[3]
    taken[3].discard()
    taken[4].discard()
    layer = os.path.dirname(upper_layer(environment))
    environment.stop()
    assert subprocess.run(["test", "-e", layer], check=False).returncode == 1, "what was copied is still there"
    names = [name for image in docker._client.images(all=True) for name in image["RepoTags"] or ()]
    assert not {each.source.name for each in taken} & set(names)


@pytest.mark.parametrize(
    "wait_for_ever",
    [
        "time.sleep(1000)",
        # The first thread ends, and another one goes on with the memory.
        "threading.Thread(target=time.sleep, args=(1000,)).start(); ctypes.CDLL(None).pthread_exit(None)",
    ],
)
@pytest.mark.matrix
def test_a_file_that_a_process_shares_in_memory_is_known(environment: DockerEnvironment, wait_for_ever: str) -> None:
    script = (
        "import ctypes, mmap, threading, time; file = open('/srv/mapped', 'w+b'); file.write(bytes(4096));"
        " file.flush(); m = mmap.mmap(file.fileno(), 4096); m[:5] = b'first'; open('/srv/ready', 'w').close(); "
    ) + wait_for_ever
    wait = "timeout 20 sh -c 'while ! [ -e /srv/ready ]; do sleep 0.05; done'"
    assert environment.exec(["sh", "-c", f'nohup python3 -c "$1" >/dev/null 2>&1 & {wait}', "sh", script]).ok
    state = environment._client.inspect_container(environment._id)
    top = upper_layer(environment)
    mapped = mapped_inodes(environment._id, state["State"]["Pid"], top)
    assert mapped == {os.stat(f"{top}/srv/mapped").st_ino}
    environment.exec("mv /srv/mapped /srv/renamed; ln /srv/renamed /srv/other; rm /srv/renamed")
    assert mapped_inodes(environment._id, state["State"]["Pid"], top) is None
    assert mapped_inodes(environment._id, os.getpid(), top) is None


@pytest.mark.nightly
def test_what_the_engine_alone_can_copy_is_committed_by_it(environment: DockerEnvironment) -> None:
    environment.exec("echo 1 > /srv/file")
    environment.snapshot()
    environment.exec("echo 2 > /srv/file; touch /srv/.wh.motd")
    refused = environment._snapshots.take(environment._id)
    assert refused.made().done()
    environment.exec("rm /srv/.wh.motd")
    for snapshot in (refused, environment._snapshots.take(environment._id)):
        fork = environment.fork(snapshot, network="no-network")
        fork.start()
        assert fork.exec("cat /srv/file").output == "2\n"
        fork.stop()


def test_holes_are_refused_before_an_image_is_filled_with_them(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the two, the engine commits the second.
    for command in ("truncate -s 3T /srv/hole", "touch /srv/.wh.motd"):
        environment.exec(command)
        with pytest.raises(EnvironmentFault, match="files that were changed in the container have more than 32 GiB"):
            environment.snapshot()
    environment.exec("rm /srv/hole /srv/.wh.motd; truncate -s 1M /srv/small")
    environment.snapshot().made().result()
    monkeypatch.setattr(snapshots, "SIZE_LIMIT", 2**20)
    with pytest.raises(EnvironmentFault, match="files of the volume /srv have more than"):
        snapshots.copy_volumes(environment._client, environment._id, ["/srv"])


def test_an_image_that_cannot_be_made_is_a_fault_of_what_needs_it(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(snapshot_chain, "_put_into", refuse)
        snapshot = environment.snapshot()
        with pytest.raises(EnvironmentFault, match="no space left"):
            snapshot.made().result()
    fork = environment.fork(snapshot, network="no-network")
    with pytest.raises(EnvironmentFault, match="no space left"):
        fork.start()
    with pytest.raises(EnvironmentFault, match="no space left"):
        environment.snapshot()
    top = os.path.dirname(upper_layer(environment))
    environment._snapshots.settle()
    assert not [name for name in os.listdir(top) if name.startswith("evocode-")]


def upper_layer(environment: DockerEnvironment) -> str:
    """The directory of a container's upper layer."""
    container = environment._client.inspect_container(environment._id)
    return str(container["GraphDriver"]["Data"]["UpperDir"])
