"""What the launcher's workers do to run programs in a sandbox and to be rid of what these leave running.

Every program has a UTS namespace of its own, a copy of the sandbox's that nobody inside can
change or enter. All that a program starts is in it, daemons too that have left its session and lost their parent: so
the number of that namespace, its *mark*, tells whose a process is. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import signal
import socket
import termios
import time
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from .identity import (
    CLONE_NEWUTS,
    become,
    become_rootless,
    check,
    enter_namespaces,
    libc,
    limit_capabilities,
    look_up,
    pretend_owners,
    refuse_calls,
)

_ONE_BY_ONE = 0.3  # seconds in which all processes to be killed are gone unless they start others
_SWEEPING = 10.0  # seconds for thousands of stopped processes to be gone

# The launcher ignores SIGCHLD later on.
_IGNORED = {number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN}
_IGNORED.add(signal.SIGCHLD)

oom_score: int | None = None
"""That of the programs of a nested launcher, which itself is protected."""


def set_oom_score(score: int) -> None:
    """Tell the kernel's OOM killer how much it may like this process."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(score))


def default_signals() -> None:
    """Reset ignored signals, which are inherited: Python ignores some, and the session's parent may have."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)


def lock(notes: int) -> int:
    """Wait until nobody else signals a sandbox's processes, and lock that out until the returned descriptor is closed.

    Two kills at once would be about each other, and one that still goes on would hit the next command. The lock is that
    of the kernel on a file in memory, and not one of ``filelock``, because the launcher has the standard library only.
    """
    # Opened anew, because descriptors of one open file share its lock.
    own = os.open(f"/proc/self/fd/{notes}", os.O_RDWR)
    fcntl.flock(own, fcntl.LOCK_EX)
    return own


def is_readable(descriptor: int, seconds: float = 0.0) -> bool:
    """Wait so long at most until a descriptor has something to read, or the process of one has ended.

    Sessions with a hundred attempts at once have descriptors above 1,023, which ``select.select`` refuses.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _start(request: dict[str, Any], process: int, streams: Sequence[int]) -> tuple[int, str]:
    """Start a program, and return its process and why it could not become the program, empty if it did.

    The process is 0 where there can be none.

    Args:
        request: The fields of a command.
        process: The directory of this process in the host's /proc.
        streams: Its stdin, stdout and stderr; -1 for an empty stdin.
    """
    complaint_read, complaint_write = os.pipe()  # Closed by a successful exec.
    try:
        uid, gid, home = look_up(request["user"])
        if request["processes"] is not None:
            # Since Linux 5.14 the kernel counts by user namespace, nested ones included; older ones count all processes
            # of the user, which is too strict. The limit does not apply to the host's root.
            resource.setrlimit(resource.RLIMIT_NPROC, (request["processes"],) * 2)
        if request["rootless"]:
            become_rootless(process, uid, gid)
        child = os.fork()
    except LookupError as error:
        return 0, str(error)
    except OSError as error:
        return 0, no_process(error)
    if child == 0:
        _become_program(request, (uid, gid, home), streams, complaint_write)
    os.close(complaint_write)
    for stream in {*streams} - {-1}:
        os.close(stream)
    complaint = os.read(complaint_read, 4096).decode("utf-8", "replace")
    os.close(complaint_read)
    return child, complaint


def _become_program(
    request: dict[str, Any], user: tuple[int, int, str], streams: Sequence[int], complaint: int
) -> NoReturn:
    uid, gid, home = user
    program = ""
    try:
        os.setsid()
        # Nobody inside can have the launcher's descriptors, even if looking into this process were possible.
        for number, stream in enumerate(streams):
            os.dup2(stream if stream >= 0 else os.open("/dev/null", os.O_RDONLY), number)
        os.closerange(3, complaint)
        os.closerange(complaint + 1, 1024)
        if request["terminal"]:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.umask(0o022)
        refuse_calls()  # It takes a capability that the next call gives up.
        if request["pretends_owners"]:
            pretend_owners()
        limit_capabilities()
        if oom_score is not None:
            set_oom_score(oom_score)
        if not request["rootless"]:
            become(uid, gid)
        os.chdir(request["cwd"])
        env = {"HOME": home, **request["env"]}
        default_signals()
        program = request["argv"][0]
        os.execvpe(program, request["argv"], env)
    except BaseException as error:
        os.write(complaint, str(error).encode("utf-8", "replace")[:4096])
        os._exit(127 if program and isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)


def no_process(error: OSError) -> str:
    """Return why a program cannot be started where no worker can be forked."""
    return f"no process can be started: {error}"


def _exit_code(child: int) -> int:
    """Return the exit code of a program's process that has ended, 128 + n for signal n."""
    if child == 0:
        return 126
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid == 0:  # Another program traces it and takes no notice of its end, which nobody else is told before.
        return 128 + signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def run_program(request: dict[str, Any], session: socket.socket, pidfd: int, *fds: int) -> dict[str, Any]:
    """Run a program, and pass on the signals that the session sends.

    Before anything is started the session is sent a descriptor of the program's UTS namespace. The request says of each
    stream which of the descriptors it is, -1 for none.
    """
    process = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)  # In the host's /proc: this one has none inside.
    enter_namespaces(pidfd, request["namespaces"])
    check(libc.unshare(CLONE_NEWUTS), "unshare")
    mark = os.open("ns/uts", os.O_RDONLY, dir_fd=process)
    socket.send_fds(session, [b"mark"], [mark])
    os.close(mark)
    child, complaint = _start(
        request, process, [number if number < 0 else fds[number] for number in request["streams"]]
    )
    if child:
        _pass_signals(session, child)
    code = _exit_code(child)
    left = request["marks"] is not None and _others(set(request["marks"]), 0)
    return {"exit_code": code, "complaint": complaint, "left": left}


