"""Snapshots of a container that has written much have what a commit of all its files has, and hold only what is new."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.docker import increments
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.docker.snapshots import DockerSnapshot

if TYPE_CHECKING:
    from pytest_evocode.environments.docker.engine import DockerEngine
    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]

LISTING = (
    "cd / && find app srv opt -printf '%p %y %m %U:%G %s %TY-%Tm-%Td %TH:%TM %l\\n' | sort;"
    " find app srv opt -type f | sort | xargs sha256sum;"
    " find app srv opt -type f -links +1 -printf '%n %p\\n' | sort -k2"
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


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots go on from one another whatever was written."""
    monkeypatch.setattr(increments, "LARGE", 0)


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


def layers_of(environment: DockerEnvironment, snapshot: Snapshot) -> list[Any]:
    """The sizes of the layers that a snapshot has over its image, the last one first."""
    assert isinstance(snapshot, DockerSnapshot)
    history = environment._client.history(snapshot.image)  # type: ignore[no-untyped-call]
    return [each["Size"] for each in history if each["Comment"] == "evocode snapshot"]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_edited_a_snapshot_has_what_a_whole_one_has(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(seed)
    for root in ("/srv", "/opt", "/app"):
        assert environment.exec(f"cd {root}; mkdir -p a/b b; echo 1 > a/b/c; echo 2 > c").ok
    environment.snapshot().discard()
    for turn in range(6):
        lines = []
        for number in range(draw.randrange(1, 12)):
            one, two = draw.sample(PLACES, 2)
            mode = draw.choice(["700", "4755", "0", "1777"])
            edit = draw.choice(EDITS).format(one=one, two=two, number=1000 * turn + number, mode=mode)
            lines.append(f"cd {draw.choice(['/srv', '/opt', '/app', '/app/tree'])} && {{ {edit}; }} 2>&-")
        environment.exec("\n".join(lines))
        expected, snapshot = listing(environment), environment.snapshot()
        assert len(layers_of(environment, snapshot)) == turn + 2
        with monkeypatch.context() as patch:
            patch.setattr(environment, "_increments", increments.Increments(environment._client, {}))
            patch.setattr(increments, "LARGE", 2**62)
            whole = environment.snapshot()
        assert in_fork(environment, snapshot) == in_fork(environment, whole) == expected, lines
        assert snapshot.changed_paths(["/logs"]) == whole.changed_paths(["/logs"]), lines
        snapshot.discard()
        whole.discard()


def test_a_snapshot_holds_only_what_is_new(environment: DockerEnvironment) -> None:
    # What was changed at the very moment of a snapshot would count as changed after it.
    environment.exec("head -c 5000000 /dev/urandom > /srv/large; echo 1 > /srv/small; sleep 0.2")
    environment.snapshot().discard()
    environment.exec("echo 22 > /srv/small")
    snapshot = environment.snapshot()
    newest, first = layers_of(environment, snapshot)
    assert newest < 1000 < 5_000_000 <= first
    assert in_fork(environment, snapshot, "cat /srv/small; stat -c %s /srv/large") == "22\n5000000\n"
    snapshot.discard()


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
    assert len(docker._client.containers(all=True, filters=own)) == 2
    snapshots[2].discard()
    started.stop()
    assert not docker._client.containers(all=True, filters=own)
    assert not docker._client.images(all=True, filters=own)
