"""Where built images and the state of sandboxes are kept on this machine, and the locks that sessions share.

All locks on files are those of ``filelock``. The exception is the sandbox's
:func:`~pytest_evocode.environments.sandbox.processes.lock`, which the launcher takes with the standard library alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from pytest_evocode.errors import UsageError


def cache_directory() -> Path:
    """Return ``$EVOCODE_CACHE``, else the user's cache directory for this program.

    It is made when missing, private to the user.

    Raises:
        UsageError: It cannot be made or written.
    """
    named = os.environ.get("EVOCODE_CACHE")
    directory = Path(named) if named else platformdirs.user_cache_path("pytest-evocode", appauthor=False)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        why = "Not a directory" if isinstance(error, FileExistsError) else error.strerror
        raise UsageError(
            f"the cache {directory} cannot be written ({why}); name another directory with EVOCODE_CACHE"
        ) from None
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


@contextlib.contextmanager
def used(sign: Path) -> Iterator[None]:
    """Have what a file stands for seen as in use; any number of processes may use it, and a killed one uses nothing."""
    with sign.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # Which filelock does not have.
        yield


def is_used(sign: Path) -> bool:
    """Tell whether any process uses what a file stands for; see :func:`used`."""
    try:
        with sign.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
