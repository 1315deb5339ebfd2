"""The terminal of a program in a sandbox, and the lines about limits that end a command's output."""

from __future__ import annotations

import errno
import os
import termios
import threading

from pytest_evocode.environments.sandbox.cgroups import Cgroup
from pytest_evocode.environments.sandbox.processes import lock
from pytest_evocode.environments.sandbox.watch import killed_for_memory, refused_processes


class PseudoTerminal:
    """Two connected ends of a terminal, as a context that closes the outer one.

    It is a :class:`~pytest_evocode.environments.terminal.Remote`, by its outer end. The inner end is to be closed once
    a program has it, so that the outer one ends when the program does.
    """

    def __init__(self) -> None:
        self._outer, self.inner = os.openpty()
        os.set_blocking(self._outer, False)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._outer)

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
