"""Which limits a sandbox has passed, as noted by the launcher's watch and counted by the kernel."""

from __future__ import annotations

import os
import threading

from pytest_evocode.environments.sandbox.cgroups import Cgroup
from pytest_evocode.environments.sandbox.watch import killed_for_memory, lock, refused_processes


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
