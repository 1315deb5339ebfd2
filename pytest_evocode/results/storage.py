"""Attempts in a storage, beyond one machine: files and archives of snapshots, each called by its contents.

Below the attempt's path the storage has ``objects/<sha256>`` and ``manifests/<number>-<sha256>.json``. Objects are
uploaded unless they are there, and the manifest that names them is written last, so a killed upload leaves the state
before. Two manifests are kept: the newest, and the newest of an earlier round, to go on from where a layer is damaged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from pytest_evocode.errors import DamagedObject, StorageFault, TakenOver, UsageError
from pytest_evocode.results.directory import STATE_FILE, AttemptDirectory
from pytest_evocode.results.parsing import parse_object, read_record
from pytest_evocode.results.records import AttemptRecord, ResultsRecord
from pytest_evocode.tasks.atomic_write import replacing, write_atomically

_PASSWORD = re.compile(r"^[a-z0-9+.-]+://[^/@]*:[^/@]*@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Whole files by name, below one URL; it can be pickled, and is opened where it is first used.

    Args:
        url: A directory, or any URL that ``fsspec`` has an implementation for, such as ``s3://bucket/prefix``.
        options: What that implementation is given, such as endpoint and keys; they are never shown or written.

    Raises:
        UsageError: The URL has a password in it, or a package is missing.
        StorageFault: Every verb raises it where the place cannot be read or written.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if _PASSWORD.match(self.url):
            raise UsageError(
                "the storage's URL has a password in it, which records and logs would show; give it by the variables "
                "of the provider (AWS_SECRET_ACCESS_KEY), by FSSPEC_<PROTOCOL>_<OPTION> or by storage options"
            )

    def sizes(self, directory: str) -> dict[str, int]:
        """Return the names of the files in a directory, without the directory's, and the bytes of each."""
        with self._opened("list", directory) as (filesystem, root):
            try:
                found = filesystem.ls(f"{root}/{directory}", detail=True, refresh=True)
            except FileNotFoundError:
                return {}
            return {entry["name"].rpartition("/")[2]: int(entry["size"]) for entry in found if entry["type"] == "file"}

    def tree(self, directory: str) -> list[str]:
        """Return the names of all files below a directory, from the store's root."""
        with self._opened("list", directory) as (filesystem, root):
            filesystem.invalidate_cache()
            try:
                found = filesystem.find(f"{root}/{directory}" if directory else root)
            except FileNotFoundError:
                return []
            return sorted(str(path).removeprefix(f"{root}/") for path in found)

    def read(self, name: str) -> bytes | None:
        """Return the contents of a file, None where there is none."""
        with self._opened("read", name) as (filesystem, root):
            try:
                contents: bytes = filesystem.cat_file(f"{root}/{name}")
            except FileNotFoundError:
                return None
            return contents

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files; a killed process may leave some of them cut off."""
        if files:
            with self._opened("write", next(iter(files))) as (filesystem, root):
                filesystem.pipe({f"{root}/{name}": contents for name, contents in files.items()})

    def remove(self, names: list[str]) -> None:
        """Remove files; those that are gone are passed over."""
        if names:
            with self._opened("remove", names[0]) as (filesystem, root), contextlib.suppress(FileNotFoundError):
                filesystem.rm([f"{root}/{name}" for name in names])

    @contextlib.contextmanager
    def _opened(self, verb: str, name: str) -> Iterator[tuple[Any, str]]:
        opened = _filesystem(self.url, self.options)
        try:
            yield opened
        except Exception as error:  # Each implementation has exceptions of its own.
            raise StorageFault(
                f"the storage {self.url}: it cannot {verb} {name}: {type(error).__name__}: {error}"
            ) from error


def _filesystem(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the implementation for a URL, which fsspec keeps, and the path there."""
    try:
        from fsspec.core import split_protocol, url_to_fs
    except ImportError:
        raise UsageError("storage for attempts needs fsspec: pip install 'pytest-evocode[storage]'") from None
    is_local = split_protocol(url)[0] in (None, "file", "local")
    try:
        filesystem, root = url_to_fs(url, **{"auto_mkdir": True} if is_local else {}, **options)
    except ImportError as error:
        raise UsageError(f"the storage {url}: {error}; for S3: pip install 'pytest-evocode[storage]'") from None
    except ValueError as error:
        raise UsageError(f"the storage {url}: {error}") from None
    except Exception as error:  # Some implementations connect at once.
        raise StorageFault(f"the storage {url} cannot be opened: {type(error).__name__}: {error}") from error
    return filesystem, str(root).rstrip("/")


