"""Who made what is left on a machine: whether that process still lives, and whether an attempt still needs it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evocode.results.directory import SNAPSHOT_FILE, STATE_FILE

logger = logging.getLogger(__name__)


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
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Owner:
        """Return the owner that is a process of this machine; raises OSError when there is none of that number."""
        return cls(socket.gethostname(), pid, _start_time(pid))

    @classmethod
    def from_label(cls, label: str) -> Owner | None:
        """Parse what ``str(owner)`` gives; None where the text is something else."""
        host, pid, started = [*label.rsplit("/", 2), "", ""][:3]
        numbers = pid + started
        both = pid and started and numbers.isascii() and numbers.isdigit()
        return cls(host, int(pid), int(started)) if both else None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Owner:
        """Return the owner that a record tells beside other things; raises KeyError where it tells none."""
        return cls(record["host"], record["pid"], record["started"])

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.started}"

    def is_alive(self) -> bool:
        """Tell whether the process still runs; one on another machine, or that cannot be looked at, counts as alive."""
        if self.host != socket.gethostname():
            return True
        try:
            return _start_time(self.pid) == self.started
        except OSError:
            # Some machines hide the processes of other users; a signal of none says that there is one.
            return _is_hidden(self.pid)


def _is_hidden(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False  # Our own, so it was looked at: it has just ended.


def _start_time(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def is_needed(reference: str, keep_for: Path) -> bool:
    """Tell whether the attempt that a snapshot was kept for may still be resumed from it, or verified again.

    So may one whose files cannot be read, such as another user's: whoever may read them has to remove its snapshots.
    """
    try:
        steps = [keep_for / "steps" / name for name in _names_in(keep_for / "steps")]
        files = [keep_for / STATE_FILE, keep_for / SNAPSHOT_FILE, *(step / SNAPSHOT_FILE for step in steps)]
        return any(reference in _text_of(file) for file in files)
    except OSError as error:
        logger.info("a snapshot for %s is left alone: %s", keep_for, error.strerror)
        return True


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
