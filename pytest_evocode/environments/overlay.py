"""Reading the layers of overlay file systems; the sandbox launcher imports this, so the standard library only.

What lies over an image is half of the truth: a directory shows the image's files through it unless it is opaque, and a
character device 0:0, a whiteout, hides what the image has there. So a snapshot is looked at whole, as the kernel shows
it, beside the image.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LINKS_FOLLOWED = 40
NO_DEVICE = os.makedev(0, 0)


def is_below(path: str, directories: Sequence[str]) -> bool:
    """Tell whether a path is one of some directories or in one of them.

    >>> [is_below(path, ["/app"]) for path in ("/app", "/app/x", "/application")]
    [True, True, False]
    """
    return any(path == each or path.startswith(f"{each}/") for each in directories)


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a path."""

    status: os.stat_result
    places: tuple[str, ...]
    """Where on the host it is; for a directory, in all layers that show in it, the highest first."""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.status.st_mode)

    def hides(self, below: Entry | None) -> bool:
        """Tell whether it is a directory in place of one of the image's, of which nothing shows in it."""
        both = below is not None and below.is_directory and self.is_directory
        return below is not None and both and not set(self.places) & set(below.places)

    def names_beside(self, below: Entry | None) -> set[str]:
        """Return the names that it has in layers in which the image's entry is not; there may be nothing at some."""
        of_image = below.places if below is not None else ()
        return {name for each in self.places if each not in of_image for name in os.listdir(each)}


class LayeredFiles:
    """The files of an image or a snapshot, seen through its layers as the kernel shows them; nobody writes to them.

    Args:
        mounts: The layers, the highest first, by the path at which they are mounted, without a slash at its end.
        opaque: The attribute of a directory that hides what the layers below it have there.
    """

    def __init__(self, mounts: Mapping[str, Sequence[str]], opaque: str) -> None:
        self.opaque = opaque
        self.mounts = frozenset(mounts)
        self._found: dict[str, Entry | None] = {
            path: Entry(os.lstat(layers[0]), tuple(layers)) if layers else None for path, layers in mounts.items()
        }

    def find(self, path: str) -> Entry | None:
        """Return what stands at an absolute path, whose links are not followed; None where there is nothing."""
        if path not in self._found:
            self._found[path] = self._look(path)
        return self._found[path]

    def _look(self, path: str) -> Entry | None:
        above, _, name = path.rpartition("/")
        found: list[str] = []
        status = None
        directory = self.find(above)
        for layer in directory.places if directory is not None and directory.is_directory else ():
            here = f"{layer}/{name}"
            try:
                info = os.lstat(here)
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(info.st_mode):
                if status is None and not (stat.S_ISCHR(info.st_mode) and info.st_rdev == NO_DEVICE):
                    return Entry(info, (here,))
                break
            status = status or info
            found.append(here)
            if self._is_opaque(here):
                break
        return None if status is None else Entry(status, tuple(found))

    def _is_opaque(self, directory: str) -> bool:
        try:
            return os.getxattr(directory, self.opaque, follow_symlinks=False) == b"y"
        except OSError:
            return False

    def resolve(self, path: str) -> str:
        """Return the path that an absolute one leads to, all links followed."""
        resolved, names = "", path.strip("/").split("/")
        followed = 0
        while names:
            name = names.pop(0)
            if name in ("", "."):
                continue
            if name == "..":
                resolved = resolved.rpartition("/")[0]
                continue
            found = self.find(f"{resolved}/{name}")
            if found is not None and stat.S_ISLNK(found.status.st_mode) and followed < _LINKS_FOLLOWED:
                followed += 1
                target = os.readlink(found.places[0])
                resolved = "" if target.startswith("/") else resolved
                names = [*target.split("/"), *names]
            else:
                resolved = f"{resolved}/{name}"
        return resolved or "/"


def same(one: Entry | None, other: Entry | None) -> bool:
    """Tell whether a snapshot has at a path what the image has there."""
    if one is None or other is None:
        return one is other
    return one.places[0] == other.places[0]


def list_changes(snapshot: LayeredFiles, image: LayeredFiles, outside: Sequence[str] = ()) -> list[str]:
    """List the paths at which a snapshot differs from its image.

    They are those of files and links made, changed and deleted, of directories deleted, made empty, and with another
    mode or owner. For a path that is too long to be opened, the directory above it is listed.

    Args:
        snapshot: The files of the snapshot, whose lowest layers are the image's.
        image: The files of the image.
        outside: Directories in which nothing is listed; ``/`` leaves out nothing.

    Raises:
        OSError: A directory cannot be read.
    """
    outside = [path.rstrip("/") for path in outside if path.strip("/")]
    found: list[str] = []
    waiting = [*snapshot.mounts]
    while waiting:
        here = waiting.pop()
        entry, before = snapshot.find(here), image.find(here)
        assert entry is not None
        try:
            names = entry.names_beside(before)
            if before is not None and entry.hides(before):
                names |= before.names_beside(None)
            inside = [(f"{here}/{name}", snapshot.find(f"{here}/{name}")) for name in names]
            changed = [(path, new) for path, new in inside if not same(new, image.find(path))]
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            found.append(here)
            continue
        for path, new in changed:
            if path not in snapshot.mounts and not is_below(path, outside):
                (waiting if new is not None and new.is_directory else found).append(path)
        if here not in snapshot.mounts and _is_other(entry, before, filled=any(each for _, each in inside)):
            found.append(here)
    return found


def _is_other(directory: Entry, before: Entry | None, *, filled: bool) -> bool:
    """Tell whether a changed directory counts by itself."""
    if before is None or not before.is_directory:
        return not filled
    old, new = before.status, directory.status
    return (old.st_mode, old.st_uid, old.st_gid) != (new.st_mode, new.st_uid, new.st_gid)
