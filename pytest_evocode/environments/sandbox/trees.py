"""Packing and deleting directory trees in a sandbox, however deeply an agent nested them; standard library only."""

from __future__ import annotations

import errno
import os
import tarfile


def add_tree(archive: tarfile.TarFile, path: str, name: str) -> None:
    """Add a file or a tree of any depth to a tar, except what has too long a path to be opened."""
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


def remove_path(path: str) -> None:
    """Delete whatever is at a path, if anything is."""
    if os.path.isdir(path) and not os.path.islink(path):
        _remove_tree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _remove_tree(path: str) -> None:
    """Delete a directory tree of any depth.

    ``shutil.rmtree`` recurses, and gives up where a path is too long to be used.
    """
    here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    entered: list[str] = []  # The names from `path` down to `here`; `waiting` has what is left to enter at each level.
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
    """Delete everything in a directory but directories, and return the names of those."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if not is_directory:
            os.unlink(name, dir_fd=directory)
    return [name for name, is_directory in found if is_directory]


def _move(directory: int, name: str) -> int:
    """Open a directory by its name in another one, and close that."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    finally:
        os.close(directory)