MANIFEST_VERSION = 1


class ContentKey(ResultsRecord):
    """An object of the storage, which is called by the SHA-256 of its contents."""

    sha256: str
    size: int

    @classmethod
    def of(cls, contents: bytes) -> ContentKey:
        """Return the key of some contents."""
        return cls(sha256=hashlib.sha256(contents).hexdigest(), size=len(contents))


class LayerKeys(ResultsRecord):
    """One layer of a snapshot: an archive, cut into parts."""

    name: str
    """The engine's own name for the contents of the layer, by which it is known not to have changed."""
    parts: tuple[ContentKey, ...]


class SnapshotKeys(ResultsRecord):
    """A snapshot: what lies over the task's image, the lowest layer first."""

    environment: str
    image: str
    """The engine's key of the image that the layers lay over."""
    layers: tuple[LayerKeys, ...]


class AttemptManifest(ResultsRecord):
    """One state of an attempt that can be gone on from."""

    version: int = MANIFEST_VERSION
    number: int
    """Counts the manifests of the attempt, from 1."""
    writer: str
    """Which session wrote it, so that one that was taken for lost notices that another went on."""
    last_turn: int = 0
    """The index of the last round whose turn has ended; 0 where none has, or all has ended."""
    files: dict[str, ContentKey] = {}
    """The files of the attempt's directory, by their paths in it."""
    snapshots: dict[str, SnapshotKeys] = {}
    """The snapshots that ``state.json`` mentions, by reference."""

    def objects(self) -> Iterator[ContentKey]:
        """Yield the keys of all objects that are named."""
        yield from self.files.values()
        for snapshot in self.snapshots.values():
            for layer in snapshot.layers:
                yield from layer.parts


_BLOCK = 512
_LARGEST = 16 * 2**20
"""Bytes of the largest part."""
_SMALLEST = 2**20
"""Bytes of the smallest part but the last."""
_ONE_IN = 64
"""At how many of the entries a part may end."""
_OF_NEXT = b"xgLK"
"""The types of entries that tell of the next one."""


