"""Directory trees in a sandbox, however deep an agent made them."""

from __future__ import annotations

import errno
import os
import tarfile


def add_tree(archive: tarfile.TarFile, path: str, name: str) -> None:
    """Add a file or a tree however deep; what has too long a path to be opened stays behind."""
    waiting = [(path, name)]
    while waiting:
        path, name = waiting.pop()
        try:
            archive.add(path, name, recursive=False)
            below = sorted(os.listdir(path), reverse=True) if os.path.isdir(path) and not os.path.islink(path) else []
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            continue
        waiting += [(os.path.join(path, each), f"{name}/{each}") for each in below]


def list_layer(top: str, prefix: str, outside: str) -> list[str]:
    """What a layer of an overlay holds, as paths below ``prefix``: all but directories that are not empty.

    Nothing below ``outside``. A deleted file is a device there; what has too long a path is named by what is above it.
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


def remove_path(path: str) -> None:
    """Delete whatever is there, if anything is."""
    if os.path.isdir(path) and not os.path.islink(path):
        _remove_tree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _remove_tree(path: str) -> None:
    """Delete a directory however deep an agent made it: shutil's recurses, and a long path has no name to be used."""
    here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    entered: list[str] = []  # Names from path down to here, and of each what is left to enter in it.
    waiting = [_remove_files(here)]
    while waiting:
        if waiting[-1]:
            entered.append(waiting[-1].pop())
            here = _move(here, entered[-1])
            waiting.append(_remove_files(here))
            continue
        waiting.pop()
        if waiting:
            here = _move(here, "..")
            os.rmdir(entered.pop(), dir_fd=here)
    os.close(here)
    os.rmdir(path)


def _remove_files(directory: int) -> list[str]:
    """Delete what is no directory and return the names of those."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if not is_directory:
            os.unlink(name, dir_fd=directory)
    return [name for name, is_directory in found if is_directory]


def _move(directory: int, name: str) -> int:
    """Open a directory by its name in another one, which is closed."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    finally:
        os.close(directory)
