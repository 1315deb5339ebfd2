"""Keeps on the host what is known of an image's caches of Python: an index, and tars that are never changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.tasks.atomic_write import replacing, write_atomically

logger = logging.getLogger(__name__)

_UNUSED = 30 * 24 * 3600  # seconds after which what no session has used is removed


@dataclass(frozen=True, slots=True)
class Member:
    """A file or directory in one of the tars."""

    tar: str
    """The name of the tar's file."""
    start: int
    """The first byte of its headers."""
    end: int
    """The byte after its last one."""


@dataclass(slots=True)
class KnownDirectory:
    """What is known of one directory with sources or caches."""

    sources: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the source of each module."""
    own: dict[str, Member] = field(default_factory=dict)
    """What the image has of caches, by absolute path, directories before what is in them."""
    made: dict[str, Member] = field(default_factory=dict)
    """Caches that the image's own Pythons made of its own sources, and the directory of them if the image has none."""
    compiled: list[str] = field(default_factory=list)
    """The kinds of caches that were made, such as ``cpython-311`` and ``cpython-311.opt-1``."""


@dataclass(slots=True)
class Index:
    """What is known of the caches of an image."""

    directories: frozenset[str] = frozenset()
    """All directories with sources or caches."""
    interpreters: dict[str, str] = field(default_factory=dict)
    """The path of an interpreter for each tag of a cache, such as ``cpython-311``."""
    known: dict[str, KnownDirectory] = field(default_factory=dict)
    """Those directories that were looked into."""

    def add_own(self, sources: Mapping[str, dict[str, str]], tar: Path) -> None:
        """Add directories with the digests of their sources, and the caches that a tar has of them."""
        self.known |= {directory: KnownDirectory(digests) for directory, digests in sources.items()}
        for directory, path, member in _members(tar):
            self.known[directory].own[path] = member

    def add_made(self, compiled: Iterable[tuple[str, str]], tar: Path) -> None:
        """Add pairs of a directory and a kind of caches that was made there, and the caches that a tar has of them."""
        for directory, kind in compiled:
            self.known[directory].compiled.append(kind)
        for directory, path, member in _members(tar):
            self.known[directory].made[path] = member


def _members(tar: Path) -> list[tuple[str, str, Member]]:
    """Return what is in a tar: the directory that it is a cache of, the absolute path, and where it is."""
    found = []
    with tarfile.open(tar) as archive:
        for each in archive:
            blocks = -(-each.size // tarfile.BLOCKSIZE) if each.isreg() else 0
            end = each.offset_data + blocks * tarfile.BLOCKSIZE
            path = f"/{each.name}"
            found.append((path.partition("/__pycache__")[0] or "/", path, Member(tar.name, each.offset, end)))
    return found


def kept_image_caches() -> list[CacheStore]:
    """Return what is kept on this machine, of all images."""
    return [CacheStore(index.parent.name) for index in sorted(_place().glob("*/index.json"))]


def _place() -> Path:
    return cache_directory() / "image-caches"


class CacheStore:
    """The directory in which the caches of one image are kept. All methods raise OSError."""

    def __init__(self, key: str) -> None:
        """``key`` is of the image's contents."""
        self._all = _place()
        self._directory = self._all / key
        self._index = self._directory / "index.json"
        self._verified: set[str] = set()

    def __str__(self) -> str:
        size = sum(file.stat().st_size for file in self._directory.iterdir())
        return f"caches of Python of the image {self._directory.name[:12]}, {size / 1e6:.1f} MB"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other sessions from adding anything."""
        self._all.mkdir(exist_ok=True)
        with FileLock(self._all / f"{self._directory.name}.lock"):
            yield

    def read(self) -> Index | None:
        """Return the index, None where there is none or it is damaged."""
        try:
            os.utime(self._index)
            found = json.loads(self._index.read_text())
            known = {
                directory: KnownDirectory(
                    each["sources"],
                    {path: Member(*member) for path, member in each["own"].items()},
                    {path: Member(*member) for path, member in each["made"].items()},
                    each["compiled"],
                )
                for directory, each in found["known"].items()
            }
            return Index(frozenset(found["directories"]), found["interpreters"], known)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            logger.warning("what was kept of an image's caches is damaged and made again: %s", error)
            return None

    def write(self, index: Index) -> None:
        """Keep an index, and remove what was kept of images that nobody has used for long."""
        if not self._directory.exists():
            self._drop_unused()
        known = {
            directory: {
                "sources": each.sources,
                "own": {path: astuple(member) for path, member in each.own.items()},
                "made": {path: astuple(member) for path, member in each.made.items()},
                "compiled": each.compiled,
            }
            for directory, each in index.known.items()
        }
        found = {"directories": sorted(index.directories), "interpreters": index.interpreters, "known": known}
        write_atomically(self._index, json.dumps(found))

    def keep(self, tar: Path) -> Path:
        """Copy a tar into the store, under a name that tells whether it is whole, and return its path there."""
        with tar.open("rb") as source:
            kept = self._directory / hashlib.file_digest(source, "sha256").hexdigest()
            kept.parent.mkdir(parents=True, exist_ok=True)
            source.seek(0)
            with replacing(kept) as file:
                shutil.copyfileobj(source, file)
        return kept

    def copy(self, members: Sequence[Member], stream: BinaryIO) -> bool:
        """Write a tar of some members, in their order; False where what is kept of them is damaged."""
        for tar in {member.tar for member in members} - self._verified:
            try:
                with (self._directory / tar).open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except FileNotFoundError:
                digest = ""
            if digest != tar:
                logger.warning("what was kept of an image's caches is damaged and made again: %s", tar)
                return False
            self._verified.add(tar)
        with contextlib.ExitStack() as opened:
            tars = {tar: opened.enter_context((self._directory / tar).open("rb")) for tar in {m.tar for m in members}}
            for member in members:
                tars[member.tar].seek(member.start)
                stream.write(tars[member.tar].read(member.end - member.start))
        stream.write(bytes(2 * tarfile.BLOCKSIZE))
        return True

    def drop(self) -> None:
        """Forget everything."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._verified.clear()

    def _drop_unused(self) -> None:
        oldest = time.time() - _UNUSED
        for index in self._all.glob(f"*/{self._index.name}"):
            with contextlib.suppress(OSError):
                if index.stat().st_mtime < oldest:
                    shutil.rmtree(index.parent)
