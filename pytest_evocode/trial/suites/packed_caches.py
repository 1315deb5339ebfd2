"""What package caches hold in a fork and in the image, looked at and packed by the means of their environment."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath
from typing import BinaryIO

from pytest_evocode.environments import Environment
from pytest_evocode.environments.tree_archives import DirectoryAbove, is_in

_LOOKING = 120.0  # seconds
_FILES = 'find "$@" ! -type d -print0 2>/dev/null'
# After the files: the size in KiB of each cache, and owner and mode of the directories above them.
_ALL = rf"""{_FILES}
printf '\0\0'
du -sk -- "$@" 2>/dev/null
printf '\0\0'
for path; do
  while path=${{path%/*}}; [ -n "$path" ]; do [ -L "$path" ] || stat -c '%u %g %a %n' -- "$path" 2>/dev/null; done
done
true
"""


def files_in(environment: Environment, places: Sequence[str]) -> frozenset[str]:
    """Return the paths of all but directories in some directories; raises EnvironmentFault."""
    return frozenset(_parts(environment, _FILES, places)[0])


def look_at(
    environment: Environment, places: Sequence[str]
) -> tuple[frozenset[str], dict[str, int], tuple[DirectoryAbove, ...]]:
    """Return the same, the bytes of each directory, and the directories above all of them; raises EnvironmentFault."""
    files, sizes, above = _parts(environment, _ALL, places)
    return frozenset(files), _bytes(sizes), _above(above)


def _parts(environment: Environment, script: str, places: Sequence[str]) -> list[list[str]]:
    """Run a script as root on some directories, and return the parts of its output, each without its empty ones."""
    with tempfile.TemporaryFile() as output:
        argv = ["bash", "-c", script, "look", *places]
        environment.exec(argv, user="0", cwd="/", timeout=_LOOKING, stdout=output)
        output.seek(0)
        parts = output.read().decode("utf-8", "surrogateescape").split("\0\0")
    return [[each for each in part.split("\0") if each.strip()] for part in parts]


def _lines(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in text.splitlines()]


def _bytes(texts: Iterable[str]) -> dict[str, int]:
    """Return the sizes in the lines of ``du -sk``."""
    found = (line.partition("\t") for line in _lines(texts))
    return {path: int(size) * 2**10 for size, _, path in found if size.isdecimal()}


def _above(texts: Iterable[str]) -> tuple[DirectoryAbove, ...]:
    """Return the directories in the lines of ``stat``, the highest first."""
    found = {}
    for line in _lines(texts):
        uid, gid, mode, path = line.split(" ", 3)
        found[path] = DirectoryAbove(path, int(uid), int(gid), int(mode, 8))
    return tuple(found[path] for path in sorted(found))


def write_entries(archive: tarfile.TarFile, names: Collection[str], paths: Sequence[str], file: BinaryIO) -> None:
    """Write some entries of an archive of directories, with these and those that the entries are in."""
    directories = {path.lstrip("/") for path in paths}
    directories |= {
        str(parent)
        for name in names
        for parent in PurePosixPath(name).parents
        if any(is_in(f"/{parent}", path) for path in paths)
    }
    copied: set[str] = set()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as target:
        for member in archive.getmembers():
            if member.isdir() and member.name in directories:
                member.mtime = 0  # So that the same files are the same archive, whenever they were brought.
                target.addfile(member)
            elif member.name in names:
                contents = archive.extractfile(member) if member.isreg() or member.islnk() else None
                if member.islnk() and member.linkname in copied:
                    contents = None
                elif member.islnk():  # To a file that is left out.
                    linked = archive.getmember(member.linkname)
                    member.type, member.size = tarfile.REGTYPE, linked.size
                copied.add(member.name)
                target.addfile(member, contents)


def as_in(member: tarfile.TarInfo, other: tarfile.TarInfo | None) -> bool:
    """Tell whether two entries of archives are the same: of one kind, size, time, owner, mode and target."""
    return other is not None and _facts(member) == _facts(other)


def _facts(member: tarfile.TarInfo) -> tuple[object, ...]:
    return (member.type, member.size, int(member.mtime), member.uid, member.gid, member.mode, member.linkname)
