"""Limits of sandboxes that no kernel enforces, watched by the launcher.

Where there is no cgroup, processes and threads, resident memory and files in memory are counted a few times a second,
and a sandbox above its limit loses every process. Between two counts it may use whatever it can get in a quarter of a
second. What the kernel itself holds for its processes (page tables, pipes, sockets) and their CPU time are not counted.

Everywhere the file system that holds the sandboxes' files is watched, because no kernel keeps one directory from
filling it. Below the floor of free bytes, the sandbox with the most files there loses every process, and so does
everything it starts, until enough is free again. Snapshots, which are copies of what a sandbox has, are not counted. A
sandbox that writes faster than the floor's worth in a quarter of a second can fill the disk, until it is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import Any

from .identity import enter_namespaces
from .processes import is_readable, lock, signal_inside

_INTERVAL = 0.25  # seconds
_SHARE = 20  # The time between two checks is at least this many times what a check takes.
_MEASURING = 0.5  # seconds at most for adding up the sandboxes' files, while the launcher serves no requests
_PAGE = os.sysconf("SC_PAGE_SIZE")


def refused_processes(limit: int) -> str:
    """Return the line that ends a command's output when the kernel refused to start more processes."""
    return f"[refused: more than the limit of {limit} processes]"


def killed_for_processes(limit: int) -> str:
    """Return the line that ends a command's output when it was killed for its number of processes."""
    return f"[killed: over the limit of {limit} processes]"


def killed_for_memory(limit: int) -> str:
    """Return the line that ends a command's output when it was killed for more than ``limit`` bytes of memory."""
    return f"[killed: over the limit of {limit // 2**20} MiB of memory]"


class WatchedSandbox:
    """A sandbox that is watched, by its PID 1."""

    def __init__(self, request: dict[str, Any], pidfd: int, notes: int) -> None:
        self.request = request
        self.pidfd = os.dup(pidfd)
        self.notes = os.dup(notes)
        self._killer = -1
        self.top: str = request["top"]
        self.floor: int = request["free_disk"]
        self.processes: int | None = request["processes"]
        self.memory: int = request["memory"]
        # The sandbox's own /proc shows its processes and no others, whatever is mounted over it later.
        self._root = os.open(f"/proc/{request['pid']}/root", os.O_PATH) if self.processes else -1
        self._proc = os.open("proc", os.O_RDONLY, dir_fd=self._root) if self.processes else -1

    def close(self) -> None:
        """Stop watching it."""
        for fd in (self.pidfd, self.notes, self._root, self._proc, self._killer):
            if fd >= 0:
                os.close(fd)

    def killed_by(self, pid: int) -> None:
        """Remember the worker process that kills its processes."""
        if self._killer >= 0:
            os.close(self._killer)
        self._killer = os.pidfd_open(pid)

    @property
    def is_being_killed(self) -> bool:
        """Whether a worker is still killing its processes."""
        return self._killer >= 0 and not is_readable(self._killer)

    def offence(self) -> str | None:
        """Return the line that says which limit it is above; None when it is above none, or is not counted here."""
        if self.processes is None:
            return None
        tasks, resident, names = 0, 0, []
        for name in os.listdir(self._proc):
            if name.isdigit() and name != "1":
                fields = self._read(f"{name}/stat").rpartition(b")")[2].split()
                if len(fields) > 21:
                    tasks += int(fields[17])
                    resident += int(fields[21]) * _PAGE
                    names.append(name)
                if tasks > self.processes:
                    return killed_for_processes(self.processes)
        in_files = self._files_in_memory()
        # Shared pages count for every process in `resident`; their true share is looked up only when that is too much,
        # because it costs far more.
        if resident + in_files > self.memory and self._proportional(names) + in_files > self.memory:
            return killed_for_memory(self.memory)
        return None

    def _files_in_memory(self) -> int:
        with contextlib.suppress(OSError):
            info = os.statvfs(f"/proc/self/fd/{self._root}/dev/shm")
            return (info.f_blocks - info.f_bfree) * info.f_frsize
        return 0

    def _proportional(self, names: list[str]) -> int:
        total = 0
        for name in names:
            for line in self._read(f"{name}/smaps_rollup").splitlines():
                if line.startswith(b"Pss:"):
                    total += int(line.split()[1]) * 1024
        return total

    def _read(self, path: str) -> bytes:
        with contextlib.suppress(OSError), open(f"/proc/self/fd/{self._proc}/{path}", "rb") as file:
            return file.read()
        return b""


class Watch:
    """All watched sandboxes of a launcher."""

    def __init__(self) -> None:
        self._all: list[WatchedSandbox] = []
        self._next = 0.0

    def add(self, request: dict[str, Any], pidfd: int, notes: int) -> None:
        """Watch one more sandbox; ``notes`` is a file for the reason why its processes were killed."""
        with contextlib.suppress(OSError):  # The sandbox has already ended.
            self._all.append(WatchedSandbox(request, pidfd, notes))

    def wait(self, control: int) -> None:
        """Look at the sandboxes until there is a request."""
        poll = select.poll()
        poll.register(control, select.POLLIN)
        while self._all:
            if poll.poll(max(0.0, self._next - time.monotonic()) * 1000) and time.monotonic() < self._next:
                return
            started = time.thread_time()  # Of the CPU: on a machine busy with a fork bomb, wall-clock time says little.
            self._look()
            self._next = time.monotonic() + max(_INTERVAL, _SHARE * (time.thread_time() - started))

    def _look(self) -> None:
        for watched in [*self._all]:
            if is_readable(watched.pidfd):  # It has ended.
                self._all.remove(watched)
                watched.close()
        for watched in self._all:
            if not watched.is_being_killed and (offence := watched.offence()):
                self._end(watched, offence)
        full = [watched for watched in self._all if _free(watched.top) < watched.floor]
        if full and not any(watched.is_being_killed for watched in full):
            largest = _largest(full)
            if largest is not None:
                self._end(largest, f"[killed: less than {largest.floor // 2**20} MiB of disk left for sandboxes]")

    def _end(self, watched: WatchedSandbox, why: str) -> None:
        pid = os.fork()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                watched.killed_by(pid)
            return
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            lock(watched.notes)
            os.write(watched.notes, f"{why}\n".encode())  # Before the kill, so that the killed command finds it.
            enter_namespaces(watched.pidfd, watched.request["namespaces"])
            signal_inside(signal.SIGKILL)
        finally:
            os._exit(0)


def _free(path: str) -> int:
    try:
        info = os.statvfs(path)
    except OSError:
        return 2**63
    return info.f_bavail * info.f_frsize


def _largest(sandboxes: list[WatchedSandbox]) -> WatchedSandbox | None:
    """Return the sandbox with the most bytes on disk; None if they are so few that somebody else has filled it."""
    deadline = time.monotonic() + _MEASURING
    sizes = [(_size(watched.top, deadline), watched) for watched in sandboxes]
    size, largest = max(sizes, key=lambda pair: pair[0])
    return largest if size > min(largest.floor // 8, 2**28) else None


def _size(directory: str, deadline: float) -> int:
    """Return the bytes that a tree takes on disk, as far as they can be added up until the deadline."""
    total = 0
    waiting = [directory]
    while waiting and time.monotonic() < deadline:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
