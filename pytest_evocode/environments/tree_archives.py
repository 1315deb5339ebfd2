"""Archives of directory trees as they are in an environment: with the numbers of owners, modes, times and links."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

CHUNK = 2**20  # bytes
END = bytes(2 * tarfile.BLOCKSIZE)
"""Ends a tar."""


@dataclass(frozen=True, slots=True)
class DirectoryAbove:
    """A directory above a tree, which is made with this owner and mode where it is missing."""

    path: str
    uid: int
    gid: int
    mode: int

    def entry(self) -> bytes:
        """Return its entry in a tar that is unpacked at ``/``."""
        info = tarfile.TarInfo(self.path.lstrip("/"))
        info.type, info.mode = tarfile.DIRTYPE, self.mode & 0o1777
        info.uid, info.gid = self.uid, self.gid
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def filter_tar(
    stream: IO[bytes],
    above: str,
    *,
    within: Sequence[str] = ("/",),
    without: Sequence[str] = (),
    awaited: set[str] | None = None,
) -> Iterator[bytes]:
    """Yield the entries of a tar that the engine made of a container's files, but not those that give rights.

    Directories, regular files and links come along, with the numbers of their owners, and no set-id bit, no extended
    attribute, no device and no FIFO. What ends a tar is not yielded.

    Args:
        stream: The tar.
        above: The directory that the names in it are below; those that are yielded are below ``/``.
        within: The paths of which one has to contain an entry.
        without: The paths of which none may contain it.
        awaited: The paths of which one has to be that of an entry; with a slash at its end, a directory's. Each is
            taken out when it comes, and when none is left, what follows is not read. A hard link to what is not among
            them does not come.
    """
    files: set[str] = set()
    with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK) as archive:
        for member in archive:
            if awaited is not None and not awaited:
                return
            path = posixpath.join(above, member.name.rstrip("/"))
            if not any(is_in(path, each) for each in within) or any(is_in(path, each) for each in without):
                continue
            if path in within and not (member.isreg() or member.isdir()):
                continue
            if awaited is not None and path not in awaited and not (member.isdir() and f"{path}/" in awaited):
                continue
            info = without_rights(member, path, above)
            # To a file that was left out, or outside: the engine would link it to what the container has there.
            if info is None or (member.islnk() and info.linkname not in files):
                continue
            if awaited is not None:
                awaited.difference_update((path, f"{path}/"))
            yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            if member.isreg():
                files.add(info.name)
                contents = archive.extractfile(member)
                assert contents is not None
                while chunk := contents.read(CHUNK):
                    yield chunk
                yield bytes(-member.size % tarfile.BLOCKSIZE)
    while stream.read(CHUNK):  # The engine waits until all is read.
        pass


def without_rights(member: tarfile.TarInfo, path: str, above: str = "/") -> tarfile.TarInfo | None:
    """Return an entry for a path without what gives rights; None for a device and the like.

    The names that hard links lead to are below ``above``.
    """
    info = tarfile.TarInfo(path.lstrip("/"))
    info.type, info.mtime = member.type, member.mtime
    info.mode = member.mode & 0o1777
    info.uid, info.gid = member.uid, member.gid
    if member.isreg():
        info.type, info.size = tarfile.REGTYPE, member.size
    elif member.issym():
        info.linkname = member.linkname
    elif member.islnk():
        info.linkname = posixpath.join(above, member.linkname).lstrip("/")
    elif not member.isdir():
        return None
    return info


def is_in(path: str, directory: str) -> bool:
    """Tell whether a path is a directory or below it."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def parents(path: str) -> list[str]:
    """Return the directories above a path, the highest first, without the root.

    >>> parents("/srv/shop/data")
    ['/srv', '/srv/shop']
    """
    names = path.strip("/").split("/")
    return ["/" + "/".join(names[:depth]) for depth in range(1, len(names))]
