"""What a sandbox hides of its host, as root's and as everybody's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_evocode
from pytest_evocode.environments import Command, Engine, Environment
from pytest_evocode.environments.sandbox import engine as engine_module
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.tasks import Task

# Docker's default capabilities but MKNOD and NET_RAW.
CAPABILITIES = "00000000a00405fb"


@pytest.fixture(scope="module")
def inside(sandbox_engine: Engine, plain_task: Task) -> Iterator[Environment]:
    """One sandbox for tests that leave nothing behind."""
    environment = sandbox_engine.create(plain_task, env={}, network=None)
    environment.start()
    yield environment
    environment.stop()


@pytest.mark.matrix
def test_home_directories_and_the_state_of_the_host_are_empty(inside: Environment) -> None:
    assert inside.exec("ls -A /home /root /run /srv /mnt /media /opt | grep -v : | grep .").output == ""
    assert inside.exec("find /var -type f -not -path '/var/lib/dpkg/*'").output == ""


def test_the_project_the_tests_and_the_hosts_temporary_files_are_out_of_sight(
    inside: Environment, tmp_path: Path
) -> None:
    for path in (tmp_path, Path(__file__).parent, Path(pytest_evocode.__file__).parent):
        assert not inside.exec(["test", "-e", str(path)]).ok
    assert inside.exec("ls -A /tmp /var/tmp | grep -v : | grep .").output == ""


def test_the_top_level_is_that_of_a_small_system(inside: Environment) -> None:
    listed = inside.exec("ls -A /").output.split()
    assert [name for name in listed if not name.startswith("lib") and name not in ("bin", "sbin")] == [
        "app", "dev", "etc", "home", "logs", "media", "mnt", "opt", "proc", "root", "run", "srv", "tmp", "usr", "var"
    ]  # fmt: skip


def test_users_and_secrets_of_the_host_are_not_in_etc(inside: Environment) -> None:
    names = [line.split(":")[0] for line in inside.exec("cat /etc/passwd").output.splitlines()]
    standard = Path("/usr/share/base-passwd/passwd.master")  # That of every Debian.
    expected = [line.split(":")[0] for line in standard.read_text().splitlines()] if standard.exists() else []
    assert names == (expected or ["root", "daemon", "nobody"])
    passwords = [line.split(":")[:2] for line in inside.exec("cat /etc/shadow").output.splitlines()]
    assert passwords == [[name, "*"] for name in names]
    assert {line.split(":")[1] for line in inside.exec("cat /etc/gshadow").output.splitlines()} == {"*"}
    for name in ("sudoers", "ssh", "machine-id", "fstab", "environment", "ssl/private"):
        assert not inside.exec(["test", "-e", f"/etc/{name}"]).ok
    assert os.uname().nodename not in inside.exec("hostname; cat /etc/hosts /etc/hostname").output.split()


def test_the_hosts_variables_stay_outside(
    monkeypatch: pytest.MonkeyPatch, sandbox_engine: Engine, plain_task: Task
) -> None:
    monkeypatch.setenv("EVOCODE_TEST_SECRET", "secret")
    environment = sandbox_engine.create(plain_task, env={}, network=None)
    environment.start()
    assert "secret" not in environment.exec("env; cat /proc/1/environ").output
    environment.stop()


def test_only_processes_of_the_sandbox_are_in_sight(inside: Environment) -> None:
    assert inside.exec("cat /proc/[0-9]*/comm").output.split() == ["tail", "cat"]


def test_a_command_has_three_descriptors_and_none_of_the_hosts(inside: Environment) -> None:
    script = """
import os
for fd in range(256):
    if os.path.lexists(f"/proc/self/fd/{fd}"):
        print(fd, os.readlink(f"/proc/self/fd/{fd}"))
