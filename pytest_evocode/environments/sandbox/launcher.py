"""The process that enters sandboxes: one per session, standard library only, run as a script.

It has to be a process of its own: joining a user namespace needs a single thread, bubblewrap's ``--die-with-parent``
is tied to the thread that started it, and when the session is killed the closed socket ends this process and with it
every sandbox. Requests are JSON datagrams with file descriptors; each is carried out by a forked worker that enters
the sandbox's namespaces and writes one JSON reply. File operations run in that worker's own Python, with nothing of
the sandbox executed, so an agent that replaced ``rm`` or ``tar`` changes nothing.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import stat
import struct
import sys
import tarfile
import time
import warnings  # noqa: F401 - imported by Python 3.13 when it forks, and a worker in a sandbox finds no library
from collections.abc import Callable
from typing import Any, NoReturn

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

# Docker's default capabilities without MKNOD and NET_RAW: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID,
# SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, AUDIT_WRITE, SETFCAP.
CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 29, 31)
#: The datagram for a request that is in the last of the file descriptors.
IN_A_FILE = b"in a file"
_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION_3 = 0x20080522

_PR_SET_SECCOMP = 22
# The number of add_key by the kernel's number of the architecture (x86-64, i386, arm64, arm, riscv64); request_key and
# keyctl are the two after it.
_KEY_CALLS = {0xC000003E: 248, 0x40000003: 286, 0xC00000B7: 217, 0x40000028: 309, 0xC00000F3: 217}

_UNFINISHED = 10.0  # seconds for which a sandbox counts as just started
_spawned: collections.deque[tuple[int, float]] = collections.deque(maxlen=64)
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _enter(pidfd: int, flags: int) -> None:
    _check(_libc.setns(pidfd, flags), "setns")


def own_user_namespace() -> None:
    """Become root over one's own files: an agent may leave files that their owner's mode bits lock."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        return
    _check(_libc.unshare(CLONE_NEWUSER), "unshare")
    _map_ids(0, uid, 0, gid)


def _map_ids(inner_uid: int, uid: int, inner_gid: int, gid: int) -> None:
    with open("/proc/self/setgroups", "w") as file:
        file.write("deny")
    with open("/proc/self/uid_map", "w") as file:
        file.write(f"{inner_uid} {uid} 1")
    with open("/proc/self/gid_map", "w") as file:
        file.write(f"{inner_gid} {gid} 1")


def _limit_capabilities() -> None:
    """Leave root no more than a container's root has."""
    for capability in range(64):
        if capability not in CAPABILITIES:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    mask = sum(1 << capability for capability in CAPABILITIES)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    _check(_libc.capset(header, data), "capset")


def _refuse_keys() -> None:
    """Refuse the kernel's keyrings, as Docker does.

    They belong to a user or a session and no namespace parts them: what a program read of a suite in one sandbox it
    could hand to another, and root's keys of the host are there as well.
    """
    load, mask, equal, at_least, above, answer = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    program = [(load, 0, 0, 4)]  # The architecture; its calls may come under a second number, with the x32 bit.
    for architecture, first in _KEY_CALLS.items():
        program += [(equal, 0, 6, architecture), (load, 0, 0, 0), (mask, 0, 0, 0xBFFFFFFF)]
        program += [(at_least, 0, 1, first), (above, 0, 1, first + 2), (answer, 0, 0, allow), (answer, 0, 0, refuse)]
    program.append((answer, 0, 0, allow))
    filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    whole = struct.pack("@HP", len(program), ctypes.addressof(filters))
    _check(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.create_string_buffer(whole), 0, 0), "seccomp")


def _look_up(user: str | int) -> tuple[int, int, str]:
    """The uid, gid and home that the sandbox's own /etc/passwd gives a name or number."""
    wanted = str(user)
    with open("/etc/passwd", encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.rstrip("\n").split(":")
            if len(fields) >= 6 and wanted in (fields[0], fields[2]):
                return int(fields[2]), int(fields[3]), fields[5]
    if wanted.isdigit():
        return int(wanted), int(wanted), "/"
    raise LookupError(f"no user {wanted!r} in the sandbox's /etc/passwd")


def _become(user: str | int, rootless: bool) -> str:
    """Take the identity of a user and return its home.

    A rootless sandbox has one uid only. Another user is then a nested namespace in which that one uid has the
    user's number, and owns everything.
    """
    uid, gid, home = _look_up(user)
    if rootless:
        if uid != 0:
            _check(_libc.unshare(CLONE_NEWUSER), "unshare")
            _map_ids(uid, 0, gid, 0)
        return home
    os.setgroups([])
    if uid != 0:
        os.setgid(gid)
        os.setuid(uid)
    return home


def _exec(request: dict[str, Any], pidfd: int, output: int) -> dict[str, Any]:
    """Run a command in the sandbox and wait for it."""
    _enter(pidfd, request["namespaces"])
    complaint_read, complaint_write = os.pipe()  # Closed by a successful exec.
    child = os.fork()
    if child == 0:
        program = ""
        try:
            os.setsid()
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.umask(0o022)
            _refuse_keys()  # Before the capability to do so is gone.
            _limit_capabilities()
            home = _become(request["user"], request["rootless"])
            os.chdir(request["cwd"])
            env = {"HOME": home, **request["env"]}
            _default_signals()
            program = request["argv"][0]
            os.execvpe(program, request["argv"], env)
        except FileNotFoundError as error:
            os.write(complaint_write, str(error).encode()[:4096])
            os._exit(127 if program else 126)
        except BaseException as error:
            os.write(complaint_write, str(error).encode()[:4096])
        finally:
            os._exit(126)
    os.close(complaint_write)
    os.close(output)
    complaint = os.read(complaint_read, 4096).decode()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"exit_code": code if code >= 0 else 128 - code, "complaint": complaint}


