"""Reading and writing the tar streams of uploads and downloads; what comes out of an environment is not trusted."""

from __future__ import annotations

import fnmatch
import io
import os
import shutil
import tarfile
from collections.abc import Container, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO

#: A directory to upload, or one with the place below the target where it is to be.
Source = Path | tuple[Path, str]

#: Bytes of one download that are written to the host's disk at most.
DOWNLOAD_LIMIT = 512 * 2**20
#: Files, directories and whatever else one download looks at; what is excluded does not count.
ENTRY_LIMIT = 100_000
#: Reasons that are given for what a download leaves out; of the others only their number.
REASON_LIMIT = 20
#: Ends the reason why a download was ended early.
ALL_THAT_FOLLOWS = "all that follows"
_LONGEST_NAME = 300  # characters that a reason shows
#: Directories below one another in a download at most: what is nested deeper, tools on the host cannot even delete.
DEPTH_LIMIT = 100


def lay_over(sources: Sequence[Source]) -> dict[str, Path]:
    """Return the files and directories that result from laying directories over one another, by relative path.

    Where two have the same path, that of the later source is returned.
    """
    members: dict[str, Path] = {}
    for entry in sources:
        source, place = entry if isinstance(entry, tuple) else (entry, "")
        if place:
            members[place] = source
        for directory, names, files in os.walk(source):
            for name in (*names, *files):
                path = Path(directory, name)
                relative = str(PurePosixPath(place, path.relative_to(source)))
                covered = members.get(relative)
                if covered is not None and covered.is_dir() and (path.is_symlink() or not path.is_dir()):
                    members = {key: kept for key, kept in members.items() if not key.startswith(f"{relative}/")}
                members[relative] = path
    return members


def pack(
    members: Mapping[str, Path],
    target: str,
    stream: IO[bytes],
    *,
    writable: bool = False,
    directories: Mapping[str, int] = MappingProxyType({}),
    files: Mapping[str, bytes] = MappingProxyType({}),
    present: Container[str] = (),
) -> None:
    """Write a tar of files that ends up in a directory when it is unpacked at ``/``.

    Everything belongs to root, and times are kept.

    Args:
        members: The files and directories to pack, by the path below ``target``.
        target: Absolute path of a directory.
        stream: The file to write to.
        writable: Let every user write the members and the target.
        directories: The modes of more directories, by absolute path.
        files: The contents of more files, by absolute path.
        present: Relative paths of directories that get no entry, ``.`` for the target. Unpacking an entry of a
            directory that exists would change its owner and mode.
    """
    prefix = PurePosixPath(target.lstrip("/"))
    with tarfile.open(fileobj=stream, mode="w|") as archive:
        for path, mode in directories.items():
            add_entry(archive, path, None, mode)
        for path, contents in files.items():
            add_entry(archive, path, contents)
        if "." not in present and target not in directories:
            add_entry(archive, target, None, 0o777 if writable else 0o755)
        for relative in sorted(members):
            if relative in present:
                continue
            info = archive.gettarinfo(members[relative], str(prefix / relative))
            if info is None:  # A socket, which tar has no entry for.
                continue
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            if writable:
                info.mode |= 0o777 if info.isdir() else 0o666
            if info.isreg():
                with members[relative].open("rb") as file:
                    archive.addfile(info, file)
            else:
                archive.addfile(info)


def add_entry(
    archive: tarfile.TarFile,
    path: str,
    contents: bytes | None,
    mode: int = 0o644,
    *,
    owner: tuple[int, int] = (0, 0),
    modified: float = 0,
) -> None:
    """Add a file, or without contents a directory, at an absolute path to a tar that is unpacked at ``/``."""
    info = tarfile.TarInfo(path.lstrip("/"))
    info.mode, info.mtime = mode, modified
    info.uid, info.gid = owner
    if contents is None:
        info.type = tarfile.DIRTYPE
    else:
        info.size = len(contents)
    archive.addfile(info, None if contents is None else io.BytesIO(contents))


def unpack(
    stream: IO[bytes], target: Path, *, exclude: Sequence[str] = (), limit: int = DOWNLOAD_LIMIT
) -> tuple[str, ...]:
    """Unpack a tar of one file or one directory that came out of an environment.

    Only regular files and directories are written, owned by the caller and without special mode bits.

    Args:
        stream: The tar.
        target: The path of the copy on the host.
        exclude: Patterns as for :meth:`~pytest_evocode.environments.protocol.Environment.download`.
        limit: Bytes at which unpacking ends.

    Returns:
        What was left out, each with the reason: links, devices and FIFOs, what is nested deeper than
        :data:`DEPTH_LIMIT`, names that the host cannot have, and everything above the limit or :data:`ENTRY_LIMIT`.
    """
    left_out = Reasons()
    written = entries = 0
    too_deep = False
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if is_excluded(member.name, exclude):
                continue
            entries += 1
            if entries > ENTRY_LIMIT:
                left_out.end(member.name, f"over the limit of {ENTRY_LIMIT} files")
                break
            if not (member.isreg() or member.isdir()):
                left_out.add(member.name, "neither a file nor a directory")
                continue
            if written + member.size > limit:
                left_out.end(member.name, f"over the limit of {limit} bytes")
                break
            written += member.size
            # Not by tarfile: no link is ever made below the target, so a checked name cannot lead out of it.
            parts = PurePosixPath(member.name).parts
            if ".." in parts or member.name.startswith("/"):
                left_out.add(member.name, "leads out of the directory")
                continue
            if len(parts) > DEPTH_LIMIT:
                if not too_deep:
                    left_out.add(member.name, f"nested deeper than {DEPTH_LIMIT} levels, it and whatever else is")
                too_deep = True
                continue
            path = target.joinpath(*parts[1:])
            try:
                if member.isreg():
                    _write(archive, member, path)
                elif path != target:  # Downloading an empty directory copies nothing.
                    path.mkdir(parents=True, exist_ok=True)
            except OSError as error:  # Such as a name that the host cannot have.
                left_out.add(member.name, str(error.strerror))
        else:
            while stream.read(2**16):  # Padding follows the archive's end; its writer waits until it is read.
                pass
    return left_out.all()


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = archive.extractfile(member)
    assert contents is not None  # It is a regular file.
    with path.open("wb") as file:
        shutil.copyfileobj(contents, file)


class Reasons:
    """Why entries of a tar were left out, in a number that fits into a report."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._more = 0
        self._end: list[str] = []

    def add(self, name: str, why: str) -> None:
        """Leave out one entry."""
        if len(self._first) < REASON_LIMIT:
            self._first.append(_reason(name, why))
        else:
            self._more += 1

    def end(self, name: str, why: str) -> None:
        """Leave out an entry and all that follows."""
        self._end.append(f"{_reason(name, why)}, it and {ALL_THAT_FOLLOWS}")

    def all(self) -> tuple[str, ...]:
        """Return what :func:`unpack` does."""
        more = [f"and {self._more} more"] if self._more else []
        return (*self._first, *more, *self._end)


def _reason(name: str, why: str) -> str:
    shown = name if len(name) <= _LONGEST_NAME else f"...{name[-_LONGEST_NAME:]}"
    # A name need not be UTF-8, but a report has to be.
    return f"{shown.encode('utf-8', 'replace').decode()}: {why}"


def is_excluded(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether a pattern matches the name or the path of the entry or of a directory above it, as in .gitignore."""
    parts = PurePosixPath(name).parts[1:]  # The first part is the source itself.
    candidates = {*parts, *("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))}
    return any(fnmatch.fnmatch(each, pattern.rstrip("/")) for pattern in patterns for each in candidates)