"""
    listed = inside.exec(["python3", "-c", script]).output.splitlines()
    assert [line.split()[0] for line in listed] == ["0", "1", "2"]
    assert listed[0] == "0 /dev/null"
    assert all("pipe:" in line for line in listed[1:])
    assert inside.exec("ls /proc/1/fd").output.split() == ["0", "1", "2", "3"]  # tail -f reads its file.


def test_capabilities_are_at_most_those_of_a_container(inside: Environment) -> None:
    status = dict(line.split(":\t") for line in inside.exec("grep Cap /proc/self/status").output.splitlines())
    assert status["CapBnd"] == status["CapEff"] == status["CapPrm"] == CAPABILITIES
    assert set(inside.exec("grep -h Cap /proc/self/status", user="nobody").output.split()[3:6:2]) <= {
        "0000000000000000", CAPABILITIES
    }  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "mount -t tmpfs none /mnt",
        "umount /proc",
        "mount -o remount,rw /proc/sys",
        "chroot /proc/1/root true && mount -t proc proc /mnt",
        "mknod /tmp/disk b 254 0 && head -c1 /tmp/disk",
        "hostname changed",
        "nsenter -t 1 -m true",
        "dmesg --read-clear",
        "ip link add dummy0 type dummy",
        "unshare -m sh -c 'umount /proc/sys'",
        "unshare -Urm sh -c 'umount /proc/sys || mount -o remount,bind,rw /proc/sys'",
        "unshare -Urmpf mount -t proc proc /proc",
    ],
)
def test_what_only_the_hosts_root_may_do_fails(inside: Environment, command: str) -> None:
    result = inside.exec(command, timeout=30)
    assert not result.ok
    assert not result.timed_out


def test_no_setting_of_the_machine_can_be_opened_for_writing(inside: Environment) -> None:
    # Opened for appending and nothing written: where this fails, nothing has happened to the host.
    script = """
import os
for directory, names, files in os.walk("/proc"):
    names[:] = [name for name in names if not name.isdigit() and name not in ("self", "thread-self", "pressure")]
    for name in files:
        path = os.path.join(directory, name)
        try:
            if os.stat(path).st_mode & 0o222:
                os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))
                print(path)
        except OSError:
            continue
print("looked")
"""
    assert inside.exec(["python3", "-c", script], timeout=60).output == "looked\n"


def test_what_tells_of_the_whole_machine_cannot_be_read(inside: Environment) -> None:
    for name in ("locks", "keys", "timer_list", "vmallocinfo", "kpagecount", "sys/fs/file-nr", "sys/kernel/pty/nr"):
        assert not os.path.exists(f"/proc/{name}") or not inside.exec(["cat", f"/proc/{name}"]).ok


def test_io_uring_and_fanotify_are_refused(inside: Environment) -> None:
    script = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for call in (425, 426, 427, 300 if os.uname().machine == "x86_64" else 262):
    assert libc.syscall(call, 0, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == errno.EPERM, call
"""
    assert inside.exec(["python3", "-c", script]).output == ""


def test_no_key_of_the_kernel_can_be_left_for_others(inside: Environment) -> None:
    # By number and not by a program, which may not be there: add_key comes before request_key and keyctl.
    script = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
first = 248 if os.uname().machine == "x86_64" else 217
for ring in (-2, -3, -4, -5):
    add, request = (first, b"user", b"evocode", b"x", 1, ring), (first + 1, b"user", b"evocode", None, ring)
    for call in (add, request, (first + 2, 0, ring, 1)):
        assert libc.syscall(*call) == -1 and ctypes.get_errno() == errno.EPERM, call
