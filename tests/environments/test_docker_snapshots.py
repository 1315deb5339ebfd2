"""Snapshots of a container that works on: images, each with what the container had then."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.docker import increments, snapshots
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.docker.snapshots import DockerSnapshot
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from pytest_evocode.environments.docker.engine import DockerEngine
    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]

LISTING = (
    "cd / && find app srv opt -printf '%p %y %m %U:%G %s %TY-%Tm-%Td %TH:%TM %l\\n' | sort;"
    " find app srv opt -type f | sort | xargs sha256sum;"
    " find app srv opt -type f -links +1 -printf '%n %p\\n' | sort -k2"
)
TURNS = (
    "mkdir -p /srv/a/b; echo 1 > /srv/a/b/f; ln /srv/a/b/f /srv/g; ln -s a /srv/l; mkfifo /srv/p; rm /app/from-image",
    "rm -r /app/tree; mkdir /app/tree; echo new > /app/tree/leaf; chmod 4711 /srv/g; rm /srv/l; mkdir /srv/l",
    "mv /srv/a /srv/moved; rm -r /app/tree; echo file > /app/tree; truncate -s 1M /srv/hole; rm /srv/p",
    "true",
    "rm -r /srv/moved /srv/g /srv/l; touch -d 2001-01-01 /srv/hole; chown 7:8 /srv/hole; echo > /app/from-image",
)


NAMES = ("a", "b", "c", "d")
PLACES = [*NAMES, *(f"{one}/{two}" for one in NAMES for two in NAMES), "a/b/c", "a/b/d", "b/a/c"]
# An edit that cannot be, such as a move of a directory into itself, does nothing.
EDITS = (
    "rm -rf {one}",
    "rm -rf {one}; mkdir -p {one}; echo {number} > {one}/new",
    "mkdir -p {one}",
    "echo {number} > {one}",
    "echo {number} >> {one}",
    "mv -T {one} {two}",
    "mv {one} {two}",
    "mv -T {one} t && mv -T {two} {one}; mv -T t {two}",
    "ln -f {one} {two}",
    "ln -sfT {two} {one}",
    "cp -rT {one} {two}",
    "chmod {mode} {one}",
    "chown -h {number}:7 {one}",
    "touch -h -d @{number} {one}",
    "mkfifo {one}",
    "truncate -s {number} {one}",
)


@pytest.fixture
def environment(docker: DockerEngine, make_task: MakeTask) -> Iterator[DockerEnvironment]:
    """A started container."""
    started = docker.create(make_task(), env={}, network="no-network")
    started.start()
    yield started
    started.stop()


@pytest.fixture
def go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots go on from one another whatever was written, and whenever."""
    monkeypatch.setattr(increments, "LARGE", 0)
    monkeypatch.setattr(increments, "_RECENT", 0)


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


def layers_of(environment: DockerEnvironment, snapshot: Snapshot) -> list[Any]:
    """The sizes of the layers that a snapshot has over its image, the last one first."""
    assert isinstance(snapshot, DockerSnapshot)
    history = environment._client.history(snapshot.image)  # type: ignore[no-untyped-call]
    return [each["Size"] for each in history if each["Comment"] == "evocode snapshot"]


