"""What every environment promises about snapshots and the forks that are started from them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine, Environment, read_environment_file
from pytest_evocode.errors import SnapshotGone
from pytest_evocode.tasks import Network, Task

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment, MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]


@contextlib.contextmanager
def forked(
    environment: Environment,
    *,
    network: Network | None = None,
) -> Iterator[Environment]:
    """A started fork of the environment as it is now."""
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network=network)
    try:
        fork.start()
        yield fork
    finally:
        fork.stop()
        snapshot.discard()


def test_a_fork_has_the_files_and_none_of_the_processes(environment: Environment) -> None:
    environment.exec("echo new > /app/new; echo changed > /app/from-image; sleep 300 >/dev/null 2>&1 &")
    with forked(environment) as fork:
        assert fork.workdir == environment.workdir
        assert fork.exec("pwd; cat new from-image tree/sub/leaf; echo $GREETING").output == (
            "/app\nnew\nchanged\ndeep\nhello from the image\n"
        )
        assert "sleep" not in fork.exec("cat /proc/[0-9]*/comm").output
    assert "sleep" in environment.exec("cat /proc/[0-9]*/comm").output


def test_what_was_published_can_be_had_of_every_fork(environment: Environment, tmp_path: Path) -> None:
    environment.exec("echo published > /logs/artifacts/report")
    with forked(environment) as fork:
        fork.upload([], "/srv/anything")
        fork.download("/logs/artifacts", tmp_path / "published")
    assert (tmp_path / "published/report").read_text() == "published\n"


def test_a_fork_and_its_origin_go_separate_ways(environment: Environment) -> None:
    environment.exec("echo before > /app/shared")
    snapshot = environment.snapshot()
    environment.exec("echo after > /app/shared; rm /app/from-image; touch /app/of-origin")
    fork = environment.fork(snapshot, network=None)
    fork.start()
    try:
        assert fork.exec("ls; cat shared from-image").output == "from-image\nshared\ntree\nbefore\noriginal\n"
        fork.exec("echo fork > /app/shared; rm -r /app/tree; touch /app/of-fork")
        assert environment.exec("ls; cat shared").output == "of-origin\nshared\ntree\nafter\n"
    finally:
        fork.stop()
        snapshot.discard()
    assert environment.exec("ls; cat shared").output == "of-origin\nshared\ntree\nafter\n"


def test_deleted_and_replaced_things_stay_so(environment: Environment) -> None:
    environment.exec(
        "rm from-image; rm -r tree/sub; mkdir tree/sub; touch tree/sub/other;"  # An opaque directory over the image's.
        "rm -r /srv; echo file > /srv;"
        "rm -r /usr/share/doc && rm /usr/bin/env && touch /app/usr-is-writable"  # Not for a user without rights.
    )
    with forked(environment) as fork:
        assert fork.exec("ls tree/sub").output == "other\n"
        assert not fork.exec("test -e from-image").ok
        assert fork.exec("test ! -e usr-is-writable || test ! -e /usr/share/doc -a ! -e /usr/bin/env").ok
        assert fork.exec("cat /srv").output == "file\n"
        with forked(fork) as second:  # And again, over one layer more.
            assert second.exec("ls tree/sub; cat /srv").output == "other\nfile\n"
            assert not second.exec("test -e from-image").ok


def test_a_directory_renamed_out_of_the_image_is_complete(environment: Environment) -> None:
    environment.exec("mv tree moved 2>/dev/null || { cp -r tree moved && rm -r tree; }")
    with forked(environment) as fork:
        assert fork.exec("ls; cat moved/sub/leaf").output == "from-image\nmoved\ndeep\n"


def test_modes_links_owners_and_holes_survive(engine: Engine, environment: Environment) -> None:
    environment.exec(
        "mkdir locked; echo deep > locked/file; chmod 000 locked/file locked;"
        "ln -s /no/where dangling; echo text > one; ln one two; truncate -s 200M sparse; mkfifo fifo; chmod 4755 one"
    )
    environment.exec("chown 65534:65534 tree/sub/leaf")
    owner = environment.exec("stat -c '%u:%g' tree/sub/leaf").output
    with forked(environment) as fork:
        assert fork.exec("stat -c '%a %F' locked locked/file fifo one").output.splitlines() == [
            "0 directory", "0 regular file", "644 fifo", "4755 regular file"
        ]  # fmt: skip
        assert fork.exec("cat locked/file; readlink dangling").output == "deep\n/no/where\n"
        assert fork.exec("[ one -ef two ] && stat -c %h one").output == "2\n"
        size, blocks = fork.exec("stat -c '%s %b' sparse").output.split()
        assert int(size) == 200 * 2**20
        if engine.name == "sandbox":  # Docker's commit writes the holes out.
            assert int(blocks) < 10_000
        assert fork.exec("stat -c '%u:%g' tree/sub/leaf").output == owner


def test_volumes_of_the_image_are_part_of_a_snapshot(make_task: MakeTask, make_environment: MakeEnvironment) -> None:
    task = make_task(
        "FROM python:3.11-slim-bookworm\nRUN mkdir -p /data/sub && echo a > /data/a && echo b > /data/sub/b\n"
        "VOLUME /data\n"
    )
    environment = make_environment(task)
    assert environment.exec("cd /data && cat a sub/b && rm a && echo new > new && chmod 700 .").output == "a\nb\n"
    with forked(environment) as fork, forked(fork) as second:
        for each in (fork, second):
            assert each.exec("cd /data && ls && cat new && stat -c %a .").output == "new\nsub\nnew\n700\n"
        second.exec("rm -r /data/sub")
        assert environment.exec("ls /data").output == fork.exec("ls /data").output == "new\nsub\n"


def test_a_command_writing_all_the_time_is_seen_at_one_moment(environment: Environment) -> None:
    # Each line is appended to two files, the first one first: paused between, they differ by one line at most. They are
    # far apart and in the company of large files, so that a copy made while the writer goes on tells.
    environment.exec("for d in /app /usr/local/bin; do head -c 20000000 /dev/urandom > $d/large; done")
    environment.exec("(while :; do echo x >> /app/one; echo x >> /usr/local/bin/two; done) >/dev/null 2>&1 &")
    time.sleep(0.2)
    with forked(environment) as fork:
        one, two = (int(count) for count in fork.exec("wc -l < /app/one; wc -l < /usr/local/bin/two").output.split())
        assert two <= one <= two + 1
        assert two > 0


def test_processes_go_on_after_a_snapshot(environment: Environment) -> None:
    environment.exec("(while sleep 0.02; do echo beat >> /app/beats; done) >/dev/null 2>&1 &")
    environment.snapshot().discard()
    script = "n=$(wc -l < beats); until [ $(wc -l < beats) -gt $((n + 3)) ]; do sleep 0.02; done"
    assert environment.exec(script, timeout=30).ok


def test_a_process_that_waits_in_vfork_does_not_keep_a_snapshot_from_being_taken(environment: Environment) -> None:
    # clone(CLONE_VFORK | SIGCHLD) by number: the parent waits uninterruptibly until its child ends.
    script = "import ctypes, platform, time; n = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\n" \
        "if ctypes.CDLL(None).syscall(n, 0x4000 | 17, 0, 0, 0, 0) == 0: time.sleep(300)"  # fmt: skip
    environment.exec(f'python3 -c "{script}" >/dev/null 2>&1 &')
    assert environment.exec("until grep -q ' D ' /proc/[0-9]*/stat; do sleep 0.02; done", timeout=30).ok
    with forked(environment) as fork:
        assert fork.exec("cat from-image").output == "original\n"


def test_a_fork_is_had_of_an_environment_where_something_fights(environment: Environment) -> None:
    environment.exec("echo mine > /app/mine; (sleep 0.5; while :; do kill -9 -1; done) >/dev/null 2>&1 &")
    time.sleep(1)
    with forked(environment) as fork:
        assert fork.exec("cat mine; cat /proc/[0-9]*/comm | sort -u").output.startswith("mine\n")


def test_several_forks_of_one_snapshot_run_at_once(environment: Environment) -> None:
    environment.exec("echo base > shared")
    snapshot = environment.snapshot()
    together = threading.Barrier(4)

    def run(number: int) -> str:
        fork = environment.fork(snapshot, network=None)
        try:
            fork.start()
            together.wait(300)
            fork.exec(f"echo {number} >> shared")
            together.wait(300)
            return fork.exec("cat shared").output
        finally:
            fork.stop()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [f"base\n{number}\n" for number in range(4)]
    snapshot.discard()
    assert environment.exec("cat shared").output == "base\n"


def test_snapshots_of_different_moments_stay_apart(environment: Environment) -> None:
    snapshots = []
    for moment in ("one", "two", "three"):
        environment.exec(f"touch {moment}")
        snapshots.append(environment.snapshot())
    seen = []
    for snapshot in snapshots:
        fork = environment.fork(snapshot, network=None)
        fork.start()
        seen.append(fork.exec("ls one two three 2>/dev/null").output.split())
        fork.stop()
        snapshot.discard()
    assert seen == [["one"], ["one", "two"], ["one", "three", "two"]]


@pytest.mark.parametrize(
    "plant",
    [
        "mkdir -p $X; echo forged > $X/reward.txt; mkdir $X/.hidden; chmod 000 $X",
        "mkdir -p $(dirname $X) /app/elsewhere; ln -s /app/elsewhere $X",
        "mkdir -p $(dirname $X); ln -s /no/where $X",
        "mkdir -p $(dirname $X); echo file > $X",
        "mkdir -p $(dirname $X); mkfifo $X",
        "rm -rf /logs; echo file > /logs; touch /tests",
        "rm -rf /logs; ln -s /app /logs; mkdir /app/verifier; touch /app/verifier/reward.txt",
        "rm -rf /logs; ln -s /no/where /logs",
    ],
    ids=["files", "link", "dangling", "file", "fifo", "logs-file", "logs-link", "logs-dangling"],
)
def test_directories_made_anew_are_empty_whatever_was_planted_there(environment: Environment, plant: str) -> None:
    anew = ("/tests", "/logs/verifier")
    for path in anew:
        environment.exec(plant, env={"X": path}, cwd="/")
    with forked(environment) as fork:
        fork.remove(anew)
        fork.make_directories(anew)
        for path in anew:
            assert fork.exec(f"cd {path} && ls -A", cwd="/").output == ""
            assert fork.exec(["touch", f"{path}/written"], user="nobody").ok
            assert read_environment_file(fork, f"{path}/written", 10) == b""
        assert fork.exec("ls -A elsewhere 2>/dev/null").output == ""
        assert fork.exec("cat from-image").output == "original\n"


@pytest.mark.parametrize("network", ["no-network", None])
def test_a_fork_has_a_network_of_its_own(environment: Environment, network: Network | None) -> None:
    server = "import socket, time; s = socket.create_server(('127.0.0.1', 18080)); open('/app/up', 'w')"
    environment.exec(f'python3 -c "{server}; time.sleep(300)" >/dev/null 2>&1 &')
    environment.exec("until [ -e /app/up ]; do sleep 0.02; done", timeout=30)
    connect = ["python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 18080), 5)"]
    assert environment.exec(connect, timeout=30).ok
    with forked(environment, network=network) as fork:
        assert "Connection refused" in fork.exec(connect, timeout=30).output


def test_a_fork_without_network_of_an_environment_that_has_one(engine: Engine, plain_task: Task) -> None:
    environment = engine.create(plain_task, env={}, network="public")
    count = "grep -c : /proc/net/dev; tail -n +3 /proc/net/route | wc -l"
    try:
        environment.start()
        with forked(environment, network="no-network") as fork:
            result = fork.exec(["python3", "-c", "import socket; socket.create_connection(('192.0.2.1', 80), 5)"])
            assert "Network is unreachable" in result.output
        assert environment.exec(count).ok
    finally:
        environment.stop()


def test_a_fork_keeps_variables_and_user(engine: Engine, plain_task: Task) -> None:
    environment = engine.create(plain_task, env={"WHO": "task"}, network=None)
    try:
        environment.start()
        with forked(environment) as fork:
            assert fork.exec("echo $WHO $GREETING; id -u").output == "task hello from the image\n0\n"
    finally:
        environment.stop()


def test_a_fork_outlives_its_origin(environment: Environment) -> None:
    environment.exec("echo late > late")
    snapshot = environment.snapshot()
    environment.stop()
    fork = environment.fork(snapshot, network=None)
    fork.start()
    assert fork.exec("cat late").output == "late\n"
    fork.stop()
    snapshot.discard()


def test_a_discarded_snapshot_starts_no_fork(environment: Environment) -> None:
    snapshot = environment.snapshot()
    snapshot.discard()
    # Docker tells when it is started, the sandbox at once.
    with pytest.raises(SnapshotGone):
        environment.fork(snapshot, network=None).start()


def test_a_snapshot_knows_what_is_not_as_in_the_image(environment: Environment) -> None:
    environment.exec(
        "echo x > /usr/local/bin/made; rm /app/from-image; mkdir -p /opt/a/b; echo x > /opt/a/c; ln -s /x /opt/link;"
        " echo y >> /etc/motd; echo z > /app/inside; mkdir -p /app/venv/lib; echo x > /app/venv/lib/x;"
        " chmod 777 /app/tree; echo x > /app/tree/sub/x"
    )
    snapshot = environment.snapshot()
    try:
        everywhere = snapshot.changed_paths()
        made = {"/usr/local/bin/made", "/opt/a/b", "/opt/a/c", "/opt/link", "/etc/motd"}
        assert made | {"/app/from-image", "/app/inside"} <= set(everywhere)
        assert not {"/opt/a", "/app/tree/sub"} & set(everywhere)
        # Who may write there has a say in all that is in it.
        assert "/app/tree" in everywhere
        outside = snapshot.changed_paths(["/app"])
        assert made <= set(outside)
        assert not [path for path in outside if path.startswith("/app")]
    finally:
        snapshot.discard()


def test_a_directory_is_changed_by_what_is_in_it_and_by_nothing_that_came_and_went(environment: Environment) -> None:
    environment.exec(
        "rm $(mktemp); touch /srv/x; rm /srv/x; mkdir -p /srv/y/z; rm -r /srv/y; mkdir /opt/new; chmod 700 /home;"
        "rm -r tree; mkdir -p tree/new tree/sub; touch tree/sub/x tree/sub/file; rm tree/sub/x; chmod 755 .;"
        "rmdir /mnt; mkdir /mnt; mkdir -p made/gone; rmdir made/gone"
    )
    snapshot = environment.snapshot()
    environment.exec("rm from-image")
    later = environment.snapshot()
    try:
        expected = ["/app/made", "/app/tree/new", "/app/tree/sub/file", "/app/tree/sub/leaf", "/home", "/opt/new"]
        assert snapshot.changed_paths(["/logs"]) == expected
        assert later.changed_paths(["/logs"]) == sorted([*expected, "/app/from-image"])
    finally:
        snapshot.discard()
        later.discard()


def test_a_kept_snapshot_is_found_by_its_reference_and_started_from(
    engine: Engine, environment: Environment, plain_task: Task, tmp_path: Path
) -> None:
    environment.exec("echo kept > /app/kept; rm /app/from-image")
    snapshot = environment.snapshot(keep_for=tmp_path)
    snapshot.made().result()
    found = engine.find_snapshot(snapshot.reference)
    assert found is not None
    assert found.changed_paths() == snapshot.changed_paths()
    again = engine.create(plain_task, env={}, network="no-network", snapshot=found)
    again.start()
    try:
        assert again.exec("cat /app/kept; ls /app").output.split()[0] == "kept"
        assert not again.exec("[ -e /app/from-image ]").ok
        again.exec("echo more > /app/more")
        later = again.snapshot()
        found.discard()  # A later one stands on its own.
        fork = again.fork(later, network="no-network")
        fork.start()
        assert fork.exec("cat /app/kept /app/more").output == "kept\nmore\n"
        assert {"/app/kept", "/app/more", "/app/from-image"} <= set(later.changed_paths())
        fork.stop()
        later.discard()
    finally:
        again.stop()
    assert engine.find_snapshot(snapshot.reference) is None