"""
    for user in ("root", "nobody"):
        assert inside.exec(["python3", "-c", script], user=user).output == ""


def test_what_is_written_does_not_reach_the_host(inside: Environment) -> None:
    name = f"evocode-{os.getpid()}"
    directories = ("usr", "usr/local/bin", "etc", "tmp", "var/tmp", "dev/shm")
    paths = [f"/{directory}/{name}" for directory in directories]
    assert inside.exec(["touch", *paths]).ok
    assert not any(os.path.lexists(path) for path in paths)
    # Root can, in its own layer; everybody else is kept from it by the host's modes.
    assert inside.exec("echo gone > /usr/bin/env && rm /usr/bin/id").ok == (os.getuid() == 0)
    assert Path("/usr/bin/env").read_bytes()[:4] == b"\x7fELF"
    assert Path("/usr/bin/id").exists()


def test_directories_below_usr_can_be_hidden(plain_task: Task) -> None:
    hidden = Path("/usr/share/doc")
    if not hidden.is_dir():
        pytest.skip(f"{hidden} is not there to be hidden")
    engine = SandboxEngine([hidden, Path("/usr/no/such"), Path("/home")])
    try:
        environment = engine.create(plain_task, env={}, network=None)
        environment.start()
        assert environment.exec(["ls", "-A", str(hidden)]).output == ""
        assert environment.exec(["ls", "/usr/share"]).output != ""
        fork = environment.fork(environment.snapshot(), network=None)
        fork.start()
        assert fork.exec(["ls", "-A", str(hidden)]).output == ""
    finally:
        engine.close()


def test_solutions_of_new_tasks_are_hidden_where_this_package_is_below_usr(
    plain_task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    below_usr = Path("/usr/share/doc")
    if not any(below_usr.glob("*")):
        pytest.skip(f"nothing is in {below_usr}")
    assert (engine_module._TEMPLATES / "parcels").is_dir()
    monkeypatch.setattr(engine_module, "_TEMPLATES", below_usr)
    engine = SandboxEngine()
    environment = engine.create(plain_task, env={}, network=None)
    environment.start()
    try:
        assert environment.exec(["ls", "-A", str(below_usr)]).output == ""
    finally:
        engine.close()


def test_closing_an_engine_stops_its_sandboxes_and_leaves_no_file(plain_task: Task, cache: Path) -> None:
    before = set(cache.glob("sandboxes/*/"))
    engine = SandboxEngine()
    environments = [engine.create(plain_task, env={}, network=None) for _ in range(3)]
    for environment in environments[:2]:
        environment.start()
    environments[0].exec("mkdir /app/locked; touch /app/locked/f; chmod 000 /app/locked; sleep 300 >/dev/null 2>&1 &")
    snapshot = environments[0].snapshot()
    fork = environments[0].fork(snapshot, network=None)
    fork.start()
    engine.close()
    engine.close()
    assert {path for path in cache.glob("sandboxes/*/") if path.is_dir()} == {path for path in before if path.is_dir()}


def test_a_killed_session_takes_its_sandboxes_along_and_the_next_one_its_files(cache: Path, plain_task: Task) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from pytest_evocode.environments.sandbox.engine import SandboxEngine\n"
        "from pytest_evocode.tasks import load_task\n"
        "engine = SandboxEngine(); e = engine.create(load_task(Path(sys.argv[1])), env={}, network=None); e.start()\n"
        "e.exec(f'exec -a {sys.argv[2]} sleep 1000 >/dev/null 2>&1 &');\n"
        "print(engine._settings.state, flush=True); os.kill(os.getpid(), 9)"
    )
    mark = f"of-test-{uuid.uuid4()}"
    command = [sys.executable, "-c", script, str(plain_task.directory), mark]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    state = Path(done.stdout.strip())
    assert state.is_dir()
    engine = SandboxEngine()
    try:
        assert not state.exists()
        assert mark not in subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True).stdout
    finally:
        engine.close()


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.tasks import load_task

engine = SandboxEngine()
environment = engine.create(load_task(Path(sys.argv[1])), env={}, network=None)
environment.start()
print(environment.exec("id -u; cat from-image; touch /usr/local/bin/mine && ls /usr/local/bin/mine").output.split())
print(environment.exec(["id", "-un"], user="nobody").output.split())
environment.exec("mkdir locked; echo deep > locked/f; chmod 000 locked/f locked; rm from-image")
environment.exec("sleep 300 >/dev/null 2>&1 &")
fork = environment.fork(environment.snapshot(), network="no-network")
fork.start()
print(fork.exec("ls; cat locked/f").output.split())
print(fork.download("/app", Path(sys.argv[1], "out")), Path(sys.argv[1], "out/locked/f").read_text().split())
print(environment.exec(["sleep", "300"], timeout=0.2).timed_out)
engine.close()
print(sorted(path.name for path in Path(os.environ["EVOCODE_CACHE"], "sandboxes").iterdir() if path.is_dir()))
"""


