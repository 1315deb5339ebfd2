"""Cgroups for sandboxes, below the cgroup of this process, so that sandboxes keep to every limit set on it."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

_EMPTYING = 1.0  # seconds for killed processes to leave a cgroup
_PERIOD = 100_000  # microseconds in which a CPU quota is counted
_CONTROLLERS = ("pids", "memory", "cpu")


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One cgroup: a directory in version 2, a directory per hierarchy in version 1."""

    directories: tuple[Path, ...]

    def limit(self, *, processes: int | None = None, memory: int | None = None, cpus: float | None = None) -> None:
        """Set limits.

        Args:
            processes: How many processes and threads there may be.
            memory: Bytes, swap included.
            cpus: How many CPUs may be used; without effect where :attr:`has_cpu` is false.

        Raises:
            OSError: The kernel does not take one.
        """
        if processes is not None:
            self._write(str(processes), "pids.max")
        if memory is not None:
            self._write(str(memory), "memory.max", "memory.limit_in_bytes")
            for name, value in (("memory.memsw.limit_in_bytes", memory), ("memory.swap.max", 0)):
                with contextlib.suppress(OSError):  # A kernel that does not count swap.
                    self._write(str(value), name)
        if cpus is not None and self.has_cpu:
            quota = max(1000, int(cpus * _PERIOD))
            if self._find("cpu.max"):
                self._write(f"{quota} {_PERIOD}", "cpu.max")
            else:
                self._write(str(_PERIOD), "cpu.cfs_period_us")
                self._write(str(quota), "cpu.cfs_quota_us")

    @property
    def has_cpu(self) -> bool:
        """Whether the use of CPUs can be limited."""
        return self._find("cpu.max", "cpu.cfs_quota_us") is not None

    @property
    def complete(self) -> bool:
        """Whether processes and memory can be limited."""
        return self._find("pids.max") is not None and self._find("memory.max", "memory.limit_in_bytes") is not None

    def refused_processes(self) -> int:
        """Return how often a process or thread was not started because of the limit."""
        return self._count("max", "pids.events")

    def killed_for_memory(self) -> int:
        """Return how many processes were killed because of the limit."""
        return self._count("oom_kill", "memory.events", "memory.oom_control")

    def remove(self) -> None:
        """Remove the directories once the killed processes have left them.

        Raises:
            OSError: They do not leave in time.
        """
        deadline = time.monotonic() + _EMPTYING
        for directory in self.directories:
            while True:
                try:
                    with contextlib.suppress(FileNotFoundError):
                        os.rmdir(directory)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.001)

    def has_only(self, process: int) -> bool:
        """Tell whether there is only this process left, or will be when those that are ending have ended."""
        for _ in range(20):
            if all(_read(directory / "cgroup.procs").split() == [str(process)] for directory in self.directories):
                return True
            time.sleep(0.001)
        return False

    def _find(self, *names: str) -> Path | None:
        return next((d / name for name in names for d in self.directories if (d / name).exists()), None)

    def _write(self, value: str, *names: str) -> None:
        path = self._find(*names)
        if path is None:
            raise FileNotFoundError(f"no cgroup has {names[0]}")
        path.write_text(value)

    def _count(self, key: str, *names: str) -> int:
        path = self._find(*names)
        with contextlib.suppress(OSError):
            for line in path.read_text().splitlines() if path else ():
                word, _, value = line.partition(" ")
                if word == key:
                    return int(value)
        return 0


