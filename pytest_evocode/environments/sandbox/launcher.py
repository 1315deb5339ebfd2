"""The process that starts and enters sandboxes: one per session, run as a script with the standard library only.

It is a process of its own because joining a user namespace needs a single thread, because bubblewrap's
``--die-with-parent`` is tied to the thread that started it, and because it can see when the session is killed: its
socket is closed then, and it ends with every sandbox. Requests are JSON with file descriptors, the first of which is a
socket for the reply. Each is carried out by a forked worker that enters the sandbox's namespaces and sends one reply in
JSON, with a file descriptor if there is one to send. Workers read and write files by their own Python and execute
nothing of the sandbox, so an agent that replaced ``rm`` or ``tar`` changes nothing.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import json
import os
import signal
import socket
import time
import warnings  # noqa: F401 - imported by Python 3.13 when it forks, and a worker in a sandbox finds no library
from collections.abc import Callable
from typing import Any

from ..overlay import LayeredFiles, NewLayer, list_changes
from . import files, image_layers, mounts, processes
from .identity import check, enter_namespaces, hide_memory, libc, own_user_namespace
from .mounts import OPAQUE
from .processes import default_signals, lock, signal_inside
from .watch import Watch

CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_PR_SET_PDEATHSIG = 1

_MESSAGE = 2**16  # bytes; the kernel has some 200 KiB for a whole socket
_UNFINISHED = 10.0  # seconds for which a sandbox counts as just started
_spawned: collections.deque[tuple[int, float]] = collections.deque(maxlen=64)


def _signal(request: dict[str, Any], pidfd: int, notes: int) -> dict[str, Any]:
    """Kill, stop or continue everything in the sandbox but PID 1, and wait until that is done."""
    lock(notes)
    enter_namespaces(pidfd, request["namespaces"])
    return {"done": signal_inside(request["signal"])}


def _host_command(request: dict[str, Any], output: int) -> dict[str, Any]:
    """Run a command on the host's files as their root, to copy, list or delete a sandbox's layers."""
    own_user_namespace()
    streams = [(os.POSIX_SPAWN_DUP2, output, number) for number in (1, 2)]
    child = os.posix_spawnp(request["argv"][0], request["argv"], os.environ, file_actions=streams)
    _, status = os.waitpid(child, 0)
    return {"exit_code": os.waitstatus_to_exitcode(status)}


def _list_changes(request: dict[str, Any]) -> dict[str, Any]:
    """Reply with the paths at which a snapshot differs, reading layers as their root."""
    own_user_namespace()
    image, snapshot = _files_of(request)
    return {"paths": list_changes(snapshot, image, request["outside"])}


def _files_of(request: dict[str, Any]) -> tuple[LayeredFiles, LayeredFiles]:
    """Return the files of the image and of the snapshot of a request."""
    return LayeredFiles(request["image"], OPAQUE), LayeredFiles(request["snapshot"], OPAQUE)


def _carry_over(request: dict[str, Any]) -> dict[str, Any]:
    """Carry paths of a snapshot over into an empty layer below the top, as the root of the layers' files."""
    own_user_namespace()
    image, snapshot = _files_of(request)
    NewLayer(snapshot, image, request["layer"]).carry(request["only"], request["exact"])
    return {}


def _remove_tree(request: dict[str, Any]) -> dict[str, Any]:
    """Delete directories of the host with sandboxes' files, as their root."""
    own_user_namespace()
    failure = None
    for path in request["paths"]:
        try:
            files.remove_path(path)
        except OSError as error:  # Of the others nothing is to stay.
            failure = error
    if failure is not None:
        raise failure
    return {}