def _pass_signals(session: socket.socket, child: int) -> None:
    """Send signals to a program's process group until it has ended."""
    pidfd = os.pidfd_open(child)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(session, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if pidfd in ready:
            os.close(pidfd)
            return
        message = session.recv(64)
        if not message:  # The session is gone, and the sandbox will be.
            os._exit(0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, int(message))


def signal_inside(number: int, *, wait: bool = True) -> bool:
    """Signal everything in the sandbox but PID 1, from a process inside, and tell whether that was done.

    With ``wait`` that is only when all is killed or stopped.
    """
    deadline = time.monotonic() + 5
    # Only a process inside can signal all others at once. There it can itself be killed or stopped, by another worker
    # or by an agent that runs `kill -9 -1` in a loop; after 200 attempts the caller kills PID 1 instead.
    for _ in range(200):
        child = os.fork()
        if child == 0:
            _signal_all(number, deadline if wait else 0)
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        elif not os.WIFSIGNALED(status):
            return os.WEXITSTATUS(status) == 0
    return False


def _signal_all(number: int, deadline: float) -> NoReturn:
    started = time.monotonic()
    done = False
    try:
        while not done:
            try:
                os.kill(-1, number)  # All but PID 1 and the caller.
            except ProcessLookupError:
                done = True
                break
            if time.monotonic() > deadline:
                done = deadline == 0
                break
            # The parent of a stopped vfork stays in state D and cannot be stopped; after 0.5 s that counts as stopped.
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


def sweep(request: dict[str, Any], pidfd: int, notes: int) -> dict[str, Any]:
    """Kill everything in the sandbox but PID 1 and what has one of the marks or descends from such a process."""
    lock(notes)
    enter_namespaces(pidfd, request["namespaces"])
    marks = set(request["marks"])
    if _kill_others(marks, _ONE_BY_ONE):
        return {"done": True}
    # What starts processes faster than they are killed one by one: all are stopped meanwhile, those to be spared too.
    stopped = signal_inside(signal.SIGSTOP, wait=False)
    done = stopped and _kill_others(marks, _SWEEPING)
    return {"done": signal_inside(signal.SIGCONT, wait=False) and done}


def _kill_others(marks: Collection[int], seconds: float) -> bool:
    """Kill what has none of the marks, and tell whether it was gone in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _others(marks, signal.SIGKILL):
            return True
        time.sleep(0.0005)
    return False


def _others(marks: Collection[int], number: int) -> bool:
    """Signal what has none of the marks, and tell whether there was something; then once more.

    The kernel lists processes by rising numbers, which begin again at the lowest one: what is about to be listed may
    have been replaced by its child just then.
    """
    return _signal_others(marks, number) or _signal_others(marks, number)


def _signal_others(marks: Collection[int], number: int) -> bool:
    found: dict[int, tuple[int, int]] = {}
    spared: set[int] = set()
    try:
        for name in os.listdir("/proc"):
            if not name.isdigit() or name == "1":
                continue
            with contextlib.suppress(OSError):  # It has just ended.
                process = os.open(f"/proc/{name}", os.O_RDONLY | os.O_DIRECTORY)
                parent = _parent(process)
                if parent is None:
                    os.close(process)
                    continue
                found[int(name)] = (process, parent)
                if marks and os.stat("ns/uts", dir_fd=process).st_ino in marks:
                    spared.add(int(name))
        grown = bool(spared)
        while grown:
            below = {pid for pid, (_, parent) in found.items() if parent in spared} - spared
            spared |= below
            grown = bool(below)
        for pid in found.keys() - spared:
            # The directory stands for that one process, whatever gets its number; and this process, which is outside,
            # has no number for it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(found[pid][0], number)
        return found.keys() > spared
    finally:
        for process, _ in found.values():
            os.close(process)


def _parent(process: int) -> int | None:
    """Return the parent of a process given by its directory in /proc; None when all of its threads have ended."""
    stat = os.open("stat", os.O_RDONLY, dir_fd=process)
    try:
        fields = os.read(stat, 4096).rpartition(b")")[2].split()
    finally:
        os.close(stat)
    return None if fields[0] in b"ZX" and int(fields[17]) <= 1 else int(fields[1])


def connect(request: dict[str, Any]) -> dict[str, Any]:
    """Connect to a port of the loopback, and reply with the socket."""
    deadline = time.monotonic() + request["seconds"]
    refused = {"refused": "nobody listens"}
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                connection.connect((address, request["port"]))
                connection.settimeout(None)
                return {"fd": connection.detach()}
        except TimeoutError:
            return {"refused": "timeout"}
        except OSError as error:
            refused = {"refused": str(error)} if family == socket.AF_INET else refused
    return refused


def listen(request: dict[str, Any]) -> dict[str, Any]:
    """Reply with a socket that listens at a port of the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", request["port"]))
        listener.listen(128)
        listener.setblocking(False)
        return {"fd": listener.detach()}
