"""An agent reaches nothing of the host: no file, no service, no device, neither itself nor by what it leaves behind."""

# ruff: noqa: E501 - scripts in tables
from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integrity.places import PLACES, SEPARATE, Attack, Place, in_all_places

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

ON_THE_HOST = "evocode-of-the-host"
# Tries a shell as root of the machine; what it finds it prints.
LOOK_AT_HOST = "cat {host}/of-the-host; echo written > {host}/by-the-agent"

ESCAPES = [
    Attack("by-its-path", LOOK_AT_HOST),
    Attack("by-proc-root", "for p in /proc/1 /proc/self /proc/[0-9]*; do cat $p/root{host}/of-the-host; done; true"),
    Attack("by-dots", "cd /; cat ../../../../../..{host}/of-the-host /proc/self/cwd/../../..{host}/of-the-host; true"),
    Attack("by-chroot", "mkdir -p /tmp/c; chroot /proc/1/root /bin/bash -c 'cd ../../..; cat .{host}/of-the-host'; true"),
    # Leaving the root as root of the mount namespace: a directory outside of the new root is still held.
    Attack(
        "by-double-chroot",
        "python3 -c '\nimport os\nos.makedirs(\"/tmp/c\", exist_ok=True)\nf = os.open(\"/\", os.O_RDONLY)\n"
        "os.chroot(\"/tmp/c\")\nos.fchdir(f)\nfor i in range(64): os.chdir(\"..\")\nos.chroot(\".\")\n"
        "print(open(\"{host}/of-the-host\").read())'; true",
    ),
    Attack("by-mount", "mkdir -p /mnt/h; for d in /dev/[sv]d* /dev/nvme* /dev/mapper/*; do mount $d /mnt/h; done; "
           "mount --bind {host} /mnt/h; cat /mnt/h/of-the-host /mnt/h{host}/of-the-host; true"),
    Attack("by-own-namespaces", "for u in '-m' '-Urm' '-UrmpfC'; do unshare $u bash -c 'mkdir -p /mnt/h; "
           "mount -t proc proc /proc; mount --rbind / /mnt/h; umount -l {host} /tmp; cat /mnt/h{host}/of-the-host "
           "{host}/of-the-host'; done; true"),
    Attack("by-namespaces-of-pid-1", "nsenter -t 1 -a cat {host}/of-the-host; nsenter -t 1 -m -r cat {host}/of-the-host; true"),
    Attack("by-the-disk", "for n in '8 0' '8 1' '252 0' '253 0' '254 0' '259 0'; do mknod /tmp/disk b $n; "
           "head -c 4096 /tmp/disk | tr -d '\\0'; rm -f /tmp/disk; done; cat /dev/[sv]da | head -c 4096; true"),
    Attack("by-memory-devices", "for n in '1 1' '1 2' '1 4'; do mknod /tmp/m c $n; head -c 100 /tmp/m; rm -f /tmp/m; done; "
           "head -c 100 /dev/mem /dev/kmem /proc/kcore > /dev/null; true"),
    # Settings of the kernel that run a program of the agent's on the host; opened but never written to.
    Attack("by-settings-of-the-kernel", "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe "
           "/proc/sysrq-trigger /sys/kernel/uevent_helper /proc/sys/fs/binfmt_misc/register /sys/fs/cgroup/release_agent "
           "/sys/fs/cgroup/*/release_agent; do [ -f $f ] && (exec 3>>$f) 2>/dev/null && echo " + ON_THE_HOST + " $f; done; true"),
    Attack("by-a-cgroup", "mkdir -p /tmp/cg; mount -t cgroup -o rdma cgroup /tmp/cg || mount -t cgroup2 none /tmp/cg; "
           "ls /tmp/cg/release_agent /tmp/cg/cgroup.procs && echo " + ON_THE_HOST + "; true"),
    Attack("by-the-engines-socket", "ls /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock && echo "
           + ON_THE_HOST + "; true"),
    Attack("by-descriptors", "for f in /proc/[0-9]*/fd/*; do cat $f/../../..{host}/of-the-host $f{host}/of-the-host "
           "$f/of-the-host; done 2>/dev/null; true"),
    # What is collected after the round: links lead nowhere, and names stay inside.
    Attack("artifact-symlinks", "cd /logs/artifacts; ln -sf {host}/of-the-host f; ln -sfn {host} d; ln -sfn / r; "
           "ln -sfn ../../../../../../../.. up; true"),
    Attack("artifacts-are-a-symlink", "rm -rf /logs/artifacts; ln -s {host} /logs/artifacts"),
    Attack("artifacts-are-the-root", "rm -rf /logs/artifacts; ln -s ../../../../.. /logs/artifacts", timeout=60, only="sandbox"),
    Attack("artifact-through-a-symlink", "cd /logs/artifacts; rm -rf way; mkdir way; echo x > way/by-the-agent; "
           "mv way was; ln -s {host} way; true"),
    Attack("artifact-hard-links", "cd /logs/artifacts; echo x > a; ln -f a b; ln -f /etc/passwd p; "
           "ln -f /usr/bin/env e; true"),
    Attack("artifact-names", "cd /logs/artifacts; touch -- '..evil' '...' '-rf' 'a b' $'new\\nline' $'\\x1b[2J' "
           "$'\\xff\\xfe' '..\\..\\x' 'C:x' '%2e%2e%2fx' '~' '$HOME'; mkdir -p -- '.. ' ' ..' ..../x; true"),
    Attack("artifact-kinds", "cd /logs/artifacts; mkfifo f; mknod n c 1 3; mknod z c 1 5; "
           "python3 -c 'import socket as s; s.socket(s.AF_UNIX).bind(\"s\")'; chmod 000 . ; true"),
    Attack("artifact-modes", "cd /logs/artifacts; cp /bin/sh sh; chmod 6777 sh; mkdir -p l/m; echo x > l/m/f; chmod 000 l/m/f l/m l"),
    Attack("artifact-changes-its-kind", "cd /logs/artifacts; if [ $ROUND = 1 ]; then mkdir -p a/b; echo x > a/b/c; "
           "else rm -rf a; ln -s {host} a; fi"),
    Attack("artifacts-sparse", "truncate -s 2G /logs/artifacts/huge", only="sandbox"),
    Attack("artifacts-deep", "cd /logs/artifacts; mkdir -p $(printf 'd/%.0s' $(seq 1500)); true", nightly=True),
    Attack("artifacts-long-names", "n=$(printf 'n%.0s' $(seq 200)); cd /logs/artifacts; mkdir -p $n/$n/$n; echo x > $n/$n/$n/$n"),
    Attack("artifacts-many", "cd /logs/artifacts; touch $(seq 3000)"),
]  # fmt: skip


