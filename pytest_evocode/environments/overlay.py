"""Reading the layers of overlay file systems; the sandbox launcher imports this, so the standard library only."""

from __future__ import annotations

import errno
import os


def list_layer(top: str, prefix: str, outside: str) -> list[str]:
    """List what a layer of an overlay file system holds: every file, and the directories that are empty.

    A deleted file counts, because it is a device in the layer. For a path that is too long to be opened, the directory
    above it is listed.

    Args:
        top: The layer's directory.
        prefix: Where the overlay is mounted; the beginning of every returned path.
        outside: A directory in the overlay of which nothing is listed; ``/`` for none.

    Raises:
        OSError: A directory cannot be read.
    """
    found = []
    waiting = [""]
    while waiting:
        here = waiting.pop()
        below = []
        try:
            with os.scandir(top + here) as entries:
                below = [(f"{here}/{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
        for path, is_directory in below:
            if not is_directory:
                found.append(prefix + path)
            elif outside == "/" or prefix + path != outside:
                waiting.append(path)
        if here and not below:
            found.append(prefix + here)
    return found
