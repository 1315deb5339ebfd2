"""Builds of images: each content once, a few ahead of their use at a time, and ended when nobody waits any more."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from pytest_evocode.environments.cache import cache_directory, try_lock
from pytest_evocode.environments.protocol import BuildWish
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import BuildError, Cancelled, EnvironmentFault
from pytest_evocode.tasks.atomic_write import write_atomically

logger = logging.getLogger(__name__)

T = TypeVar("T")
_INTERVAL = 0.1  # seconds between two looks at whether a build is still wanted
_AT_ONCE = 4
"""Builds on this machine that nobody waits for yet: most of them wait for a network or a disk, and not for a core."""


def builds_at_once() -> int:
    """Return how many images this machine builds ahead of their use at the same time."""
    return min(_AT_ONCE, os.cpu_count() or 1)


class Builds:
    """Makes each image once, under a lock that all sessions on this machine share.

    With a directory for ``failed`` builds no build that failed is begun again by whoever shares that directory: an
    image that was built ahead of its use fails once, and where it is needed.
    """

    def __init__(self, failed: Path | None = None) -> None:
        self._failed = failed

    def once(
        self, name: str | None, lock: Path, find: Callable[[], T | None], build: Callable[[], T], wish: BuildWish
    ) -> tuple[T, bool]:
        """Return what ``find`` finds, or else what ``build`` makes, and whether it was made now.

        Args:
            name: Tells this build from others that may fail for other reasons; None for one that is begun again
                where it failed.
            lock: The file whose lock the builder holds; those who come meanwhile wait.
            find: Looks for what an earlier build made.
            build: Makes it.
            wish: How it is asked for.

        Raises:
            BuildError: The build failed, now or before.
            Cancelled: It is not wanted any more.
        """
        if (found := find()) is not None:
            return found, False
        with _slot(wish), _locked(lock, wish.cancelled):
            if (found := find()) is not None:
                return found, False
            failed = None
            if self._failed is not None and name is not None:
                failed = self._failed / f"{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}.json"
                if failed.exists():
                    raise BuildError(json.loads(failed.read_text(encoding="utf-8")))
            try:
                return build(), True
            except EnvironmentFault as error:
                if wish.cancelled.is_set():  # Then it was ended, and the error says nothing of the image.
                    raise Cancelled(STOPPED) from None
                if isinstance(error, BuildError) and failed is not None:
                    with contextlib.suppress(OSError):  # Then it fails a second time.
                        write_atomically(failed, json.dumps(str(error)))
                raise


@contextlib.contextmanager
def _slot(wish: BuildWish) -> Iterator[None]:
    """Hold one of the machine's slots for builds, or none where somebody waits for the image and all are taken."""
    directory = cache_directory() / "builds"
    directory.mkdir(exist_ok=True)
    files = [directory / f"slot-{number}.lock" for number in range(builds_at_once())]
    lock = next((lock for file in files if (lock := try_lock(file)) is not None), None)
    while lock is None and wish.ahead:
        if wish.cancelled.wait(_INTERVAL):
            raise Cancelled(STOPPED)
        lock = next((lock for file in files if (lock := try_lock(file)) is not None), None)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextlib.contextmanager
def _locked(path: Path, cancelled: threading.Event) -> Iterator[None]:
    lock = FileLock(path)
    while not lock.is_locked:
        if cancelled.is_set():
            raise Cancelled(STOPPED)
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=_INTERVAL)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def ending_when(cancelled: threading.Event, end: Callable[[], object]) -> Iterator[None]:
    """Call ``end`` from another thread if ``cancelled`` is set while the context lasts."""
    left = threading.Event()

    def watch() -> None:
        while not left.wait(_INTERVAL):
            if cancelled.is_set():
                # Again and again: it may have been about to start during an earlier call.
                with contextlib.suppress(EnvironmentFault):
                    end()

    watcher = threading.Thread(target=watch, name="build-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        left.set()
        watcher.join()
