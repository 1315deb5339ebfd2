"""Directories for files of this process that nobody needs after it, and the removal of those that dead ones left."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_evocode.environments.owners import Owner

logger = logging.getLogger(__name__)

_NAME = re.compile(r"evocode-[a-z]+-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-(?P<started>[0-9]+)-[a-z0-9_]{8}", re.ASCII)


class Scratch:
    """A directory in ``TMPDIR`` until it is closed.

    Its name says which process made it, and whoever uses it holds a lock on it: a process that was killed may have left
    others that still do. :func:`remove_dead` removes what neither keeps.
    """

    def __init__(self, kind: str) -> None:
        """Make one; ``kind`` says in its name, in small letters, what it is for."""
        owner = Owner.this()
        prefix = f"evocode-{kind}-{_short(owner.host)}-{owner.pid}-{owner.started}-"
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self.lock = hold(self.path)
        """The descriptor of its lock, for processes that are to hold it as well; None where there are no locks."""

    def close(self) -> None:
        """Remove the directory, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self.lock = self.lock, None
        if lock is not None:
            os.close(lock)


@contextlib.contextmanager
def scratch_directory(kind: str = "files") -> Iterator[Path]:
    """Make a directory that is removed when the context ends, and by later sessions where this process is killed."""
    with contextlib.closing(Scratch(kind)) as scratch:
        yield scratch.path


def hold(path: Path) -> int | None:
    """Keep a directory from being removed by :func:`remove_dead`, for as long as the returned descriptor is open.

    None where that cannot be: the directory is gone, or its file system has no locks, and then nobody removes it.
    """
    return _lock(path, fcntl.LOCK_SH)


def find_dead() -> list[Path]:
    """Find this user's scratch directories whose makers have ended, and that nobody holds."""
    found = []
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if (name := _NAME.fullmatch(entry.name)) and _is_left(name):
                lock = _lock(Path(entry.path), fcntl.LOCK_EX)
                if lock is not None:
                    if os.fstat(lock).st_uid == os.geteuid():
                        found.append(Path(entry.path))
                    os.close(lock)
    return sorted(found)


def remove_dead(path: Path) -> None:
    """Remove what :func:`find_dead` found, unless somebody holds it by now."""
    lock = _lock(path, fcntl.LOCK_EX)
    if lock is not None:
        logger.info("removing %s, which a dead process left", path)
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def remove_all_dead() -> None:
    """Remove all that :func:`find_dead` finds; what cannot be looked at stays."""
    with contextlib.suppress(OSError):
        for path in find_dead():
            remove_dead(path)


def _short(host: str) -> str:
    return hashlib.sha256(os.fsencode(host)).hexdigest()[:8]


def _is_left(name: re.Match[str]) -> bool:
    """Tell whether the process that a directory's name says made it has ended; one of another machine counts as alive.

    Machines may share a ``TMPDIR``.
    """
    host = socket.gethostname()
    return name["host"] == _short(host) and not Owner(host, int(name["pid"]), int(name["started"])).is_alive()


def _lock(path: Path, how: int) -> int | None:
    # On the directory itself, which filelock cannot: so it may be empty, and what is made there is all of its user's.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
