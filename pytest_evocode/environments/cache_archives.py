"""The package caches that suites left, kept on this machine as archives which no environment can write."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.kept_index import KeptIndex
from pytest_evocode.environments.tree_archives import DirectoryAbove

logger = logging.getLogger(__name__)

LIMIT = 4 * 2**30
"""Bytes that the archives of one engine may take on this machine; the least recently used are dropped first."""
_KIND = "package-caches"
_UNFINISHED = ".part-"
_ABANDONED = 3600.0  # seconds after which nobody writes to an unfinished archive any more


@dataclass(frozen=True, slots=True)
class KeptCaches:
    """The caches that the suite of a round left, and the names of the archives that have them."""

    key: str
    task: str
    round: str
    paths: tuple[str, ...]
    """The directories of the caches."""
    above: tuple[DirectoryAbove, ...]
    """The directories above them, the highest first."""
    image: str = ""
    """The SHA-256 of the archive of what the image itself has there, by which it is called."""
    added: str = ""
    """The same of the archive of what came since."""
    sizes: tuple[int, int] = (0, 0)
    """The bytes of the two."""

    @property
    def archives(self) -> dict[str, int]:
        """The names of the archives and how many bytes each has."""
        return dict(zip((self.image, self.added), self.sizes, strict=True))


def engines_with_archives() -> list[str]:
    """Return the names of the engines for which archives were kept on this machine."""
    place = cache_directory() / _KIND
    return sorted(path.name for path in place.iterdir()) if place.is_dir() else []


class CacheArchives(KeptIndex[KeptCaches]):
    """The archives that are kept for one engine, and the index of them; all sessions and workers share them.

    Each is a file that is called by its contents, so that rounds whose suites left the same share one. All of them are
    for their owner alone, because what a tool keeps of a download may hold a secret.
    """

    def __init__(self, engine: str, *, limit: int | None = None) -> None:
        super().__init__(_KIND, engine)
        self._limit = LIMIT if limit is None else limit

    def entry(self, found: dict[str, Any]) -> KeptCaches:
        """See :class:`~pytest_evocode.environments.kept_index.KeptIndex`."""
        above = tuple(DirectoryAbove(**each) for each in found["above"])
        whole = {**found, "paths": tuple(found["paths"]), "above": above, "sizes": tuple(found["sizes"])}
        return KeptCaches(**whole)

    def open(self, kept: KeptCaches, *names: str) -> list[BinaryIO] | None:
        """Open archives of what is kept, which can be read even when somebody drops them meanwhile.

        Where one of them is damaged, all that is kept for that key is dropped, and None returned.
        """
        with contextlib.ExitStack() as opened:
            files: list[BinaryIO] = []
            for name in names:
                try:
                    files.append(opened.enter_context(self._archive(name).open("rb")))
                    digest = _digest(files[-1])
                    why = "" if digest == name else "its contents are not those that were kept"
                except OSError as error:
                    why = str(error.strerror)
                if why:
                    logger.warning("the package caches kept for %s of %s are dropped: %s", kept.round, kept.task, why)
                    self.drop(kept.key)
                    return None
                files[-1].seek(0)
            self.touch(kept.key)
            opened.pop_all()
            return files

    def keep(self, kept: KeptCaches, image: Callable[[BinaryIO], object], added: Callable[[BinaryIO], object]) -> None:
        """Keep what two functions write under a key, in place of what was kept there; raises OSError.

        Whatever they raise is raised, and nothing is kept.
        """
        with self._written(image) as first, self._written(added) as second:
            sizes = first[2], second[2]
            with self.locked():
                for path, name, _ in (first, second):
                    os.replace(path, self._archive(name))
                self.write(replace(kept, image=first[1], added=second[1], sizes=sizes))
                self._evict(newest=kept.key)

    @contextlib.contextmanager
    def _written(self, write: Callable[[BinaryIO], object]) -> Iterator[tuple[Path, str, int]]:
        """Yield a new archive, its digest and its size; it is removed in the end unless it was renamed."""
        with tempfile.NamedTemporaryFile(dir=self.directory, prefix=_UNFINISHED, delete=False) as file:
            archive = cast("BinaryIO", file)
            try:
                write(archive)
                archive.flush()
                size = archive.tell()
                archive.seek(0)
                yield Path(file.name), _digest(archive), size
            finally:
                Path(file.name).unlink(missing_ok=True)

    def drop(self, key: str) -> None:
        """Drop what is kept for a key, and its archives unless another key has the same."""
        with self.locked():
            self.forget(key)
            self._drop_unnamed()

    def _evict(self, newest: str) -> None:
        everything = self.oldest_first()
        for kept in everything:
            archives = {name: size for each in everything for name, size in each.archives.items()}
            if sum(archives.values()) <= self._limit:
                break
            if kept.key != newest:
                everything = [each for each in everything if each.key != kept.key]
                self.forget(kept.key)
        self._drop_unnamed()

    def _drop_unnamed(self) -> None:
        """Remove the archives that no key has, and what killed sessions left of unfinished ones."""
        named = {name for kept in self.oldest_first() for name in kept.archives}
        for path in self.directory.glob("*.tar"):
            if path.stem not in named:
                path.unlink(missing_ok=True)
        for path in self.directory.glob(f"{_UNFINISHED}*"):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink(missing_ok=True)

    def _archive(self, name: str) -> Path:
        return self.directory / f"{name}.tar"


def _digest(archive: BinaryIO) -> str:
    return hashlib.file_digest(cast("BufferedIOBase", archive), "sha256").hexdigest()