def archive_parts(archive: BinaryIO) -> Iterator[bytes]:
    """Yield the parts of a tar, which joined give the tar.

    A part ends where the name of an entry says so, so that one more file changes the part that it is in and no later
    one; and after 16 MiB.
    """
    part = bytearray()
    is_told_of = False
    while header := archive.read(_BLOCK):
        kind = header[156:157]
        if len(part) >= _SMALLEST and not is_told_of and zlib.crc32(header[:100]) % _ONE_IN == 0:
            yield bytes(part)
            part.clear()
        is_told_of = kind in _OF_NEXT and bool(kind.strip(b"\0"))
        part += header
        left = -(-_size(header) // _BLOCK) * _BLOCK
        while left:
            if len(part) >= _LARGEST:
                yield bytes(part)
                part.clear()
            contents = archive.read(min(left, _LARGEST - len(part)))
            if not contents:
                break
            left -= len(contents)
            part += contents
    if part:
        yield bytes(part)


def _size(header: bytes) -> int:
    """Return how many bytes the contents of an entry have; 0 for the blocks that end a tar."""
    field = header[124:136]
    if field[0] & 0x80:  # Too large for octal digits.
        return int.from_bytes(field[1:], "big")
    return int(field.rstrip(b"\0 ") or b"0", 8)


WRITER_FILE = "storage.json"
"""Says which session's manifests describe the directory that it lies in."""
_BATCH = 32 * 2**20
"""Bytes that are uploaded at a time."""


@dataclass(slots=True)
class AttemptCopy:
    """The copy of one attempt; one object serves one session, and one thread at a time."""

    store: ObjectStore
    directory: AttemptDirectory
    _writer: str = field(default_factory=lambda: uuid.uuid4().hex)
    _last: AttemptManifest | None = None
    """The manifest that this session wrote last."""
    _kept: list[tuple[str, AttemptManifest]] = field(default_factory=list)
    """The manifests that the storage has, the newest first, with their names."""
    _there: dict[str, int] | None = None
    """The objects that the storage has, and their sizes; None as long as that is not known."""
    _hashed: dict[str, tuple[tuple[int, int, int], ContentKey]] = field(default_factory=dict)
    """The keys of files, with what a change of the file would change."""

    @property
    def place(self) -> str:
        """Where the copy lies in the storage: the attempt's path in a results directory."""
        parts = (*self.directory.path.parts[-5:], *self._part.parts)
        return "/".join(parts)

    @property
    def _part(self) -> Path:
        """The part of the attempt's directory that this copy is of: all but in single-round mode."""
        return self.directory.state_directory.relative_to(self.directory.path)

    # Saving.

    def put(self, parts: Iterable[bytes]) -> tuple[ContentKey, ...]:
        """Upload objects unless they are there, and return their keys."""
        keys = []
        waiting: dict[str, bytes] = {}
        for contents in parts:
            keys.append(key := ContentKey.of(contents))
            if self._objects().get(key.sha256) != key.size:
                waiting[key.sha256] = contents
            if sum(map(len, waiting.values())) >= _BATCH:
                self._upload(waiting)
                waiting = {}
        self._upload(waiting)
        return tuple(keys)

    def _upload(self, contents: Mapping[str, bytes]) -> None:
        self.store.write({self._object(name): each for name, each in contents.items()})
        self._objects().update({name: len(each) for name, each in contents.items()})

    def save(
        self,
        snapshots: Mapping[str, SnapshotKeys],
        *,
        state: bytes | None,
        last_turn: int,
        travels: bool = True,
    ) -> bool:
        """Upload what is new of the attempt's files and write a manifest, unless nothing is new.

        Args:
            snapshots: What ``state`` mentions, uploaded with :meth:`put`.
            state: The contents of ``state.json``; None for an attempt without.
            last_turn: The index of the last round whose turn has ended by then.
            travels: Whether the state can be gone on from elsewhere.

        Returns:
            Whether that is done; not so where ``state.json`` has changed since, and other files with it.

        Raises:
            TakenOver: Another session goes on with the attempt.
            StorageFault: The storage cannot be read or written.
        """
        files = self._files()
        name = (self._part / STATE_FILE).as_posix()
        found = files.pop(name, None)
        if found != (None if state is None else ContentKey.of(state)):
            return False
        if found is not None and travels:
            files[name] = found
        manifest = AttemptManifest(
            number=0, writer=self._writer, last_turn=last_turn, files=files, snapshots=dict(snapshots)
        )
        if self._last is None and not files:
            return True  # Nothing has begun yet.
        if self._last is None or manifest != self._last.model_copy(update={"number": 0}):
            self._commit(manifest)
        return True

    def _commit(self, manifest: AttemptManifest) -> None:
        """Write a manifest, say on this machine whose it is, and remove what none needs any more."""
        names = self._manifest_names()
        if self._last is not None and names[:1] != [_manifest_name(self._last)]:
            raise TakenOver(
                f"the storage {self.store.url}: another session goes on with {self.place}, so this one stores no more "
                "of it"
            )
        if self._last is None:
            self._kept = list(self._readable(names))
        number = max((_number(name) for name in names), default=0) + 1
        manifest = manifest.model_copy(update={"number": number})
        name = _manifest_name(manifest)
        self.store.write({f"{self.place}/manifests/{name}": _as_bytes(manifest)})
        self._last = manifest
        if self.directory.path.is_dir():
            marker = self.directory.state_directory / WRITER_FILE
            if not marker.exists() or self._local_writer() != self._writer:
                write_atomically(marker, json.dumps({"writer": self._writer}) + "\n")
        earlier = [entry for entry in self._kept if entry[1].last_turn < manifest.last_turn][:1]
        self._kept = [(name, manifest), *earlier]
        self._remove_unneeded({*names, name})

    def _remove_unneeded(self, names: set[str]) -> None:
        kept = {name for name, _ in self._kept}
        needed = {key.sha256 for _, manifest in self._kept for key in manifest.objects()}
        # Manifests first: one that is there has all that it names.
        self.store.remove([f"{self.place}/manifests/{name}" for name in sorted(names - kept)])
        unneeded = sorted(self._objects().keys() - needed)
        self.store.remove([self._object(name) for name in unneeded])
        for name in unneeded:
            del self._objects()[name]

    def _files(self) -> dict[str, ContentKey]:
        """Upload what is new of the attempt's files, and return the keys of all."""
        found: dict[str, ContentKey] = {}
        top = self.directory.path
        for path in _ready_files(self.directory.state_directory, wholly=self._part == Path()):
            name = path.relative_to(top).as_posix()
            with contextlib.suppress(FileNotFoundError):  # A later turn, or the end of one, removes files.
                status = path.lstat()
                if not stat.S_ISREG(status.st_mode):
                    continue
                marks = status.st_ino, status.st_size, status.st_mtime_ns
                known = self._hashed.get(name)
                if known is None or known[0] != marks:
                    known = marks, self.put([path.read_bytes()])[0]
                    self._hashed[name] = known
                found[name] = known[1]
        return found

    # Restoring.

    def manifests(self) -> Iterator[AttemptManifest]:
        """Yield what can be gone on from, the newest first; manifests that were cut off are passed over."""
        yield from (manifest for _, manifest in self._readable(self._manifest_names()))

    def is_here(self, manifest: AttemptManifest) -> bool:
        """Return whether the attempt's directory is at least as new as a manifest: its writer wrote here."""
        return self._local_writer() == manifest.writer

    def get(self, key: ContentKey) -> bytes:
        """Return an object; raises DamagedObject where it has other contents than it is called by."""
        contents = self.store.read(self._object(key.sha256))
        why = ""
        if contents is None:
            why = "it is gone"
        elif (digest := hashlib.sha256(contents).hexdigest()) != key.sha256:
            why = f"it is damaged: the SHA-256 of its contents is {digest}"
        if contents is None or why:
            # Or else it would count as there when the same contents are to be uploaded.
            self.store.remove([self._object(key.sha256)])
            self._objects().pop(key.sha256, None)
            raise DamagedObject(self._object(key.sha256), why)
        return contents

    def read_files(self, manifest: AttemptManifest) -> dict[str, bytes]:
        """Return the attempt's files by path; raises DamagedObject."""
        return {name: self.get(key) for name, key in manifest.files.items()}

    def put_back(self, files: Mapping[str, bytes]) -> Path | None:
        """Write the attempt's files, in place of what there is of the attempt, and return where that is now, if any."""
        aside = self._set_aside()
        for name, contents in files.items():
            path = self.directory.path / name
            if self._part != Path() and name == "result.json":
                self._add_to_record(contents)
                continue
            if not path.resolve().is_relative_to(self.directory.path.resolve()):
                raise StorageFault(f"the storage {self.store.url}: {self.place} names a file elsewhere: {name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(contents)
        return aside

    def _add_to_record(self, contents: bytes) -> None:
        """In single-round mode, add what is stored of the attempt to the record that has the other rounds."""
        stored = read_record(AttemptRecord, parse_object(contents), cases=False)
        with self.directory.composing() as here:
            others = here.rounds if here is not None else ()
            own = {record.index: record for record in stored.rounds if record.round == self.directory.only_round}
            rounds = {**{record.index: record for record in (*stored.rounds, *others)}, **own}
            ordered = tuple(record for _, record in sorted(rounds.items()))
            self.directory.write_attempt(stored.model_copy(update={"rounds": ordered}))

    def claim(self, manifest: AttemptManifest) -> None:
        """Go on from a manifest: from here on no other session may store anything of the attempt."""
        self._commit(manifest.model_copy(update={"writer": self._writer}))

    def forget(self) -> None:
        """Remove the copy."""
        # Manifests first: one that is there has all that it names.
        names = self.store.tree(self.place)
        manifests = [name for name in names if "/manifests/" in name]
        self.store.remove(manifests)
        self.store.remove([name for name in names if name not in manifests])

    # What both need.

    def _set_aside(self) -> Path | None:
        here = self.directory.state_directory
        if not here.is_dir() or not any(here.iterdir()):
            return None
        aside = self.directory.path.parents[4] / ".replaced" / f"{self.directory.path.name}-{uuid.uuid4().hex[:8]}"
        aside.parent.mkdir(exist_ok=True)
        os.rename(here, aside)
        return aside

    def _local_writer(self) -> str | None:
        try:
            writer: str = json.loads((self.directory.state_directory / WRITER_FILE).read_bytes())["writer"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return writer

    def _manifest_names(self) -> list[str]:
        """Return the names of the manifests, the newest first."""
        names = (name for name in self.store.sizes(f"{self.place}/manifests") if name.endswith(".json"))
        return sorted(names, reverse=True)

    def _readable(self, names: Iterable[str]) -> Iterator[tuple[str, AttemptManifest]]:
        for name in names:
            contents = self.store.read(f"{self.place}/manifests/{name}")
            if contents is None or hashlib.sha256(contents).hexdigest()[:16] != name[9:-5]:
                continue
            try:
                values = json.loads(contents)
                if values.get("version") != MANIFEST_VERSION:
                    raise StorageFault(
                        f"the storage {self.store.url}: {self.place} was stored by another version of pytest-evocode; "
                        "continue it with that"
                    )
                yield name, AttemptManifest.model_validate(values)
            except (ValueError, ValidationError) as error:
                raise StorageFault(
                    f"the storage {self.store.url}: {self.place}: {name} is no manifest: {error}"
                ) from None

    def _objects(self) -> dict[str, int]:
        if self._there is None:
            self._there = self.store.sizes(f"{self.place}/objects")
        return self._there

    def _object(self, name: str) -> str:
        return f"{self.place}/objects/{name}"


def _ready_files(directory: Path, *, wholly: bool) -> Iterator[Path]:
    """Yield the files of an attempt, without those that are not ready: their names begin with a dot."""
    for above, names, files in os.walk(directory):
        are_artifacts = "artifacts" in Path(above).relative_to(directory).parts
        names[:] = sorted(name for name in names if are_artifacts or not name.startswith("."))
        for name in sorted(files):
            if are_artifacts or not (name.startswith(".") or name == WRITER_FILE):
                yield Path(above, name)
    if not wholly and (record := directory.parents[1] / "result.json").is_file():
        yield record


def _as_bytes(manifest: AttemptManifest) -> bytes:
    return (json.dumps(manifest.model_dump(mode="json"), sort_keys=True) + "\n").encode()


def _manifest_name(manifest: AttemptManifest) -> str:
    """Return the name that a manifest is written under, by which one that was cut off is known."""
    return f"{manifest.number:08d}-{hashlib.sha256(_as_bytes(manifest)).hexdigest()[:16]}.json"


def _number(name: str) -> int:
    return int(name[:8]) if name[:8].isdecimal() else 0
