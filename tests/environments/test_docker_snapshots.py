"""Snapshots of a container that works on: images, each with what the container had then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.docker import increments, snapshots
from pytest_evocode.environments.docker.environment import DockerEnvironment
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
    """A started container."""
    started = docker.create(make_task(), env={}, network="no-network")
    started.start()
    yield started
    started.stop()


def listing(environment: Environment) -> str:
    """All that a fork is to have as the container had it."""
    listed = environment.exec(LISTING)
    assert listed.ok, listed.output
    return listed.output


def in_fork(environment: Environment, snapshot: Snapshot, command: str = LISTING) -> str:
    """What a command prints in a fork."""
    fork = environment.fork(snapshot, network="no-network")
    fork.start()
    try:
        return fork.exec(command).output
    finally:
        fork.stop()


@pytest.mark.parametrize("large", [increments.LARGE, 0], ids=["whole", "increments"])
def test_every_fork_has_what_the_container_had_then(
    docker: DockerEngine, environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(increments, "LARGE", large)
    taken: list[Snapshot] = []
    expected = []
    for turn in TURNS:
        assert environment.exec(turn).ok
        expected.append(listing(environment))
        taken.append(environment.snapshot())
    paths = [each.changed_paths(["/logs"]) for each in taken]
    assert paths[0] == ["/app/from-image", "/srv/a/b/f", "/srv/g", "/srv/l", "/srv/p"]
    assert paths[4] == ["/app/from-image", "/app/tree", "/srv/hole"]
    taken[0].discard()
    taken[2].discard()
    for index in (1, 3):
        assert in_fork(environment, taken[index]) == expected[index]
    for each in taken:
        each.discard()
    names = [name for image in docker._client.images(all=True) for name in image["RepoTags"] or ()]
    assert not {each.reference for each in taken} & set(names)


def test_programs_move_directories_in_clean_forks_and_change_no_snapshot(environment: DockerEnvironment) -> None:
    """So the files of a clean fork are copies in its own layer: an overlay renames no directory of a layer below."""
    environment.exec("mkdir -p made/deep; echo mine > made/deep/file")
    snapshot = environment.snapshot()
    for _ in range(2):
        fork = environment.fork(snapshot, network="no-network", only=["/app"])
        fork.start()
        try:
            moved = fork.exec("python3 -c \"import os; os.rename('made', 'moved')\" && cat moved/deep/file")
            assert moved.output == "mine\n"
            assert fork.exec("echo other > moved/deep/file").ok
        finally:
            fork.stop()
    snapshot.discard()


def test_what_the_engines_archives_give_a_meaning_of_their_own(environment: DockerEnvironment) -> None:
    made = environment.exec(
        "cd /srv; echo 1 > there; touch .wh.there; mkfifo fifo; ! mknod device c 1 3 || exit 1;"
        " python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"; touch /app/.wh.from-image"
    )
    assert made.ok, made.output
    snapshot = environment.snapshot()
    assert in_fork(environment, snapshot, "ls -A /srv; [ -p /srv/fifo ] && ls -A /app") == "fifo\nthere\ntree\n"
    snapshot.discard()


def test_holes_are_refused_before_an_image_is_filled_with_them(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.exec("truncate -s 3T /srv/hole")
    with pytest.raises(EnvironmentFault, match="files that were changed in the container have more than 32 GiB"):
        environment.snapshot()
    environment.exec("rm /srv/hole; truncate -s 1M /srv/small")
    environment.snapshot().discard()
    monkeypatch.setattr(snapshots, "SIZE_LIMIT", 2**20)
    with pytest.raises(EnvironmentFault, match="files of the volume /srv have more than"):
        snapshots.copy_volume(environment._client, environment._id, "/srv")
