"""Where built images and the state of sandboxes are kept on this machine, and the locks that sessions share.

All locks on files are those of ``filelock``. The exception is the sandbox's
:func:`~pytest_evocode.environments.sandbox.processes.lock`, which the launcher takes with the standard library alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout


def cache_directory() -> Path:
    """Return ``$EVOCODE_CACHE``, else the user's cache directory for this program.

    It is made when missing, private to the user.
    """
    named = os.environ.get("EVOCODE_CACHE")
    directory = Path(named) if named else platformdirs.user_cache_path("pytest-evocode", appauthor=False)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory.resolve()


def lock_run(results: Path, run: str) -> FileLock | None:
    """Keep other sessions out of a run until the returned lock is released; None when one is working on it."""
    locks = cache_directory() / "runs"
    locks.mkdir(exist_ok=True)
    name = hashlib.sha256(os.fsencode(results / run)).hexdigest()[:32]
    return try_lock(locks / f"{name}.lock")


def try_lock(path: Path) -> FileLock | None:
    """Lock a file, made when missing, and return the held lock; None when another process or thread holds it.

    The lock ends with its release, from whichever thread, and with this process.
    """
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def is_locked(path: Path) -> bool:
    """Tell whether another process or thread holds the lock of a file, which is made when missing.

    One that belongs to another user counts as held.
    """
    try:
        lock = try_lock(path)
    except PermissionError:
        return True
    if lock is not None:
        lock.release()
    return lock is None