@pytest.mark.usefixtures("go_on")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_edited_a_snapshot_has_what_a_whole_one_has(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(seed)
    for root in ("/srv", "/opt", "/app"):
        assert environment.exec(f"cd {root}; mkdir -p a/b b; echo 1 > a/b/c; echo 2 > c").ok
    environment.snapshot().discard()
    layers = []
    for turn in range(6):
        lines = []
        for number in range(draw.randrange(1, 12)):
            one, two = draw.sample(PLACES, 2)
            mode = draw.choice(["700", "4755", "0", "1777"])
            edit = draw.choice(EDITS).format(one=one, two=two, number=1000 * turn + number, mode=mode)
            lines.append(f"cd {draw.choice(['/srv', '/opt', '/app', '/app/tree'])} && {{ {edit}; }} 2>&-")
        environment.exec("\n".join(lines))
        expected, snapshot = listing(environment), environment.snapshot()
        layers.append(len(layers_of(environment, snapshot)))
        with monkeypatch.context() as patch:
            patch.setattr(environment, "_increments", increments.Increments(environment._client, {}))
            patch.setattr(increments, "LARGE", 2**62)
            whole = environment.snapshot()
        assert in_fork(environment, snapshot) == in_fork(environment, whole) == expected, lines
        assert snapshot.changed_paths(["/logs"]) == whole.changed_paths(["/logs"]), lines
        snapshot.discard()
        whole.discard()
    # Where a directory with some of the names of a file was moved, all is committed.
    assert max(layers) > 2


@pytest.mark.usefixtures("go_on")
def test_a_snapshot_holds_only_what_is_new(environment: DockerEnvironment) -> None:
    environment.exec("head -c 5000000 /dev/urandom > /srv/large; echo 1 > /srv/small")
    environment.snapshot().discard()
    environment.exec("echo 22 > /srv/small")
    snapshot = environment.snapshot()
    newest, first = layers_of(environment, snapshot)
    assert newest < 1000 < 5_000_000 <= first
    assert in_fork(environment, snapshot, "cat /srv/small; stat -c %s /srv/large") == "22\n5000000\n"
    snapshot.discard()


@pytest.mark.usefixtures("go_on")
def test_what_is_written_by_memory_is_not_missed(environment: DockerEnvironment) -> None:
    writer = (
        "import mmap, sys, time; file = open('/srv/mapped', 'r+b'); pages = mmap.mmap(file.fileno(), 4096)\n"
        "pages[:1] = b'a'; print(flush=True)\n"
        "while not __import__('os').path.exists('/srv/go'): time.sleep(0.01)\n"
        "pages[:1] = b'b'; open('/srv/done', 'w').close()\n"
        "time.sleep(600)"
    )
    environment.exec("truncate -s 4096 /srv/mapped; echo 1 > /srv/other")
    environment.exec(f"python3 -c {shlex.quote(writer)} > /srv/out & until [ -s /srv/out ]; do sleep 0.01; done")
    first = environment.snapshot()
    environment.exec("touch /srv/go; until [ -e /srv/done ]; do sleep 0.01; done")
    second = environment.snapshot()
    read = "head -c 1 /srv/mapped"
    assert (in_fork(environment, first, read), in_fork(environment, second, read)) == ("a", "b")
    # Whether the page's change was told of is up to the kernel's writing it to the disk in between.
    assert len(layers_of(environment, second)) == 1


@pytest.mark.usefixtures("go_on")
def test_nothing_is_left_of_what_waited_for_a_next_snapshot(docker: DockerEngine, make_task: MakeTask) -> None:
    started = docker.create(make_task(), env={}, network="no-network")
    started.start()
    own = {"label": [f"{name}={value}" for name, value in started._settings.labels.items()]}
    snapshots = []
    for turn in range(3):
        started.exec(f"echo {turn} > /srv/{turn}")
        snapshots.append(started.snapshot())
        if turn:
            snapshots[turn - 1].discard()
    # Itself, and what waits for the next one, which is made behind what goes on.
    assert len(docker._client.containers(all=True, filters=own)) in (1, 2)
    snapshots[2].discard()
    started.stop()
    assert not docker._client.containers(all=True, filters=own)
    assert not docker._client.images(all=True, filters=own)


def test_what_was_changed_at_the_moment_of_a_snapshot_counts_as_changed_after_it(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kernels give what is written within 10 ms one change time."""
    monkeypatch.setattr(increments, "LARGE", 0)
    monkeypatch.setattr(increments, "_RECENT", 10**12)
    environment.exec("head -c 5000000 /dev/urandom > /srv/large")
    environment.snapshot().discard()
    snapshot = environment.snapshot()
    newest, _ = layers_of(environment, snapshot)
    assert newest >= 5_000_000
    snapshot.discard()
