"""Manifests: what the storage has of an attempt at a moment, by contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pytest_evocode.results.frozen import ResultsRecord

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
