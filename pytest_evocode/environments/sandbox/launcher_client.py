"""The session's side of the sandbox launchers: requests and their replies, and which launcher a sandbox gets."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from pytest_evocode.environments.sandbox import launcher
from pytest_evocode.environments.sandbox.cgroups import Cgroup, CgroupTree
from pytest_evocode.environments.sandbox.processes import is_readable
from pytest_evocode.errors import EnvironmentFault

logger = logging.getLogger(__name__)

LauncherLimits = tuple[int, int, float | None]  # processes, bytes of memory, cpus
_IDLE_LIMIT = 8  # launchers that are kept for other sandboxes
_MESSAGE = 2**17  # bytes; more than a message has
_START_TIMEOUT = 20.0  # seconds until a sandbox says it is ready; it takes 5 ms on an idle machine
# Under another name, so that the __init__ of the package is not run: it imports libraries, which take time.
_LAUNCH = (
    "import os, socket, sys, types; environments = sys.modules['environments'] = types.ModuleType('environments');"
    " environments.__path__ = [os.path.dirname(os.path.dirname(sys.argv[1]))];"
    " from environments.sandbox.launcher import main; main(socket.socket(fileno=int(sys.argv[2])))"
)
_LAUNCHER_ENV = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")


class Launcher:
    """The session's side of the launcher process, which is started on first use."""

    def __init__(
        self,
        control: socket.socket | None = None,
        cgroup: Cgroup | None = None,
        limits: LauncherLimits | None = None,
        process: int = 0,
    ) -> None:
        """Start nothing yet.

        Args:
            control: The socket of a launcher that already runs.
            cgroup: The cgroup that it has for itself.
            limits: What that is limited to.
            process: The number of the process that is in it.
        """
        self.cgroup = cgroup
        self.limits = limits
        self.process = process
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control = control

    def nest(self, cgroup: Cgroup, limits: LauncherLimits) -> Launcher:
        """Start a launcher in a cgroup, and return it; raises EnvironmentFault where it cannot be moved there."""
        control = self.begin({"operation": "nest", "cgroups": [str(path) for path in cgroup.directories]})
        try:
            answer = parse(control.recv(_MESSAGE))
        except BaseException:
            control.close()
            raise
        return Launcher(control, cgroup, limits, answer["process"])

    def _connection(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                # A worker is a process of the sandbox while it serves it, and /proc there shows its variables: so the
                # launcher gets only those of the host's environment that it needs to start.
                kept = {name: os.environ[name] for name in _LAUNCHER_ENV if name in os.environ}
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-X", "utf8", "-c", _LAUNCH, launcher.__file__, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=kept,
                    # Not in the terminal's process group: Ctrl-C is for the session, which then stops the launcher.
                    start_new_session=True,
                )
                logger.debug("started the sandbox launcher, process %d", self._process.pid)
            self._control = ours
        return self._control

    def send(self, request: Mapping[str, Any], fds: Sequence[int]) -> None:
        """Send a request, in a file because it may be too long for a message."""
        try:
            with open(os.memfd_create("request"), "w+b", buffering=0) as file:
                file.write(json.dumps(request).encode())
                file.seek(0)
                with self._lock:
                    socket.send_fds(self._connection(), [b"request"], [*fds, file.fileno()])
        except OSError as error:
            raise EnvironmentFault(f"a request cannot be sent to the sandbox launcher: {error}") from error

    def ask(self, request: Mapping[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        """Send a request and return its reply."""
        return receive(self.begin(request, fds))

    def begin(self, request: Mapping[str, Any], fds: Sequence[int] = ()) -> socket.socket:
        """Send a request and return the socket that its reply will come from."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self.send(request, [theirs.fileno(), *fds])
            except BaseException:
                ours.close()
                raise
        return ours

    def host_command(self, argv: Sequence[str]) -> bytes:
        """Run a command over sandbox files on the host, as root over them, and return what it prints."""
        with open(os.memfd_create("output"), "w+b", buffering=0) as output:
            answer = self.ask({"operation": "host_command", "argv": list(argv)}, [output.fileno()])
            output.seek(0)
            printed = output.read()
        if answer["exit_code"] != 0:
            reason = printed.decode("utf-8", "replace")[-2000:].strip()
            raise EnvironmentFault(f"{argv[0]} failed on a sandbox's files: {reason}")
        return printed

    def start_sandbox(self, argv: list[str]) -> tuple[int, int]:
        """Start bubblewrap, wait until its PID 1 runs, and return the number and a pidfd of that."""
        errors = os.memfd_create("errors")
        ready_read, ready_write = os.pipe()
        info_read, info_write = os.pipe()
        try:
            try:
                argv = [argv[0], "--info-fd", "3", *argv[1:]]
                self.send({"operation": "spawn", "argv": argv}, [ready_write, errors, info_write])
            finally:
                os.close(ready_write)
                os.close(info_write)
            if not is_readable(ready_read, _START_TIMEOUT) or os.read(ready_read, 64) != b"ready\n":
                os.lseek(errors, 0, os.SEEK_SET)
                reason = os.read(errors, 4096).decode("utf-8", "replace").strip() or "no reason given"
                raise EnvironmentFault(f"bubblewrap did not start a sandbox: {reason}")
            pid = json.loads(os.read(info_read, 4096))["child-pid"]
            return pid, os.pidfd_open(pid)
        finally:
            for fd in (errors, ready_read, info_read):
                os.close(fd)

    def close(self) -> None:
        """End the launcher, and with it every sandbox."""
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(10)
                self._process = None


def receive(reply: socket.socket, timeout: float | None = None) -> dict[str, Any]:
    """Read a reply to its end; a file descriptor that comes with it is its ``fd``.

    Args:
        reply: The socket it comes from, which is closed.
        timeout: Seconds until it has to come.

    Raises:
        EnvironmentFault: The request failed.
    """
    pieces: list[bytes] = []
    fds: list[int] = []
    with reply:
        reply.settimeout(timeout)
        try:
            while (received := socket.recv_fds(reply, _MESSAGE, 1))[0]:
                pieces.append(received[0])
                fds += received[1]
        except TimeoutError:
            raise EnvironmentFault(f"the worker for a sandbox did not reply within {timeout:.0f} s") from None
    return {**parse(b"".join(pieces)), **({"fd": fds[0]} if fds else {})}


def feed(begin: Callable[[int], socket.socket], write: Callable[[BinaryIO], object]) -> None:
    """Have a worker read what is written into a pipe, and wait for its reply.

    Args:
        begin: Sends the request with a descriptor of the pipe, and returns the socket of the reply.
        write: Writes into the pipe.

    Raises:
        EnvironmentFault: The request failed.
    """
    read, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as stream:
        try:
            reply = begin(read)
        finally:
            os.close(read)
        try:
            with contextlib.suppress(BrokenPipeError):  # The reply has the reason.
                write(stream)
                stream.flush()
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        except BaseException:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
            with contextlib.suppress(EnvironmentFault):  # It may still be at work with what it got.
                receive(reply)
            raise
    receive(reply)


def parse(text: bytes) -> dict[str, Any]:
    """Return a reply, which is empty if its worker has died; raises EnvironmentFault if the request failed."""
    answer: dict[str, Any] = json.loads(text) if text else {"failure": "the worker died without a reply"}
    if "failure" in answer:
        raise EnvironmentFault(f"the sandbox failed: {answer['failure']}")
    return answer


class LauncherPool:
    """The launchers of a session: each in a cgroup of its own, or one for all sandboxes without cgroups.

    One that was left empty is taken again by who wants the same limits: to move a process into a new cgroup takes the
    kernel 10 ms.
    """

    def __init__(self, launcher: Launcher, tree: CgroupTree | None = None) -> None:
        self._launcher = launcher
        self.tree = tree
        self._lock = threading.Lock()
        self._made = 0
        self._nested: set[Launcher] = set()
        self._idle: list[Launcher] = []

    def acquire(self, *, processes: int, memory: int, cpus: float | None) -> Launcher:
        """Return a launcher for one sandbox; the kernel enforces the limits where there are cgroups.

        Args:
            processes: How many processes and threads there may be at once.
            memory: Bytes, swap included.
            cpus: How many CPUs may be used, None for all.

        Raises:
            EnvironmentFault: A cgroup cannot be made, does not take the limits or no process.
        """
        with self._lock:
            if self.tree is None:
                return self._launcher
            limits = (processes, memory, cpus)
            for launcher in self._idle:
                if launcher.limits == limits:
                    self._idle.remove(launcher)
                    return launcher
            self._made += 1
            try:
                cgroup = self.tree.make(f"sandbox-{self._made}")
                cgroup.limit(processes=processes, memory=memory, cpus=cpus)
            except OSError as error:  # What was made is removed when this session ends.
                raise EnvironmentFault(f"no cgroup with its limits can be made for a sandbox: {error}") from error
            launcher = self._launcher.nest(cgroup, limits)
            self._nested.add(launcher)
            return launcher

    def release(self, launcher: Launcher) -> None:
        """Keep a launcher for another sandbox if it lives and nothing else is left in its cgroup, else close it."""
        if launcher.cgroup is None:
            return
        # The launcher itself may have been killed for want of memory, and the last of others be about to end.
        reusable = launcher.cgroup.has_only(launcher.process)
        with self._lock:
            if reusable and self.tree is not None and len(self._idle) < _IDLE_LIMIT:
                self._idle.append(launcher)
                return
            self._nested.discard(launcher)
        _close_nested(launcher)

    def close(self) -> None:
        """End all launchers that are in cgroups, with everything that runs there."""
        with self._lock:
            self.tree = None
            for launcher in self._nested:
                launcher.close()  # All first, because the kernel takes milliseconds for each to end.
            while self._nested:
                _close_nested(self._nested.pop())


def _close_nested(launcher: Launcher) -> None:
    """End a launcher and remove its cgroup."""
    launcher.close()
    if launcher.cgroup is not None:
        with contextlib.suppress(OSError):  # It is tried again when this session ends, and by the next one.
            launcher.cgroup.remove()