class CgroupTree:
    """The cgroup of one session, with one below it for each sandbox.

    Its directories are listed in a file that outlives a killed session, for the next one to remove them.
    """

    def __init__(self, name: str, record: Path, memory: int) -> None:
        """Make the session's cgroup.

        Args:
            name: Its name.
            record: The file that lists its directories.
            memory: Bytes for all sandboxes together.

        Raises:
            OSError: This process may not make cgroups.
        """
        parents = find_parents()
        if not parents:
            raise FileNotFoundError("there is no hierarchy of cgroups")
        self._top = Cgroup(tuple(parent / f"evocode-{name}" for parent in parents))
        record.write_text("".join(f"{directory}\n" for directory in self._top.directories))
        try:
            for directory in self._top.directories:
                directory.mkdir()
                _enable(directory)
            self._top.limit(memory=memory)
        except OSError:
            self.remove()
            raise

    @property
    def has_cpu(self) -> bool:
        """Whether the use of CPUs can be limited."""
        return self._top.has_cpu

    def make(self, name: str) -> Cgroup:
        """Make a cgroup for a sandbox."""
        made = Cgroup(tuple(directory / name for directory in self._top.directories))
        for directory in made.directories:
            directory.mkdir()
        if not made.complete:
            made.remove()
            raise FileNotFoundError("cgroups here do not limit both processes and memory")
        return made

    def remove(self) -> bool:
        """Remove all of it; return False when some is not empty yet, and is left for the next session."""
        return remove_trees(self._top.directories)


def remove_recorded(record: Path) -> bool:
    """Remove the cgroups that a dead session listed; return False when some are not empty yet."""
    try:
        return remove_trees(tuple(Path(line) for line in record.read_text().splitlines()))
    except OSError:
        return not record.exists()


def remove_trees(directories: tuple[Path, ...]) -> bool:
    """Remove cgroups with those below them; return False when something is left."""
    gone = True
    for directory in directories:
        try:
            below = tuple(path for path in directory.iterdir() if path.is_dir())
            Cgroup((*below, directory)).remove()
        except FileNotFoundError:
            pass
        except OSError:
            gone = False
    return gone


def find_parents(proc: Path = Path("/proc/self")) -> tuple[Path, ...]:
    """Return the directories below which this process may make cgroups; empty where it may not."""
    first, second = _own(proc)
    if {"pids", "memory"} <= first.keys():
        return tuple(dict.fromkeys(path[0] for path in first.values() if os.access(path[0], os.W_OK)))
    # In version 2 a cgroup has either processes or cgroups below it, so this is usually one above our own.
    for directory in second:
        if os.access(directory, os.W_OK) and os.access(directory / "cgroup.procs", os.W_OK):
            _enable(directory)
            if {"pids", "memory"} <= set(_read(directory / "cgroup.subtree_control").split()):
                return (directory,)
    return ()


def memory_limits(proc: Path = Path("/proc/self")) -> list[int]:
    """Return the limits in bytes that hold for this process."""
    first, second = _own(proc)
    files = [path / "memory.limit_in_bytes" for path in first.get("memory", ())]
    files += [path / "memory.max" for path in second]
    return [int(text) for text in map(_read, files) if text.strip().isdigit()]


def _own(proc: Path) -> tuple[dict[str, list[Path]], list[Path]]:
    """Return the directories of a process's cgroup and those above it: by controller in version 1, and in version 2."""
    own: dict[str, str] = {}
    for line in _read(proc / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    first: dict[str, list[Path]] = {}
    second: list[Path] = []
    for line in _read(proc / "mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        root, mounted = left.split()[3:5]
        kind, _, options = right.split()[:3]
        if kind == "cgroup2" and "" in own:
            second = _upwards(root, mounted, own[""])
        elif kind == "cgroup":
            for controller in set(options.split(",")) & set(_CONTROLLERS) & own.keys():
                first[controller] = _upwards(root, mounted, own[controller])
    return first, second


def _upwards(root: str, mounted: str, own: str) -> list[Path]:
    """Return the directory of a cgroup below a mount that shows the hierarchy from ``root`` on, and those above it."""
    inside = os.path.relpath(own, root) if own.startswith(root) else "."
    directory = Path(os.path.normpath(os.path.join(mounted, inside)))
    return [directory, *(path for path in directory.parents if path == Path(mounted) or Path(mounted) in path.parents)]


def _enable(directory: Path) -> None:
    """Enable the controllers for the cgroups below a cgroup of version 2."""
    control = directory / "cgroup.subtree_control"
    if control.exists():
        for controller in _CONTROLLERS:
            with contextlib.suppress(OSError):
                control.write_text(f"+{controller}")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
