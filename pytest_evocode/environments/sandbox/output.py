"""A command's output, from a pipe that a background process may hold open for ever or from a pseudo-terminal.

It ends with lines about the limits that were passed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import termios
import threading
import time

from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.sandbox.cgroups import Cgroup
from pytest_evocode.environments.sandbox.watch import killed_for_memory, lock, refused_processes


def collect(output: int, reply: int, into: CappedOutput, deadline: float | None) -> bool:
    """Read a command's output until the command's reply comes.

    Args:
        output: The reading end of the output's pipe.
        reply: The reading end of the reply's pipe.
        into: Takes the output.
        deadline: By ``time.monotonic``; None for no limit.

    Returns:
        Whether the reply came before the deadline.
    """
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(reply, select.POLLIN)
    os.set_blocking(output, False)
    ended = False
    # Bytes that can be in the pipe when the command ends; what a background process adds later is not its output.
    still_in_pipe = 2**20
    while True:
        # Once the command has ended, only what is already in the pipe is its output.
        wait = 0.0 if ended else (None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000)
        events = dict(poll.poll(wait))
        if not events:
            return ended
        if reply in events:
            ended = True
            poll.unregister(reply)
        if output in events:
            try:
                chunk = os.read(output, 2**18)
            except BlockingIOError:
                chunk = b""
            if chunk:
                into.add(chunk)
                still_in_pipe -= len(chunk) if ended else 0
            else:
                poll.unregister(output)
            if ended and (not chunk or still_in_pipe <= 0):
                return True


def leave_open(output: int) -> None:
    """Keep reading the output of processes that a command left running, in a thread.

    If the pipe were closed, a service would die of SIGPIPE.
    """
    os.set_blocking(output, True)
    probe = select.poll()
    probe.register(output, select.POLLIN)
    if probe.poll(0) and not os.read(output, 1):
        os.close(output)
        return

    def drain() -> None:
        with contextlib.suppress(OSError):
            while os.read(output, 2**16):
                pass
        os.close(output)

    threading.Thread(target=drain, daemon=True, name="evocode-drain").start()


class PseudoTerminal:
    """Two connected ends of a terminal, as a context that closes both.

    It is a :class:`~pytest_evocode.environments.terminal.Remote`, by its outer end.
    """

    def __init__(self) -> None:
        self._outer, self.inner = os.openpty()
        os.set_blocking(self._outer, False)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
        os.close(self._outer)

    def release(self) -> None:
        """Close the inner end in this process, so that the outer one ends when the program does."""
        inner, self.inner = self.inner, -1
        if inner >= 0:
            os.close(inner)

    def fileno(self) -> int:
        """Return the file descriptor of the outer end."""
        return self._outer

    def recv(self, size: int, /) -> bytes:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.read(self._outer, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""  # No process has the inner end open any more.

    def send(self, data: bytes, /) -> int:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.write(self._outer, data)
        except BlockingIOError:
            return 0

    def resize(self, size: os.terminal_size) -> bool:
        """Set the size of the program's terminal, and return True."""
        termios.tcsetwinsize(self._outer, (size.lines, size.columns))
        return True


class LimitNotes:
    """The limits that one sandbox has passed; ``memory`` is in bytes."""

    def __init__(self, memory: int, processes: int) -> None:
        self.fd = -1
        """The file that the launcher writes to, and that is locked while the sandbox's processes are signalled."""
        self._memory = memory
        self._processes = processes
        self._cgroup: Cgroup | None = None
        self._noted = (0, 0, 0)  # bytes of notes, processes refused, processes killed for memory
        self._lock = threading.Lock()

    def open(self, cgroup: Cgroup | None) -> None:
        """Start for a sandbox, in a cgroup that another sandbox may have been in before."""
        self.fd = os.memfd_create("notes")
        self._cgroup = cgroup
        self._noted = (0, *self._counted())

    def new_lines(self) -> str:
        """Return lines about the limits that were passed since the last call."""
        with self._lock:
            if self.fd < 0:
                return ""
            size, refused, killed = self._noted
            lines = os.pread(self.fd, 2**16, size)
            seen = self._counted()
            self._noted = (size + len(lines), *seen)
            if lines:
                os.close(lock(self.fd))  # Wait for the kill to end, or it would hit the next command.
        found = lines.decode().splitlines()
        if seen[0] > refused:
            found.append(refused_processes(self._processes))
        if seen[1] > killed:
            found.append(killed_for_memory(self._memory))
        return "".join(f"{line}\n" for line in dict.fromkeys(found))

    def _counted(self) -> tuple[int, int]:
        """Return how often the kernel has refused a process and killed one for memory."""
        cgroup = self._cgroup
        return (0, 0) if cgroup is None else (cgroup.refused_processes(), cgroup.killed_for_memory())

    def close(self) -> None:
        """Close the file of notes."""
        with self._lock:
            fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