def _signal(request: dict[str, Any], pidfd: int) -> dict[str, Any]:
    """Kill, stop or continue everything in the sandbox but PID 1, and wait until that is so."""
    _enter(pidfd, request["namespaces"])
    deadline = time.monotonic() + 5
    # Only a process inside can signal all others at once, and it can be killed there: by the like of it, or by an
    # agent's `kill -9 -1` that never rests. The caller has a way to end that.
    for _ in range(200):
        child = os.fork()
        if child == 0:
            _signal_all(request["signal"], deadline)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return {"done": os.WEXITSTATUS(status) == 0}
    return {"done": False}


def _signal_all(number: int, deadline: float) -> NoReturn:
    started = time.monotonic()
    done = False
    try:
        while not done and time.monotonic() < deadline:
            try:
                os.kill(-1, number)  # All but PID 1 and the caller.
            except ProcessLookupError:
                done = True
                break
            # The parent of a stopped vfork waits in D and can neither stop nor run, so that counts after a while.
            still = b"TtZX" if time.monotonic() - started < 0.5 else b"TtZXD"
            done = number != signal.SIGKILL and (number != signal.SIGSTOP or _all_in_state(still))
            if not done:
                time.sleep(0.001)
    finally:
        os._exit(0 if done else 1)


def _all_in_state(states: bytes) -> bool:
    for name in os.listdir("/proc"):
        if name.isdigit() and name not in ("1", str(os.getpid())):
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state = file.read().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if state not in states:
                return False
    return True


def _unpack(request: dict[str, Any], pidfd: int, stream: int) -> dict[str, Any]:
    _enter(pidfd, request["namespaces"])
    os.umask(0)
    with os.fdopen(stream, "rb") as file, tarfile.open(fileobj=file, mode="r|") as archive:
        # The tar is our own. Set as an attribute because the keyword is unknown to Python 3.11.0 to 3.11.3.
        archive.extraction_filter = lambda member, path: member
        for member in archive:
            path = os.path.join("/", member.name)
            if member.isdir() and os.path.isdir(path):
                if request["writable"]:
                    os.chmod(path, 0o777)
                continue
            _make_way(path)
            archive.extract(member, "/", numeric_owner=True)
    return {}


def _make_way(path: str) -> None:
    """Make the directories above a path, and remove it and whatever is there in place of one of them.

    An agent may have put a FIFO where a file is to be written: opened as it is, it would never return.
    """
    above = os.path.dirname(path)
    if above != "/" and not os.path.isdir(above):
        _make_way(above)
        os.mkdir(above, 0o755)
    _remove_path(path)


def _pack(request: dict[str, Any], pidfd: int, stream: int) -> dict[str, Any]:
    _enter(pidfd, request["namespaces"])
    path = request["path"]
    # Without the path an archive of nothing: reading no archive at all is an error.
    with os.fdopen(stream, "wb") as file, tarfile.open(fileobj=file, mode="w|") as archive:
        if os.path.lexists(path):
            _add_tree(archive, path, os.path.basename(path.rstrip("/")) or "root")
    return {}


def _add_tree(archive: tarfile.TarFile, path: str, name: str) -> None:
    """Add a file or a tree however deep; what has too long a path to be opened stays behind."""
    waiting = [(path, name)]
    while waiting:
        path, name = waiting.pop()
        try:
            archive.add(path, name, recursive=False)
            below = sorted(os.listdir(path), reverse=True) if os.path.isdir(path) and not os.path.islink(path) else []
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            continue
        waiting += [(os.path.join(path, each), f"{name}/{each}") for each in below]


