"""The session's side of the sandbox launcher: starting it, requests to it and their replies."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pytest_evocode.environments.sandbox import launcher
from pytest_evocode.errors import EnvironmentFault

logger = logging.getLogger(__name__)

_START_TIMEOUT = 20.0  # seconds until a sandbox says it is ready; it takes 5 ms on an idle machine
_DATAGRAM_LIMIT = 2**16  # bytes; the kernel's default for the whole socket is some 200 KiB
# Under another name, so that the __init__ of the package is not run: it imports libraries, which take time.
_LAUNCH = (
    "import os, socket, sys, types; environments = sys.modules['environments'] = types.ModuleType('environments');"
    " environments.__path__ = [os.path.dirname(os.path.dirname(sys.argv[1]))];"
    " from environments.sandbox.launcher import main; main(socket.socket(fileno=int(sys.argv[2])))"
)
_LAUNCHER_ENV = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")


class Launcher:
    """The session's side of the launcher process, which is started on first use."""

    def __init__(self, control: socket.socket | None = None) -> None:
        """Start nothing yet; ``control`` is the socket of a launcher that already runs."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control = control

    @property
    def closed(self) -> bool:
        """Whether the launcher has ended or was not started yet."""
        return self._control is None

    def nest(self, cgroups: Sequence[Path]) -> tuple[Launcher, int]:
        """Start a launcher in cgroups, and return it with the descriptor that its reply comes from."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            reply = self.begin({"operation": "nest", "cgroups": [str(path) for path in cgroups]}, [theirs.fileno()])
        return Launcher(ours), reply

    def _connection(self) -> socket.socket:
        if self._control is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                # A worker is a process of the sandbox while it serves it, and /proc there shows its variables: so the
                # launcher gets only those of the host's environment that it needs to start.
                kept = {name: os.environ[name] for name in _LAUNCHER_ENV if name in os.environ}
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _LAUNCH, launcher.__file__, str(theirs.fileno())],
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
        """Send a request, in a file where it is too long for a datagram."""
        message = json.dumps(request).encode()
        try:
            with contextlib.ExitStack() as stack:
                if len(message) > _DATAGRAM_LIMIT:
                    file = stack.enter_context(open(os.memfd_create("request"), "w+b", buffering=0))
                    file.write(message)
                    message, fds = launcher.IN_A_FILE, [*fds, file.fileno()]
                with self._lock:
                    socket.send_fds(self._connection(), [message], list(fds))
        except OSError as error:
            raise EnvironmentFault(f"a request cannot be sent to the sandbox launcher: {error}") from error

    def ask(self, request: Mapping[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        """Send a request and return its reply."""
        return receive(self.begin(request, fds))

    def begin(self, request: Mapping[str, Any], fds: Sequence[int] = ()) -> int:
        """Send a request and return the file descriptor that its reply will come from."""
        read, write = os.pipe()
        try:
            self.send(request, [write, *fds])
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        return read

    def host_command(self, argv: Sequence[str]) -> bytes:
        """Run a command over sandbox files on the host, as root over them, and return what it prints."""
        with (
            open(os.memfd_create("output"), "w+b", buffering=0) as output,
            open(os.memfd_create("errors"), "w+b", buffering=0) as errors,
        ):
            request = {"operation": "host_command", "argv": list(argv)}
            answer = self.ask(request, [output.fileno(), errors.fileno()])
            check_host_command(argv, answer["exit_code"], errors)
            output.seek(0)
            return output.read()

    def start_sandbox(self, argv: list[str]) -> tuple[int, int]:
        """Start bubblewrap, wait until its PID 1 runs, and return the number and a pidfd of that."""
        errors = os.memfd_create("errors")
        ready_read, ready_write = os.pipe()
        info_read, info_write = os.pipe()
        try:
            self.send(
                {"operation": "spawn", "argv": [argv[0], "--info-fd", "3", *argv[1:]]},
                [ready_write, errors, info_write],
            )
            os.close(ready_write)
            os.close(info_write)
            ready_write = info_write = -1
            if _read_line(ready_read, _START_TIMEOUT) != b"ready\n":
                os.lseek(errors, 0, os.SEEK_SET)
                reason = os.read(errors, 4096).decode("utf-8", "replace").strip() or "no reason given"
                raise EnvironmentFault(f"bubblewrap did not start a sandbox: {reason}")
            pid = json.loads(os.read(info_read, 4096))["child-pid"]
            return pid, os.pidfd_open(pid)
        finally:
            for fd in (errors, ready_read, ready_write, info_read, info_write):
                if fd >= 0:
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


def check_host_command(argv: Sequence[str], exit_code: int, errors: BinaryIO) -> None:
    """Raise :class:`EnvironmentFault` with the error output of a command if it failed."""
    if exit_code != 0:
        errors.seek(0)
        reason = errors.read().decode("utf-8", "replace")[-2000:].strip()
        raise EnvironmentFault(f"{argv[0]} failed on a sandbox's files: {reason}")


def receive(reply: int) -> dict[str, Any]:
    """Read a reply to its end.

    Raises:
        EnvironmentFault: The request failed.
    """
    with os.fdopen(reply, "rb") as file:
        text = file.read()
    if not text:
        raise EnvironmentFault("the worker for a sandbox died without a reply")
    answer: dict[str, Any] = json.loads(text)
    if "failure" in answer:
        raise EnvironmentFault(f"the sandbox failed: {answer['failure']}")
    return answer


def _read_line(fd: int, timeout: float) -> bytes:
    """Read to the first newline, the end or the timeout in seconds."""
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLHUP)
    line = b""
    while not line.endswith(b"\n") and poll.poll(timeout * 1000):
        chunk = os.read(fd, 64)
        if not chunk:
            break
        line += chunk
    return line