def run_as_nobody(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with this session's packages as a user without rights; skips where that user can read none of it."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "EVOCODE_CACHE": str(home / "cache"),
        "PYTHONPATH": os.pathsep.join([str(Path(pytest_evocode.__file__).parents[1]), *filter(None, sys.path)]),
        "PYTHONSAFEPATH": "1",
    }
    # root's own Python is often out of reach; the system's will do where it is the same version.
    same = shutil.which(f"python{sys.version_info[0]}.{sys.version_info[1]}", path="/usr/bin:/usr/local/bin")
    for python in filter(None, (sys.executable, same)):
        for words in (["-c", "import pydantic, pytest_evocode"], list(arguments)):
            try:
                done = subprocess.run(
                    [python, *words], user=65534, group=65534, extra_groups=[], cwd=home, env=environ,
                    capture_output=True, text=True, timeout=300,
                )  # fmt: skip
            except PermissionError:
                break
            if words[0] == "-c" and done.returncode != 0:
                break
        else:
            return done
    pytest.skip("a user without rights can read neither this Python nor the system's of the same version")


def printed_without_rights(script: str, plain_task: Task) -> str:
    """Run a script with a task as a user without rights, and return what it prints; skips where that cannot be."""
    if os.getuid() != 0:
        pytest.skip("only root can become an unprivileged user; the other tests run as one")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        shutil.copytree(plain_task.directory, home / "task")
        (home / "script.py").write_text(script)
        for path in (home, *home.rglob("*")):
            os.chown(path, 65534, 65534)
        done = run_as_nobody(home, "script.py", "task")
        if "bubblewrap cannot make a sandbox here" in done.stderr:
            pytest.skip(done.stderr.splitlines()[-1])
        assert done.stderr == ""
        return done.stdout


def test_a_user_without_rights_has_the_whole_sandbox(plain_task: Task) -> None:
    assert printed_without_rights(UNPRIVILEGED, plain_task).splitlines() == [
        "['0', 'original', '/usr/local/bin/mine']",
        "['nobody']",
        "['locked', 'tree', 'deep']",
        "() ['deep']",
        "True",
        "[]",
    ]


# Prints what of the sandbox is on a file system of the host, and what can be done to it. Each try changes nothing.
SHARED = """
import ctypes, fcntl, json, os, stat, sys
libc = ctypes.CDLL(None)
hosts = json.loads(sys.argv[1])
paths = {line.split()[4] for line in open("/proc/self/mountinfo")}
for top in ("/dev", "/proc"):
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if not name.isdigit() and name not in ("self", "thread-self")]
        paths.update(os.path.join(directory, name) for name in (*names, *files))
opened = {f"/proc/1/fd/{number}" for number in range(9) if os.access(f"/proc/1/fd/{number}", os.F_OK)}
for path in sorted(paths | opened):
    status = os.stat(path) if path in opened else os.lstat(path)
    if status.st_dev not in hosts:
        continue
    def open_to(flags):
        return os.open(path, flags | os.O_NONBLOCK)
    times = status.st_atime_ns, status.st_mtime_ns
    tries = {
        "mode": lambda: os.chmod(path, stat.S_IMODE(status.st_mode)),
        "owner": lambda: os.chown(path, -1, -1),
        "times": lambda: os.utime(path, ns=times),
        "now": lambda: os.utime(path),
        "watch": lambda: 1 / (1 + libc.inotify_add_watch(libc.inotify_init(), path.encode(), 0xFFF)),
        "lock": lambda: fcntl.flock(open_to(os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB),
        "range": lambda: fcntl.lockf(open_to(os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB),
        "write": lambda: stat.S_ISCHR(status.st_mode) and 1 / 0 or os.close(open_to(os.O_WRONLY | os.O_APPEND)),
    }
    done = []
    for name, attempt in tries.items():
        try:
            attempt()
            done.append(name)
        except (OSError, ZeroDivisionError):
            pass
    print(json.dumps([path, status.st_dev, done]))
"""
# Only root can make devices. These are the host's where there is none, and their users get no more of them than bytes:
# null and zero and full keep none, and the random ones are the kernel's. What is unreadable in /proc is null, too.
SHARED_WITHOUT_RIGHTS = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")}
WITHOUT_RIGHTS = f"""
import json, sys
from pathlib import Path
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.tasks import load_task

engine = SandboxEngine()
environment = engine.create(load_task(Path(sys.argv[1])), env={{}}, network=None)
environment.start()
print(environment.exec(["python3", "-c", {SHARED!r}, "HOSTS"]).output)
engine.close()
"""


