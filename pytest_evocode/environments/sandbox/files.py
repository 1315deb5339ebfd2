"""What the launcher's workers do to files in a sandbox, with the standard library only.

They use their own Python and execute nothing of the sandbox.
"""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from typing import Any, BinaryIO

from .identity import enter_namespaces
from .trees import add_tree, remove_path


def unpack_from_pipe(request: dict[str, Any], pidfd: int, stream: int) -> dict[str, Any]:
    """Unpack a tar that the session writes to a pipe."""
    enter_namespaces(pidfd, request["namespaces"])
    _make_pending(request)
    os.umask(0)
    with os.fdopen(stream, "rb") as file, tarfile.open(fileobj=file, mode="r|") as archive:
        # The tar is our own. Set as an attribute because the keyword is unknown to Python 3.11.0 to 3.11.3.
        archive.extraction_filter = lambda member, path: member
        for member in archive:
            path = os.path.join("/", member.name)
            if member.isdir() and os.path.isdir(path):
                if request["writable"]:
                    os.chmod(path, 0o777)
                continue
            _make_way(path)
            archive.extract(member, "/", numeric_owner=True)
    return {}


def _make_way(path: str) -> None:
    """Make the directories above a path, and remove whatever is in the way of them and at the path itself.

    An agent may have put a FIFO where a file is to be written; opening that would never return.
    """
    above = os.path.dirname(path)
    if above != "/" and not os.path.isdir(above):
        _make_way(above)
        os.mkdir(above, 0o755)
    remove_path(path)


def pack_into_pipe(request: dict[str, Any], pidfd: int, stream: int) -> dict[str, Any]:
    """Pack a file or a tree into a pipe."""
    enter_namespaces(pidfd, request["namespaces"])
    path = request["path"]
    # An empty archive where the path is missing, because reading no archive at all is an error.
    with os.fdopen(stream, "wb") as file, tarfile.open(fileobj=file, mode="w|") as archive:
        if os.path.lexists(path):
            add_tree(archive, path, os.path.basename(path.rstrip("/")) or "root")
    return {}


def read_files(request: dict[str, Any], pidfd: int, output: int) -> dict[str, Any]:
    """Write the contents of files one after the other, and reply with the size of each or why it is not there."""
    enter_namespaces(pidfd, request["namespaces"])
    with os.fdopen(output, "wb") as target:
        return {"files": [_read_file(path, limit, target) for path, limit in request["files"]]}


def _read_file(path: str, limit: int, target: BinaryIO) -> dict[str, Any]:
    try:
        fd = _open(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"missing": True}
    except OSError as error:
        return {"refused": "a symlink" if error.errno == errno.ELOOP else str(error.strerror)}
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return {"refused": "a directory" if stat.S_ISDIR(info.st_mode) else "not a regular file"}
        if info.st_size > limit:
            return {"refused": f"{info.st_size} bytes long, over the limit of {limit}"}
        with open(fd, "rb", closefd=False) as file:
            return {"size": target.write(file.read(limit))}
    finally:
        os.close(fd)


def _open(path: str) -> int:
    """Open a file for reading, without changing its access time where its owner or root does so."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def remove_paths(request: dict[str, Any], pidfd: int) -> dict[str, Any]:
    """Delete files and trees, and reply with what is left."""
    enter_namespaces(pidfd, request["namespaces"])
    _make_pending(request)
    for path in request["paths"]:
        remove_path(path)
    return {"left": [path for path in request["paths"] if os.path.lexists(path)]}


def make_directories(request: dict[str, Any], pidfd: int) -> dict[str, Any]:
    """Make the directories that are pending."""
    enter_namespaces(pidfd, request["namespaces"])
    _make_pending(request)
    return {}


def _make_pending(request: dict[str, Any]) -> None:
    """Make directories, emptied where that is asked; anything else at their paths is replaced, a symlink too."""
    for path, fresh in request["pending"]:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            part = "/" + "/".join(parts[:depth])
            if os.path.islink(part) or (os.path.lexists(part) and not os.path.isdir(part)):
                os.unlink(part)
            if not os.path.lexists(part):
                os.mkdir(part)
                os.chmod(part, 0o755)
        if fresh:
            remove_path(path)
            os.mkdir(path)
        os.chmod(path, 0o777)
