"""What a node of a cluster keeps: the files of attempts that have not ended there, and directories of tasks.

Tasks are kept under the hashes of their contents, for later attempts. Those that no attempt has used for 30 days are
removed, and the longest unused while all together have over 4 GiB. One lock guards the directory, and one for each task
tells that attempts use it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory, is_locked, is_used, remove_unused, try_lock, used
from pytest_evocode.tasks.content_hash import hash_directory

LONGEST_UNUSED = 30 * 86_400.0  # seconds
MOST_BYTES = 4 * 2**30
_AT_LEAST = 3600.0
"""Seconds for which a task is kept after an attempt got it, which takes a moment to say that it uses it."""


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task directory that is kept."""

    home: Path
    """The directory around it, named by the hashes of its contents and of its name."""
    used_at: float
    """When an attempt last got it, in seconds since 1970."""
    size: int
    """Bytes of its files."""


class KeptTasks:
    """The task directories of this machine.

    Args:
        now: What the time is, in seconds since 1970.
    """

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._directory = cache_directory() / "cluster" / "tasks"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self._directory / ".lock")  # A thread that holds it may take it again.
        self._now = now

    def place(self, task_hash: str, name: str, fetch: Callable[[], bytes]) -> Path:
        """Return a task's directory, fetched and unpacked if it is not here yet.

        Args:
            task_hash: The hash of its contents.
            name: What the directory is called.
            fetch: Returns the archive.
        """
        home = self._home(task_hash, name)
        with self._lock:
            if not ((home / name).is_dir() and hash_directory(home / name) == task_hash):
                self._unpack(home, fetch())
                os.utime(home, (self._now(), self._now()))
                self._make_room()
            os.utime(home, (self._now(), self._now()))
        return home / name

    def _home(self, task_hash: str, name: str) -> Path:
        # Tasks may have the same contents and other names, which records tell.
        return self._directory / f"{task_hash}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"

    def _unpack(self, home: Path, archive: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix=".", dir=self._directory) as work:
            with tarfile.open(fileobj=BytesIO(archive), mode="r:gz") as file:
                file.extractall(Path(work, "task"), filter="tar")
            if home.exists():  # Somebody changed it; an attempt that uses it finds the right files from now on.
                home.rename(Path(work, "changed"))
            Path(work, "task").rename(home)

    @contextlib.contextmanager
    def used(self, task_hash: str, name: str) -> Iterator[None]:
        """Keep a task from being removed in the block."""
        with contextlib.ExitStack() as until_done:
            with self._lock:
                until_done.enter_context(used(self._home(task_hash, name)))
            yield

    def all(self) -> list[KeptTask]:
        """Return all that are kept, the longest unused first."""
        homes = (path for path in self._directory.glob("*") if path.is_dir() and not path.name.startswith("."))
        found = []
        for home in homes:
            with contextlib.suppress(FileNotFoundError):
                size = sum(path.lstat().st_size for path in home.rglob("*") if not path.is_dir())
                found.append(KeptTask(home, home.stat().st_mtime, size))
        return sorted(found, key=lambda kept: kept.used_at)

    def unused(self) -> list[KeptTask]:
        """Return those that no attempt uses."""
        return [kept for kept in self.all() if not is_used(kept.home)]

    def _make_room(self) -> None:
        """Remove what has not been used for long, and as much more as is too much."""
        every = self.all()
        total = sum(kept.size for kept in every)
        for kept in every:
            age = self._now() - kept.used_at
            is_old = age > LONGEST_UNUSED
            if (is_old or (total > MOST_BYTES and age > _AT_LEAST)) and self.remove(kept):
                total -= kept.size

    def remove(self, kept: KeptTask) -> bool:
        """Remove a task unless an attempt uses it, and return whether it is gone."""
        with self._lock:
            return remove_unused(kept.home)


def attempt_home(name: str) -> Path:
    """Return the directory of an attempt on this machine, in which its results directory is."""
    return _homes() / name


def attempt_homes() -> list[Path]:
    """Return the directories of all attempts that this machine has."""
    return sorted(path for path in _homes().glob("*") if not path.name.startswith("."))


def lock_of(home: Path) -> Path:
    """Return the file that the process of an attempt holds the lock of."""
    return home.with_name(f".{home.name}.lock")


def unfinished_homes() -> list[Path]:
    """Return the directories of attempts that have not ended and do not run: a later session may go on from them."""
    return [home for home in attempt_homes() if not is_locked(lock_of(home))]


def remove_home(home: Path) -> None:
    """Remove the directory of an attempt, unless the attempt runs."""
    lock = try_lock(lock_of(home))
    if lock is not None:
        shutil.rmtree(home, ignore_errors=True)
        lock.release()
        lock_of(home).unlink(missing_ok=True)


def _homes() -> Path:
    return cache_directory() / "cluster" / "attempts"