def _spawn(request: dict[str, Any], output: int, errors: int, info: int) -> None:
    """Start bubblewrap as a child of the launcher, whose death ends it; descriptor 3 is for ``--info-fd``."""
    launcher = os.getpid()
    child = os.fork()
    if child:
        _spawned.append((child, time.monotonic()))
    else:
        try:
            os.setsid()
            default_signals()
            mounts.own_devices()
            # bubblewrap does the same, but only after the launcher may have died unnoticed.
            check(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
            if os.getppid() != launcher:
                return
            os.dup2(os.pipe()[0], 0)  # By /dev/null here the sandbox would have the host's.
            os.dup2(output, 1)
            os.dup2(errors, 2)
            os.dup2(info, 3)
            os.set_inheritable(3, True)
            os.execv(request["argv"][0], request["argv"])
        except OSError as error:
            os.write(errors, str(error).encode())
        finally:
            os._exit(127)


def _nest(request: dict[str, Any], session: socket.socket) -> None:
    """Become the launcher of one sandbox, in cgroups of its own, and serve whoever has asked for it.

    A process is moved into a cgroup once per sandbox and not once per command, because that takes the kernel
    milliseconds.
    """
    try:
        for directory in request["cgroups"]:
            with open(f"{directory}/cgroup.procs", "w") as file:
                file.write("0")
    except OSError as error:
        session.send(json.dumps({"failure": str(error)}).encode())
        return
    # The process that uses up the memory is to be killed, and not the launcher that waits for it.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj") as file:
        score = int(file.read())
        processes.set_oom_score(-1000)
        processes.oom_score = score
    session.send(json.dumps({"process": os.getpid()}).encode())
    main(session)


#: Begun in the namespaces of the sandbox.
_OPERATIONS_INSIDE: dict[str, Callable[..., dict[str, Any]]] = {
    "connect": processes.connect,
    "listen": processes.listen,
    "unpack": files.unpack_from_pipe,
    "pack": files.pack_into_pipe,
    "read": files.read_files,
    "remove": files.remove_paths,
    "write": files.write_files,
    "status": files.file_status,
    "list": files.list_directory,
    "make_directories": files.make_directories,
}
_OPERATIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "sweep": processes.sweep,
    "cover": mounts.cover_what_is_shared,
    "signal": _signal,
    "host_command": _host_command,
    "list_changes": _list_changes,
    "remove_tree": _remove_tree,
    "carry_over": _carry_over,
    "apply_layer": image_layers.apply_layer,
    "part_usr": image_layers.part_usr,
    "rewrite_whiteouts": image_layers.rewrite_whiteouts,
    "pack_from_layers": image_layers.pack_from_layers,
}


def _work(request: dict[str, Any], session: socket.socket, fds: list[int]) -> None:
    """Carry out one request, in a forked worker."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        if inside := _OPERATIONS_INSIDE.get(request["operation"]):
            pidfd, *fds = fds
            enter_namespaces(pidfd, request["namespaces"])
            answer = inside(request, *fds)
        elif request["operation"] == "program":
            answer = processes.run_program(request, session, *fds)
        else:
            answer = _OPERATIONS[request["operation"]](request, *fds)
    except BaseException as error:
        answer = {"failure": f"{type(error).__name__}: {error}"}
    passed = [answer.pop("fd")] if "fd" in answer else []
    text = json.dumps(answer).encode()
    for start in range(0, len(text), _MESSAGE):
        socket.send_fds(session, [text[start : start + _MESSAGE]], passed if start == 0 else [])


def _fork(request: dict[str, Any], fds: list[int]) -> int:
    """Fork a worker; where there is no room for a process, what it was to run cannot be started."""
    try:
        return os.fork()
    except OSError as error:
        refused = {"exit_code": 126, "complaint": processes.no_process(error), "left": True}
        if request["operation"] != "program":
            refused = {"failure": processes.no_process(error)}
        os.write(fds[0], json.dumps(refused).encode())
        return -1


def _end_unfinished() -> None:
    """Kill the sandboxes that were only just started, whose own processes may not follow this one's death yet."""
    for pid, started in _spawned:
        if time.monotonic() - started < _UNFINISHED:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def main(control: socket.socket) -> None:
    """Serve requests until the other end of the socket is closed."""
    hide_memory()
    gc.disable()  # It would write to all pages of memory that workers share.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Workers and sandboxes are reaped by the kernel.
    control.set_inheritable(False)
    mounts.hold_devices()
    watch = Watch()
    while True:
        watch.wait(control.fileno())
        message, fds, _, _ = socket.recv_fds(control, 1, 8)
        if not message:
            _end_unfinished()
            return
        for fd in fds:  # recv_fds passes no MSG_CMSG_CLOEXEC on, and a sandbox must not inherit the host's descriptors.
            os.set_inheritable(fd, False)
        with open(fds.pop(), "rb") as file:
            request = json.load(file)
        if request["operation"] == "spawn":
            _spawn(request, *fds)
        elif request["operation"] == "watch":
            watch.add(request, *fds)
        elif _fork(request, fds) == 0:
            try:
                control.close()
                session = socket.socket(fileno=fds[0])
                if request["operation"] == "nest":
                    _nest(request, session)
                else:
                    _work(request, session, fds[1:])
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)