@in_all_places(ESCAPES, also=SEPARATE)
def test_nothing_of_the_host_is_reached(
    attack: Attack, place: Place, play: Play, honest: Honest, pytester: pytest.Pytester
) -> None:
    home = pytester.path
    (home / "cheat").mkdir()
    (home / "cheat/of-the-host").write_text(f"{ON_THE_HOST}\n")
    before = _tree(home)
    played = play(attack, place)
    assert played.outcome == honest(attack, place)
    assert played.secrets == []
    assert ON_THE_HOST not in played.seen(1) + played.seen(2)
    # All that a session may write is its results and what this test's own agent keeps.
    ours = {
        "evocode-results",
        "tasks",
        "plan.json",
        "conftest.py",
        "pytest.ini",
        "seen-1.txt",
        "seen-2.txt",
        "__pycache__",
    }
    written = {path for path in _tree(home) - before if path.parts[:1] == ("cheat",) and path.parts[1] not in ours}
    assert written == set()
    artifacts = [path for path in played.attempt.rglob("*") if "artifacts" in path.parts]
    assert not any(path.is_symlink() or not (path.is_file() or path.is_dir()) for path in artifacts)
    assert not any(path.stat().st_mode & 0o7000 for path in artifacts)
    assert not any(ON_THE_HOST in path.read_text(errors="replace") for path in artifacts if path.is_file())


# What can be done to a device without writing to it; the lock is held until the attempt ends.
DEVICES = r"""
cd /dev; chmod 600 full null; chown 12345 random; touch zero urandom; touch -t 200001010000 full; ls -l
setsid python3 -c '
import fcntl, os, time
for name in ("null", "zero", "full", "random", "urandom"):
    for lock in (fcntl.flock, fcntl.lockf):
        try: lock(os.open("/dev/" + name, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: pass
time.sleep(300)' > /tmp/out 2>&1 &
chmod 666 full null; true
"""
_DEVICES = ("null", "zero", "full", "random", "urandom")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.matrix
def test_the_devices_of_the_host_stay_as_they_are(place: Place, play: Play, honest: Honest) -> None:
    attack = Attack("devices", DEVICES)
    before = _devices()
    played = play(attack, place)
    assert _devices() == before
    assert played.outcome == honest(attack, place)


def _devices() -> dict[str, tuple[object, ...]]:
    """Return mode, owner, times and locks of the host's devices, but for shared locks, as other sessions have them."""
    locks = [line.split()[1:] for line in Path("/proc/locks").read_text().splitlines() if " WRITE " in line]
    found: dict[str, tuple[object, ...]] = {}
    for name in _DEVICES:
        status = os.stat(f"/dev/{name}")
        number = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        held = [words for words in locks if number in words]
        found[name] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_ctime_ns, held)
    return found


def _tree(directory: Path) -> set[Path]:
    return {path.relative_to(directory) for path in directory.rglob("*")}


@contextlib.contextmanager
def _service(address: str) -> Iterator[tuple[int, list[bytes]]]:
    """A service of the host that keeps what it is sent."""
    with socket.create_server((address, 0)) as server:
        got: list[bytes] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(ON_THE_HOST.encode())
                        got.append(connection.recv(100))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], got
        server.shutdown(socket.SHUT_RDWR)


# Loopback, the gateway, every usual bridge address, and the addresses that the routes name.
KNOCK = r"""
python3 - PORT <<'END'
import socket, struct, sys
addresses = ["127.0.0.1", "localhost", "::1", "172.17.0.1", "host.docker.internal", "10.0.2.2", "192.168.1.1"]
for line in open("/proc/net/route").read().splitlines()[1:]:
    addresses.append(socket.inet_ntoa(struct.pack("<L", int(line.split()[2], 16))))
for address in dict.fromkeys(addresses):
    try:
        with socket.create_connection((address, int(sys.argv[1])), timeout=0.3) as connection:
            print(address, connection.recv(100))
            connection.sendall(b"hello")
    except OSError:
        pass
END
"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("address", "toml"),
    [("127.0.0.1", ""), ("0.0.0.0", 'environment.network_mode = "no-network"')],
    ids=["loopback", "no-network"],
)
@pytest.mark.matrix("address")
def test_no_service_of_the_host_is_reached(place: Place, address: str, toml: str, play: Play, honest: Honest) -> None:
    with _service(address) as (port, got):
        attack = Attack("service", KNOCK.replace("PORT", str(port)), toml=toml)
        played = play(attack, place)
    assert played.outcome == honest(attack, place)
    assert ON_THE_HOST not in played.seen(1) + played.seen(2)
    assert got == []
