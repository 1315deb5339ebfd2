"""Archives of what an agent declared as its work, made harmless before they come to where a suite runs.

An agent shapes what is packed of its work as it likes. So every entry is looked at: it lies where it was declared to,
below directories that were declared as well, gives no rights, and no link leads out.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from pytest_evocode.environments.archive import DEPTH_LIMIT, Reasons, is_excluded
from pytest_evocode.environments.tree_archives import is_in, without_rights
from pytest_evocode.errors import UnreadableFile

SIZE_LIMIT = 2 * 2**30
"""Bytes of all artifacts of a round."""
ENTRIES_LIMIT = 200_000
"""Files, directories and links of one artifact."""
_PATH_LIMIT = 4000  # bytes; the kernel refuses paths of 4096
_LINKS_FOLLOWED = 40
_ROOT = ""


def too_large(limit: int) -> str:
    """Return why an artifact is left out that has too many bytes."""
    return f"is too large: all artifacts of a round may have {limit} bytes"


class BoundedFile(io.RawIOBase):
    """Writes to another file until there are too many bytes; then every write raises UnreadableFile."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self._left = limit

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Write bytes, and return how many they are."""
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableFile(too_large(SIZE_LIMIT))
        return self._file.write(data)


@dataclass(frozen=True, slots=True)
class DeclaredTree:
    """A file or directory that was packed from where the agent left it."""

    source: str
    """The absolute path that it was packed from."""
    target: str
    """The absolute path that it is to have; no link leads there."""
    exclude: Sequence[str] = ()
    """Patterns as for :meth:`~pytest_evocode.environments.protocol.Environment.download`."""
    without: Sequence[str] = ()
    """Paths below the target at which nothing is put."""


def copy_declared(packed: IO[bytes], tree: DeclaredTree, archive: tarfile.TarFile) -> tuple[str, ...]:
    """Copy a packed file or directory into an archive that is unpacked at ``/``, as far as it is harmless.

    Everything belongs to root there and has no set-id bit, and every user may write to the directory itself.

    Args:
        packed: A tar as of :meth:`~pytest_evocode.environments.protocol.Environment.pack_trees`.
        tree: What was packed.
        archive: A tar that is open for writing.

    Returns:
        What was left out, each with the reason.

    Raises:
        UnreadableFile: There are more entries than :data:`ENTRIES_LIMIT`.
    """
    left_out = Reasons()
    with tarfile.open(fileobj=packed, mode="r:") as source:
        members = _members(source, tree, left_out)
        kept: set[str] = set()
        for name, member in members.items():
            why = _refusal(name, member, members, kept, tree)
            if why:
                left_out.add(os.path.join(tree.source, name) if name else tree.source, why)
                continue
            kept.add(name)
            contents = source.extractfile(member) if member.isreg() else None
            archive.addfile(_harmless(name, member, tree), contents)
    return left_out.all()


def _members(source: tarfile.TarFile, tree: DeclaredTree, left_out: Reasons) -> dict[str, tarfile.TarInfo]:
    """Return the entries by their paths below the tree, in the order of the archive."""
    members: dict[str, tarfile.TarInfo] = {}
    top = tree.source.strip("/")
    for number, member in enumerate(source, 1):
        if number > ENTRIES_LIMIT:
            raise UnreadableFile(f"has more than {ENTRIES_LIMIT} files")
        name = member.name.strip("/")
        if name != top and not name.startswith(f"{top}/"):
            left_out.add(name, "is not where it was declared")
            continue
        name = name[len(top) :].strip("/")
        if not is_excluded(f"top/{name}", tree.exclude):
            members.setdefault(name, member)
    return members


def _refusal(
    name: str, member: tarfile.TarInfo, members: Mapping[str, tarfile.TarInfo], kept: set[str], tree: DeclaredTree
) -> str:
    """Return why an entry is left out; empty where it is not."""
    parts = PurePosixPath(name).parts
    place = os.path.join(tree.target, name)
    if any(is_in(place, each) for each in tree.without):
        return "is a place of the suite's own"
    if ".." in parts:
        return "leads out of what was declared"
    if len(parts) > DEPTH_LIMIT or len(os.fsencode(place)) > _PATH_LIMIT:
        return "is nested too deeply"
    above = os.path.dirname(name)
    if name and not (above in kept and members[above].isdir()):
        return "is below what was left out, or below a link"
    if member.issym():
        if name == _ROOT:
            return "is a link"
        return "" if _stays_inside(name, members) else "is a link that leads out of what was declared"
    if member.islnk():
        other = member.linkname.strip("/")[len(tree.source.strip("/")) :].strip("/")
        return "" if other in kept and members[other].isreg() else "is a link to what was left out"
    return "" if member.isreg() or member.isdir() else "is neither a file nor a directory nor a link"


def _stays_inside(name: str, members: Mapping[str, tarfile.TarInfo]) -> bool:
    """Tell whether following a link never leads above the tree, whatever the links that it passes do."""
    if members[name].linkname.startswith("/"):
        return False
    here = list(PurePosixPath(name).parts[:-1])
    waiting = members[name].linkname.split("/")
    followed = 0
    while waiting:
        part = waiting.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                return False
            here.pop()
            continue
        found = members.get("/".join([*here, part]))
        if found is None or not found.issym():
            here.append(part)
            continue
        followed += 1
        if found.linkname.startswith("/") or followed > _LINKS_FOLLOWED:
            return False
        waiting = [*found.linkname.split("/"), *waiting]
    return True


def _harmless(name: str, member: tarfile.TarInfo, tree: DeclaredTree) -> tarfile.TarInfo:
    info = without_rights(member, os.path.join(tree.target, name).rstrip("/"))
    assert info is not None  # It is a file, a directory or a link.
    info.uid = info.gid = 0
    info.mode = 0o777 if name == _ROOT and member.isdir() else info.mode & 0o777
    if member.islnk():
        other = member.linkname.strip("/")[len(tree.source.strip("/")) :].strip("/")
        info.linkname = os.path.join(tree.target, other).strip("/")
    return info