def file_systems() -> list[int]:
    """Return the numbers of the host's file systems."""
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return [os.makedev(*map(int, words[2].split(":"))) for words in mounts]


def shared_files(printed: str) -> dict[str, list[str]]:
    """Return what was printed, by path; numbers of file systems that have gone may be those of others now."""
    found = [json.loads(line) for line in printed.splitlines() if line]
    still = file_systems()
    return {path: done for path, number, done in found if number in still}


def test_no_file_of_the_host_is_in_a_sandbox_of_root(inside: Environment) -> None:
    found = shared_files(inside.exec(["python3", "-c", SHARED, json.dumps(file_systems())], timeout=60).output)
    devices = set() if os.getuid() == 0 else SHARED_WITHOUT_RIGHTS
    assert {path for path in found if not path.startswith("/proc/")} == devices
    assert {path for path, done in found.items() if done} == set()


def test_devices_of_the_host_that_have_to_be_shared_take_no_mode_owner_time_or_lock(plain_task: Task) -> None:
    script = WITHOUT_RIGHTS.replace("HOSTS", json.dumps(file_systems()))
    found = shared_files(printed_without_rights(script, plain_task))
    assert {path for path in found if not path.startswith("/proc/")} == SHARED_WITHOUT_RIGHTS
    assert {path for path, done in found.items() if done} == set()


def test_what_serves_a_sandbox_has_nothing_of_the_hosts_environment_to_show(
    plain_task: Task, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Its workers are processes of the sandbox for a moment, and /proc there shows what they were started with.
    monkeypatch.setenv("SERVICE_API_KEY", "0123456789")
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path))
    engine = SandboxEngine()
    try:
        launcher = engine._settings.launcher._process
        assert launcher is not None
        shown = Path(f"/proc/{launcher.pid}/environ").read_bytes()
    finally:
        engine.close()
    names = {entry.split(b"=")[0] for entry in shown.split(b"\0") if entry}
    assert names <= {b"PATH", b"LANG", b"LC_ALL", b"LC_CTYPE", b"LD_LIBRARY_PATH"}


# It looks for a process that has not become its program yet, and so has memory of the host's.
SPY = """
import os, time
found = set()
print("begun", flush=True)
while not os.path.exists("/tmp/enough"):
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and name not in ("1", str(os.getpid())) and os.open(f"/proc/{name}/mem", os.O_RDONLY):
                found.add(os.path.basename(os.readlink(f"/proc/{name}/exe")))
        except OSError:
            pass
    os.closerange(3, 200)
print(sorted(found - {"true", "coreutils", "touch"}))
"""


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.matrix
def test_no_program_can_look_into_a_process_before_it_becomes_another_one(
    sandbox_engine: Engine, plain_task: Task, user: str
) -> None:
    environment = sandbox_engine.create(plain_task, env={}, network=None)
    environment.start()
    try:
        printed = bytearray()
        spy = environment.open_program(Command(("python3", "-c", SPY), "root"), lambda _, piece: printed.extend(piece))
        while not printed:
            assert spy.wait(0.01) is None
        for _ in range(30):
            assert environment.run_program(Command(("true",), user), alongside=[spy]).exit_code == 0
        assert environment.exec(["touch", "/tmp/enough"]).ok
        assert spy.wait(60) == 0
        assert printed == b"begun\n[]\n"
    finally:
        environment.stop()


def test_files_in_memory_can_be_downloaded(inside: Environment, tmp_path: Path) -> None:
    inside.exec("mkdir /dev/shm/made && echo here > /dev/shm/made/file")
    inside.download("/dev/shm/made", tmp_path / "made")
    inside.exec("rm -r /dev/shm/made")
    assert (tmp_path / "made/file").read_text() == "here\n"
