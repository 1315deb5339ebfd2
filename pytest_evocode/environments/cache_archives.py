"""The package caches that suites left, kept on this machine as archives which no environment can write."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, cast

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.tree_archives import CHUNK, DirectoryAbove
from pytest_evocode.tasks.atomic_write import write_atomically

logger = logging.getLogger(__name__)

LIMIT = 4 * 2**30
"""Bytes that the archives of one engine may take on this machine; the least recently used are dropped first."""
_PLACE = "package-caches"
_UNFINISHED = ".part-"
_ABANDONED = 3600.0  # seconds after which nobody writes to an unfinished archive any more


@dataclass(frozen=True, slots=True)
class KeptCaches:
    """The caches that the suite of a round left, and the name of the archive that has them."""

    key: str
    task: str
    round: str
    paths: tuple[str, ...]
    """The directories of the caches."""
    above: tuple[DirectoryAbove, ...]
    """The directories above them, the highest first."""
    digest: str = ""
    """The SHA-256 of the archive, by which it is called."""
    size: int = 0
    """Bytes."""


def engines_with_archives() -> list[str]:
    """Return the names of the engines for which archives were kept on this machine."""
    place = cache_directory() / _PLACE
    return sorted(path.name for path in place.iterdir()) if place.is_dir() else []


class CacheArchives:
    """The archives that are kept for one engine; all sessions and workers share them.

    Each is a file that is called by its contents, so that rounds whose suites left the same share one, and has a small
    file for each key it was kept for, whose modification time is when it was last used. All of them are for their owner
    alone, because what a tool keeps of a download may hold a secret.
    """

    def __init__(self, engine: str, *, limit: int | None = None) -> None:
        self.directory = cache_directory() / _PLACE / engine
        """A directory for nobody else; unfinished files may be there, too."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = FileLock(self.directory / "lock")
        self._limit = LIMIT if limit is None else limit

    def find(self, key: str) -> tuple[KeptCaches, BinaryIO] | None:
        """Return what is kept for a key with its archive, opened for reading; None where there is none.

        The open archive can be read even when somebody drops it meanwhile. A damaged one is dropped here.
        """
        kept = self.read(key)
        if kept is None:
            return None
        try:
            archive = self._archive(kept).open("rb")
            if _digest(archive) == kept.digest:
                archive.seek(0)
                os.utime(self._file(key))
                return kept, archive
            archive.close()
            why = "its contents are not those that were kept"
        except OSError as error:
            why = str(error.strerror)
        logger.warning("the package caches kept for %s of %s are dropped: %s", kept.round, kept.task, why)
        self.forget(key)
        return None

    def read(self, key: str) -> KeptCaches | None:
        """Return what is known of the archive of a key; None where none is kept."""
        try:
            found = json.loads(self._file(key).read_bytes())
            above = tuple(DirectoryAbove(**each) for each in found["above"])
            return KeptCaches(**{**found, "paths": tuple(found["paths"]), "above": above})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, kept: KeptCaches, write: Callable[[BinaryIO], object]) -> None:
        """Keep what ``write`` writes under the key, in one step, in place of what was kept there; raises OSError.

        Whatever ``write`` raises is raised, and nothing is kept.
        """
        with tempfile.NamedTemporaryFile(dir=self.directory, prefix=_UNFINISHED, delete=False) as archive:
            try:
                write(cast("BinaryIO", archive))
                archive.flush()
                size = archive.tell()
                archive.seek(0)
                digest = _digest(cast("BinaryIO", archive))
                whole = asdict(kept) | {"digest": digest, "size": size}
                with self._lock:
                    os.replace(archive.name, self.directory / f"{digest}.tar")
                    write_atomically(self._file(kept.key), json.dumps(whole))
                    self._evict(newest=kept.key)
            finally:
                Path(archive.name).unlink(missing_ok=True)

    def forget(self, key: str) -> None:
        """Drop what is kept for a key, and its archive unless another key has the same."""
        with self._lock:
            self._file(key).unlink(missing_ok=True)
            self._drop_unnamed()

    def oldest_first(self) -> list[KeptCaches]:
        """Return all that is kept, the least recently used first."""
        with self._lock:
            files = sorted(self.directory.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            return [kept for path in files if (kept := self.read(path.stem)) is not None]

    def _evict(self, newest: str) -> None:
        everything = self.oldest_first()
        for kept in everything:
            if sum({each.digest: each.size for each in everything}.values()) <= self._limit:
                break
            if kept.key != newest:
                everything = [each for each in everything if each.key != kept.key]
                self._file(kept.key).unlink(missing_ok=True)
        self._drop_unnamed()

    def _drop_unnamed(self) -> None:
        """Remove the archives that no key has, and what killed sessions left of unfinished ones."""
        named = {kept.digest for kept in self.oldest_first()}
        for path in self.directory.glob("*.tar"):
            if path.stem not in named:
                path.unlink(missing_ok=True)
        for path in self.directory.glob(f"{_UNFINISHED}*"):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self.directory / f"{key}.json"

    def _archive(self, kept: KeptCaches) -> Path:
        return self.directory / f"{kept.digest}.tar"


def _digest(archive: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := archive.read(CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