def _read(request: dict[str, Any], pidfd: int, output: int) -> dict[str, Any]:
    _enter(pidfd, request["namespaces"])
    try:
        fd = os.open(request["path"], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return {"missing": True}
    except OSError as error:
        return {"refused": "a symlink" if error.errno == errno.ELOOP else str(error.strerror)}
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        return {"refused": "a directory" if stat.S_ISDIR(info.st_mode) else "not a regular file"}
    if info.st_size > request["limit"]:
        return {"refused": f"{info.st_size} bytes long, over the limit of {request['limit']}"}
    with os.fdopen(fd, "rb") as file, os.fdopen(output, "wb") as target:
        target.write(file.read(request["limit"]))
    return {}


def _remove(request: dict[str, Any], pidfd: int) -> dict[str, Any]:
    _enter(pidfd, request["namespaces"])
    for path in request["paths"]:
        _remove_path(path)
    return {"left": [path for path in request["paths"] if os.path.lexists(path)]}


def _remove_path(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        _remove_tree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _remove_tree(path: str) -> None:
    """Delete a directory however deep an agent made it: shutil's recurses, and a long path has no name to be used."""
    here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    entered: list[str] = []  # Names from path down to here, and of each what is left to enter in it.
    waiting = [_remove_files(here)]
    while waiting:
        if waiting[-1]:
            entered.append(waiting[-1].pop())
            here = _move(here, entered[-1])
            waiting.append(_remove_files(here))
            continue
        waiting.pop()
        if waiting:
            here = _move(here, "..")
            os.rmdir(entered.pop(), dir_fd=here)
    os.close(here)
    os.rmdir(path)


def _remove_files(directory: int) -> list[str]:
    """Delete what is no directory and return the names of those."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if not is_directory:
            os.unlink(name, dir_fd=directory)
    return [name for name, is_directory in found if is_directory]


def _move(directory: int, name: str) -> int:
    """Open a directory by its name in another one, which is closed."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    finally:
        os.close(directory)


def _make_directories(request: dict[str, Any], pidfd: int) -> dict[str, Any]:
    """Make empty or keep existing directories; anything else of that name, a symlink too, makes way."""
    _enter(pidfd, request["namespaces"])
    for path in request["paths"]:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            part = "/" + "/".join(parts[:depth])
            if os.path.islink(part) or (os.path.lexists(part) and not os.path.isdir(part)):
                os.unlink(part)
            if not os.path.lexists(part):
                os.mkdir(part)
                os.chmod(part, 0o755)
        if request["fresh"]:
            _remove_path(path)
            os.mkdir(path)
        os.chmod(path, 0o777)
    return {}


def _host_command(request: dict[str, Any], errors: int) -> dict[str, Any]:
    """Run a command on the host's files as their root: copying or deleting a sandbox's layers."""
    own_user_namespace()
    child = os.fork()
    if child == 0:
        os.dup2(errors, 2)
        try:
            os.execvp(request["argv"][0], request["argv"])
        finally:
            os._exit(127)
    _, status = os.waitpid(child, 0)
    return {"exit_code": os.waitstatus_to_exitcode(status)}


def _default_signals() -> None:
    """Ignored signals are inherited: Python ignores some, and so may whoever started the session."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def _spawn(request: dict[str, Any], output: int, errors: int, info: int) -> None:
    """Start bubblewrap as a child of the launcher itself, whose death ends it; descriptor 3 is for ``--info-fd``."""
    launcher = os.getpid()
    child = os.fork()
    if child:
        _spawned.append((child, time.monotonic()))
    else:
        try:
            os.setsid()
            _default_signals()
            # bubblewrap asks for the same, but after a moment in which the launcher may have died unnoticed.
            _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
            if os.getppid() != launcher:
                return
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(errors, 2)
            os.dup2(info, 3)
            os.set_inheritable(3, True)
            os.execv(request["argv"][0], request["argv"])
        finally:
            os._exit(127)


_OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "exec": _exec,
    "signal": _signal,
    "unpack": _unpack,
    "pack": _pack,
    "read": _read,
    "remove": _remove,
    "make_directories": _make_directories,
    "host_command": _host_command,
}


def _work(request: dict[str, Any], reply: int, fds: list[int]) -> None:
    """Carry out one request in a forked worker."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        answer = _OPERATIONS[request["operation"]](request, *fds)
    except BaseException as error:
        answer = {"failure": f"{type(error).__name__}: {error}"}
    with os.fdopen(reply, "w") as file:
        json.dump(answer, file)


def _end_unfinished() -> None:
    """Kill the sandboxes that have only just been started, whose own processes may not follow this one's death yet."""
    for pid, started in _spawned:
        if time.monotonic() - started < _UNFINISHED:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def main(control: socket.socket) -> None:
    """Serve requests until the other end of the socket is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Workers and sandboxes are reaped by the kernel.
    control.set_inheritable(False)
    while True:
        message, fds, _, _ = socket.recv_fds(control, 2**20, 8)
        if not message:
            _end_unfinished()
            return
        for fd in fds:  # recv_fds passes no MSG_CMSG_CLOEXEC on, and a sandbox must not inherit the host's descriptors.
            os.set_inheritable(fd, False)
        if message == IN_A_FILE:
            long = fds.pop()
            message = os.pread(long, os.fstat(long).st_size, 0)
            os.close(long)
        request = json.loads(message)
        if request["operation"] == "spawn":
            _spawn(request, *fds)
        elif os.fork() == 0:
            try:
                control.close()
                _work(request, fds[0], fds[1:])
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
