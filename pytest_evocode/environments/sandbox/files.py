"""What the launcher's workers do to files in a sandbox, with the standard library only.

They have entered its namespaces, use their own Python and execute nothing of the sandbox.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tarfile
from typing import Any, BinaryIO

from .identity import look_up

_TRIES = 100  # times that something is tried again at which a running program may be quicker


def unpack_from_pipe(request: dict[str, Any], stream: int) -> dict[str, Any]:
    """Unpack a tar that the session writes to a pipe."""
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
            make_way(path)
            if request["rootless"]:  # A file of an owner that cannot be set would get neither its mode nor its time.
                member.uid = member.gid = 0
            archive.extract(member, "/", numeric_owner=True)
    return {}


def make_way(path: str) -> None:
    """Make the directories above a path, and remove whatever is in the way of them and at the path itself.

    An agent may have put a FIFO where a file is to be written; opening that would never return.
    """
    above = os.path.dirname(path)
    if above != "/" and not os.path.isdir(above):
        make_way(above)
        os.mkdir(above, 0o755)
    remove_path(path)


def pack_into_pipe(request: dict[str, Any], stream: int) -> dict[str, Any]:
    """Pack a file or a tree into a pipe."""
    path = request["path"]
    # An empty archive where the path is missing, because reading no archive at all is an error.
    with os.fdopen(stream, "wb") as file, tarfile.open(fileobj=file, mode="w|") as archive:
        if os.path.lexists(path):
            add_tree(archive, path, os.path.basename(path.rstrip("/")) or "root")
    return {}


def read_files(request: dict[str, Any], output: int) -> dict[str, Any]:
    """Write the contents of files one after the other, and reply with the size of each or why it is not there."""
    with os.fdopen(output, "wb") as target:
        return {"files": [_read_file(path, limit, target) for path, limit in request["files"]]}


def _read_file(path: str, limit: int, target: BinaryIO) -> int | str | None:
    """Write the contents of a file, and return its size, why it is refused, or None where there is none."""
    try:
        fd = _open(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return "a symlink" if error.errno == errno.ELOOP else str(error.strerror)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return "a directory" if stat.S_ISDIR(info.st_mode) else "not a regular file"
        if info.st_size > limit:
            return f"{info.st_size} bytes long, over the limit of {limit}"
        with open(fd, "rb", closefd=False) as file:
            return target.write(file.read(limit))
    finally:
        os.close(fd)


def _open(path: str) -> int:
    """Open a file for reading, without changing its access time where its owner or root does so."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def remove_paths(request: dict[str, Any]) -> dict[str, Any]:
    """Delete files and trees, and reply with what is left."""
    for path in request["paths"]:
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):  # A running program has moved something meanwhile.
                remove_path(path)
            if not os.path.lexists(path):
                break
    return {"left": [path for path in request["paths"] if os.path.lexists(path)]}


def make_directories(request: dict[str, Any]) -> dict[str, Any]:
    """Make directories; anything else at their paths is replaced, a symlink too."""
    os.umask(0o022)
    for path in request["paths"]:
        here = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        for name in path.strip("/").split("/"):
            here = _enter(here, name, (-1, -1))
        os.fchmod(here, 0o777)
        os.close(here)
    return {}


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


def write_files(request: dict[str, Any], contents: int) -> dict[str, Any]:
    """Write files below a directory, whose contents come one after the other, and follow no link below it."""
    os.umask(0o022)
    path, offset = request["directory"], 0
    try:
        uid, gid, _ = look_up(request["user"])
        owner = (-1, -1) if request["rootless"] else (uid, gid)
        top = _open_made(path.rstrip("/") or "/", owner)
        for path, size in request["files"]:
            directory = os.dup(top)
            *above, name = path.split("/")
            for part in above:
                directory = _enter(directory, part, owner)
            file = _make_file(directory, name)
            os.close(directory)
            end = offset + size
            while offset < end:
                offset += os.sendfile(file, contents, offset, end - offset)
            os.fchown(file, *owner)
            os.fchmod(file, 0o644)
            os.close(file)
    except OSError as error:
        return {"errno": error.errno, "why": error.strerror, "path": path}
    except LookupError as error:
        return {"errno": errno.EINVAL, "why": str(error), "path": path}
    return {}


def _open_made(path: str, owner: tuple[int, int]) -> int:
    """Open a directory, which is made if there is nothing."""
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    above = _open_made(os.path.dirname(path), owner)
    return _enter(above, os.path.basename(path), owner)


def _enter(above: int, name: str, owner: tuple[int, int]) -> int:
    """Open a directory by its name in another one, which is closed; anything else there is replaced."""
    try:
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
            remove_path(name, above)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
                os.chown(name, *owner, dir_fd=above, follow_symlinks=False)
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)
    finally:
        os.close(above)


def _make_file(directory: int, name: str) -> int:
    """Make a file in a directory; whatever is there is replaced."""
    for _ in range(_TRIES):
        with contextlib.suppress(FileExistsError):
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=directory)
        remove_path(name, directory)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)


def file_status(request: dict[str, Any]) -> dict[str, Any]:
    """Describe what stands at a path."""
    path = request["path"]
    try:
        found = os.lstat(path)
        target = os.readlink(path) if stat.S_ISLNK(found.st_mode) else ""
    except OSError:
        return {}
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    size = found.st_size if kind == "file" else 0
    mode = stat.S_IMODE(found.st_mode)
    return {"status": {"kind": kind, "size": size, "mode": mode, "modified": found.st_mtime, "target": target}}


def list_directory(request: dict[str, Any]) -> dict[str, Any]:
    """Reply with the names in a directory, or that there are more than the limit."""
    names: list[str] = []
    try:
        directory = os.open(request["path"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        with os.scandir(directory) as entries:
            for entry in entries:
                if len(names) >= request["limit"]:
                    return {"more": True}
                names.append(entry.name)
    except OSError:
        return {"missing": True}
    return {"names": names}


def remove_path(path: str, above: int | None = None) -> None:
    """Delete whatever is at a path, which may be one from an open directory; another process may be doing the same."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        try:
            os.unlink(path, dir_fd=above)
        except IsADirectoryError:
            _remove_tree(path, above)


def _remove_tree(path: str, above: int | None) -> None:
    """Delete a directory tree of any depth, given by its path, which may be one from an open directory.

    ``shutil.rmtree`` recurses, and gives up where a path is too long to be used.
    """
    here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    entered: list[str] = []  # The names from `path` down to `here`; `waiting` has what is left to enter at each level.
    waiting = [_remove_files(here)]
    while waiting:
        if waiting[-1]:
            with contextlib.suppress(FileNotFoundError):
                here = _move(here, name := waiting[-1].pop())
                entered.append(name)
                waiting.append(_remove_files(here))
            continue
        waiting.pop()
        if waiting:
            here = _move(here, "..")
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(entered.pop(), dir_fd=here)
    os.close(here)
    os.rmdir(path, dir_fd=above)


def _remove_files(directory: int) -> list[str]:
    """Delete everything in a directory but directories, and return the names of those."""
    found: list[tuple[str, bool]] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        found += [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if not is_directory:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
    return [name for name, is_directory in found if is_directory]


def _move(directory: int, name: str) -> int:
    """Open a directory by its name in another one, which is closed then."""
    opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    os.close(directory)
    return opened
