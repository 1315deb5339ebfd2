"""A container's files through the engine's eyes, which ask none of the container's own tools."""

from __future__ import annotations

import base64
import io
import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docker import APIClient

# Go's mode bits.
_DIRECTORY = 1 << 31
_SYMLINK = 1 << 27
_SPECIAL = 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19


def look_up(client: APIClient, container: str, path: str) -> Mapping[str, Any] | None:
    """The engine's description of a path, symlinks not followed; None where there is nothing."""
    url = client._url("/containers/{0}/archive", container)  # type: ignore[attr-defined]
    response = client.head(url, params={"path": path})
    if response.status_code == 404:
        return None
    # Below a file an engine says 500 and, to a HEAD, no more than that.
    if response.status_code == 500 and path.strip("/"):
        parent = look_up(client, container, posixpath.dirname(path.rstrip("/")))
        if parent is None or not int(parent["mode"]) & _DIRECTORY:
            return None
    response.raise_for_status()
    found: dict[str, Any] = json.loads(base64.b64decode(response.headers["X-Docker-Container-Path-Stat"]))
    return found


def is_link(client: APIClient, container: str, path: str) -> bool:
    """Whether a path is a symlink."""
    found = look_up(client, container, path)
    return found is not None and bool(int(found["mode"]) & _SYMLINK)


def is_directory(client: APIClient, container: str, path: str) -> bool:
    """Whether a path is a directory or a symlink to one."""
    found = look_up(client, container, path)
    if found is not None and int(found["mode"]) & _SYMLINK:
        found = look_up(client, container, found["linkTarget"])
    return found is not None and bool(int(found["mode"]) & _DIRECTORY)


def refusal(info: Mapping[str, Any], limit: int) -> str | None:
    """Why a file is not read, from the engine's description of it."""
    mode = int(info["mode"])
    if mode & _SYMLINK:
        return "a symlink"
    if mode & _DIRECTORY:
        return "a directory"
    if mode & _SPECIAL:
        return "not a regular file"
    if int(info["size"]) > limit:
        return f"{info['size']} bytes long, over the limit of {limit}"
    return None


class ChunkReader(io.RawIOBase):
    """A file over the chunks of a streamed response."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._chunks, b"")
        part = self._rest[: len(buffer)]
        self._rest = self._rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)
