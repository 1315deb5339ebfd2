"""What attacks could change of the machine: devices, locks, mounts, processes and containers.

The machine is shared with others, so that of mounts, locks and processes only those count that are ours: they name a
directory of the tests.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.engine import OWNER
from pytest_evocode.environments.owners import Owner

if TYPE_CHECKING:
    from docker import APIClient

_ENDING = 60.0  # seconds for what ends by itself on a busy machine
_OF_EVERYBODY = {"/dev/shm", "/dev/pts", "/dev/mqueue", "/dev/hugepages"}


@dataclass(frozen=True)
class HostState:
    """The state of the machine at a moment, each part as lines."""

    devices: frozenset[str]
    """Mode, owner and times of all nodes; those of terminals, to which anybody writes, without times."""
    locks: frozenset[str]
    mounts: frozenset[str]
    processes: frozenset[str]
    containers: frozenset[str]

    @classmethod
    def of(cls, directories: Sequence[Path], client: APIClient | None) -> HostState:
        """Look, with the directories of the tests, and the engine if there is one."""
        ours = dict(_processes([os.fsencode(path) for path in directories]))
        locks = [line.split()[1:] for line in Path("/proc/locks").read_text().splitlines()]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        label = {"label": f"{OWNER}={Owner.this()}"}
        return cls(
            frozenset(_devices(Path("/dev"))),
            frozenset(" ".join(words) for words in locks if words[-4] in ours),
            frozenset(line for line in mounts if any(str(path) in line for path in directories)),
            frozenset(f"{pid} {line}" for pid, line in ours.items()),
            frozenset(each["Id"] for each in client.containers(all=True, filters=label)) if client else frozenset(),
        )

    def gained(self, before: HostState) -> dict[str, list[str]]:
        """Return what is not as it was: devices that differ in any way, and of all else what was not there."""
        found = {each.name: sorted(getattr(self, each.name) - getattr(before, each.name)) for each in fields(self)}
        found["devices"] += sorted(before.devices - self.devices)
        return {name: lines for name, lines in found.items() if lines}


@contextlib.contextmanager
def unchanged_host(directories: Sequence[Path], client: APIClient | None) -> Iterator[None]:
    """Assert that the machine is as it was, when what ends by itself has ended."""
    before = HostState.of(directories, client)
    yield
    deadline = time.monotonic() + _ENDING
    while gained := HostState.of(directories, client).gained(before):
        assert time.monotonic() < deadline, gained
        time.sleep(0.1)


def _devices(directory: Path) -> Iterator[str]:
    for path in sorted(directory.iterdir()):
        if str(path) in _OF_EVERYBODY:
            continue
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            times = () if _is_terminal(path) or path.is_dir() else (status.st_mtime_ns, status.st_ctime_ns)
            yield f"{path} {status.st_mode:o} {status.st_uid} {status.st_gid} {status.st_rdev} {times}"
            if stat.S_ISDIR(status.st_mode):
                yield from _devices(path)


def _is_terminal(path: Path) -> bool:
    return path.name.startswith(("tty", "console", "ptmx", "vcs"))


def _processes(directories: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """Yield the processes that have to do with the directories, with their lines, but those that this one runs in."""
    above = {"self", "thread-self"}
    pid = os.getpid()
    while pid:
        above.add(str(pid))
        pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name not in above:
            with contextlib.suppress(OSError):
                said = b"".join((process / name).read_bytes() for name in ("cmdline", "environ", "mountinfo"))
                if any(directory in said for directory in directories):
                    line = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                    yield process.name, line.decode("utf-8", "replace")


def processes_of(directory: Path) -> list[str]:
    """Return the command lines of the processes that have to do with a directory, but those that this one runs in."""
    return [line for _, line in _processes([os.fsencode(directory)])]
