"""Reading the layers of overlay file systems; the sandbox launcher imports this, so the standard library only."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence


class Area:
    """A part of a file system: everything but what is in the directories ``outside``, and yet what is at ``but``.

    ``/`` in ``outside`` leaves out nothing.
    """

    def __init__(self, outside: Sequence[str] = (), but: Sequence[str] = ()) -> None:
        self._outside = [path.rstrip("/") for path in outside if path.strip("/")]
        self._but = [path.rstrip("/") for path in but if path.strip("/")]

    def has(self, path: str) -> bool:
        """Tell whether a path belongs to it; so does what is above one of ``but``, and may stand in its way."""
        return self.has_inside(path) or any(each.startswith(f"{path}/") for each in self._but)

    def has_inside(self, path: str) -> bool:
        """Tell whether what is at a path belongs to it whatever stands there; not so what is above one of ``but``."""
        return not is_below(path, self._outside) or is_below(path, self._but)


def is_below(path: str, directories: Sequence[str]) -> bool:
    """Tell whether a path is one of some directories or in one of them.

    >>> [is_below(path, ["/app"]) for path in ("/app", "/app/x", "/application")]
    [True, True, False]
    """
    return any(path == each or path.startswith(f"{each}/") for each in directories)


def is_other_directory(path: str, mode: int, owner: tuple[int, int], below: Sequence[str]) -> bool:
    """Tell whether a directory of a layer has another mode or owner than the one that it lies over.

    Args:
        path: Its path in the layer.
        mode: Its mode.
        owner: The numbers of its user and group.
        below: The layers below, the highest first.
    """
    for layer in below:
        try:
            status = os.lstat(layer + path)
        except OSError:
            continue
        known = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
        return stat.S_ISDIR(status.st_mode) and known != (stat.S_IMODE(mode), *owner)
    return False


def list_layer(top: str, prefix: str, area: Area, below: Sequence[str] = ()) -> list[str]:
    """List what a layer of an overlay file system holds: files, directories that are empty, and those that are others.

    The last have another mode or owner than in the layers below. A deleted file counts, because it is a device in the
    layer. For a path that is too long to be opened, the directory above it is listed.

    Args:
        top: The layer's directory.
        prefix: Where the overlay is mounted; the beginning of every returned path.
        area: What is listed.
        below: The layers below, the highest first; none where they are not known.

    Raises:
        OSError: A directory cannot be read.
    """
    found = []
    waiting = [""]
    while waiting:
        here = waiting.pop()
        inside = []
        try:
            with os.scandir(top + here) as entries:
                inside = [(f"{here}/{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
        for path, is_directory in inside:
            if not area.has(prefix + path):
                continue
            if is_directory:
                waiting.append(path)
            else:
                found.append(prefix + path)
        if here and (not inside or (area.has_inside(prefix + here) and _is_other(top, here, below))):
            found.append(prefix + here)
    return found


def _is_other(top: str, path: str, below: Sequence[str]) -> bool:
    if not below:
        return False
    try:
        status = os.lstat(top + path)
    except OSError:  # Its path is too long.
        return False
    return is_other_directory(path, status.st_mode, (status.st_uid, status.st_gid), below)
