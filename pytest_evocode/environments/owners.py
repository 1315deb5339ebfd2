"""Who made what is left on a machine: whether that process still lives, and whether an attempt still needs it."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from os import getpid
from pathlib import Path

from pytest_evocode.results.directory import SNAPSHOT_FILE, STATE_FILE


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of one machine, told apart from later ones that get the same number."""

    host: str
    pid: int
    started: int
    """Clock ticks from the machine's start."""

    @classmethod
    def this(cls) -> Owner:
        """Return the owner that is this process."""
        return cls.of(getpid())

    @classmethod
    def of(cls, pid: int) -> Owner:
        """Return the owner that is a process of this machine; raises OSError when there is none of that number."""
        return cls(socket.gethostname(), pid, _start_time(pid))

    @classmethod
    def from_label(cls, label: str) -> Owner | None:
        """Parse what ``str(owner)`` gives; None where the text is something else."""
        host, pid, started = [*label.rsplit("/", 2), "", ""][:3]
        return cls(host, int(pid), int(started)) if pid.isdigit() and started.isdigit() else None

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.started}"

    def is_alive(self) -> bool:
        """Tell whether the process still runs; one on another machine counts as alive."""
        if self.host != socket.gethostname():
            return True
        try:
            return _start_time(self.pid) == self.started
        except OSError:
            return False


def _start_time(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def is_needed(reference: str, keep_for: Path) -> bool:
    """Tell whether the attempt that a snapshot was kept for may still be resumed from it, or verified again."""
    files = [keep_for / STATE_FILE, keep_for / SNAPSHOT_FILE, *keep_for.glob(f"steps/*/{SNAPSHOT_FILE}")]
    for file in files:
        with contextlib.suppress(OSError):
            if reference in file.read_text(encoding="utf-8"):
                return True
    return False
