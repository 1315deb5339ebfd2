"""Where built images and the state of sandboxes are kept on this machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """``$EVOCODE_CACHE``, else the user's cache directory for this program; made when missing, private to the user."""
    named = os.environ.get("EVOCODE_CACHE")
    directory = Path(named) if named else platformdirs.user_cache_path("pytest-evocode", appauthor=False)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory.resolve()


def hold_run(results: Path, run: str) -> int | None:
    """Keep other sessions out of a run for as long as the returned descriptor is open; None when one is at it."""
    locks = cache_directory() / "runs"
    locks.mkdir(exist_ok=True)
    name = hashlib.sha256(os.fsencode(results / run)).hexdigest()[:32]
    return take_lock(locks / f"{name}.lock")


def take_lock(path: Path) -> int | None:
    """Lock a file, made when missing, until the returned descriptor is closed; None when another holds the lock."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
