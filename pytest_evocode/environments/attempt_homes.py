"""Where nodes of a cluster keep the files of attempts: a directory for each, until the attempt has ended there."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_evocode.environments.cache import cache_directory, is_locked, try_lock


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
