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
import tempfile
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
def used(path: Path) -> Iterator[None]:
    """Have something in the cache seen as in use; any number of processes may use it, and a killed one uses nothing."""
    with sign_of(path).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # Which filelock does not have.
        yield


def is_used(path: Path) -> bool:
    """Tell whether any process uses something in the cache; see :func:`used`."""
    try:
        with sign_of(path).open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def remove_unused(path: Path) -> bool:
    """Remove something in the cache unless it is used, and return whether it is gone.

    Nobody finds a part of it meanwhile. Whoever may begin to use it has to be kept out.
    """
    if is_used(path):
        return False
    with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as work, contextlib.suppress(OSError):
        path.rename(Path(work, "gone"))
    if not os.path.lexists(path):
        sign_of(path).unlink(missing_ok=True)
    return not os.path.lexists(path)


def sign_of(path: Path) -> Path:
    """Return the file whose locks say that something is used."""
    return path.with_name(f".used-{path.name}")
