"""What dead sessions left on the disk: the files of their sandboxes, and kept snapshots."""

from __future__ import annotations

import contextlib
import logging
import os
import uuid
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory, is_locked, try_lock
from pytest_evocode.environments.sandbox.cgroups import remove_recorded
from pytest_evocode.environments.sandbox.kept import ended_kept, kept_sandboxes, lock_kept
from pytest_evocode.environments.sandbox.launcher_client import Launcher
from pytest_evocode.environments.sandbox.snapshots import leftover_snapshots, remove_tree

logger = logging.getLogger(__name__)

#: The file in a session's directory that lists its cgroups.
CGROUPS = "cgroups"
#: The file in a session's directory that the session has locked for as long as it lives.
LOCK = "lock"


def state_parents() -> tuple[Path, ...]:
    """Return where sandboxes are kept: the cache, or memory where the cache's disk carries no overlay."""
    return cache_directory() / "sandboxes", Path(f"/dev/shm/pytest-evocode-{os.getuid()}")


def kept_snapshots(parent: Path) -> Path:
    """Return where kept snapshots are: beside the sessions' directories, which are removed with their sessions."""
    return parent.with_name(f"{parent.name}-snapshots")


def reference_states(parent: Path) -> Path:
    """Return where states of reference solutions are, which outlive attempts, too."""
    return parent.with_name(f"{parent.name}-references")


def trash(parent: Path) -> Path:
    """Return where things wait to be removed: nobody looks into it, so whatever is in it can be removed at any time."""
    return parent.with_name(f"{parent.name}-trash")


def throw_away(parent: Path, path: Path) -> None:
    """Put a directory into the trash at once, if it is still there."""
    trash(parent).mkdir(exist_ok=True, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, trash(parent) / f"{path.name}-{uuid.uuid4().hex[:8]}")


def empty_trash(launcher: Launcher, trash: Path) -> None:
    """Delete what is in the trash; another session may be doing the same."""
    with contextlib.suppress(FileNotFoundError):
        remove_tree(launcher, *trash.iterdir())


def find_sandbox_leftovers(*, needed_too: bool = False) -> list[Path]:
    """Find the directories of dead sessions, the snapshots they kept, and trash that was not removed to the end.

    With ``needed_too``, snapshots that an attempt needs and kept sandboxes are included.
    """
    found = []
    for parent in state_parents():
        with contextlib.suppress(PermissionError):  # What cannot be read is another user's, who removes it.
            if parent.is_dir():
                with claim(parent):
                    found += [path for path in sorted(parent.iterdir()) if path.is_dir() and not is_locked(path / LOCK)]
                found += [trash(parent)] if os.path.isdir(trash(parent)) and os.listdir(trash(parent)) else []
        found += leftover_snapshots(kept_snapshots(parent), needed_too=needed_too)
        found += ended_kept(kept_sandboxes(parent)) if needed_too else []
    return found


def claim(parent: Path) -> FileLock:
    """Return the lock under which sessions' directories are made and removed, each with a lock file in it.

    Without it, another session could lock a directory that is not locked yet, or whose lock file was just deleted.
    """
    return FileLock(parent / "claim.lock")


def throw_away_state(state: Path) -> None:
    """Put a session's directory into the trash and remove its cgroups, unless it is locked; hold :func:`claim`."""
    lock = try_lock(state / LOCK) if state.is_dir() else None
    if lock is not None:
        try:
            logger.info("removing the files of a session in %s", state)
            if remove_recorded(state / CGROUPS):
                throw_away(state.parent, state)
        finally:
            lock.release()


def remove_sandbox_leftover(launcher: Launcher, path: Path) -> None:
    """Delete what :func:`find_sandbox_leftovers` found, unless somebody uses it by now."""
    parent = path.parent
    if parent in state_parents():
        with claim(parent):
            throw_away_state(path)
        path = trash(parent)
    if path in map(trash, state_parents()):
        empty_trash(launcher, path)
        return
    is_kept = path.is_dir() and path.parent in map(kept_sandboxes, state_parents())
    lock = lock_kept(path) if is_kept else None
    if lock is None and is_kept:  # Somebody has entered it meanwhile.
        return
    logger.info("removing %s", path)
    remove_tree(launcher, path)
    if lock is not None:
        lock.release()
