"""Carries paths of a snapshot over into an empty layer above an image, where the layers of both can be read.

The sandbox launcher imports this, so the standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping

from .overlay import NO_DEVICE, Entry, LayeredFiles, same

_AT_ONCE = 2**30  # bytes
_NO_RIGHTS = 0o1777  # of the bits of a mode
_CAPABILITIES = "security.capability"
_NOT_BETWEEN_THESE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


class NewLayer:
    """An empty layer above an image, which gets what a snapshot of the same image has at some paths.

    Directories, regular files and links come along, with owners, modes and times, and no set-id bit, no file
    capability, no device, FIFO or socket.

    Args:
        snapshot: The files of the snapshot.
        image: The files of the image.
        mounts: The directories of the layer, by the paths at which they are mounted.
        is_lower: Nobody will write to the layer, so that its files may be those of the snapshot.
    """

    def __init__(
        self, snapshot: LayeredFiles, image: LayeredFiles, mounts: Mapping[str, str], *, is_lower: bool = False
    ) -> None:
        self._snapshot = snapshot
        self._image = image
        self._is_lower = is_lower
        self._mounts = frozenset(mounts)
        self._directories: dict[str, str | None] = dict(mounts)
        """Where the directories of the layer are, by path; None where it has something else or nothing."""
        self._made: list[tuple[str, Entry, int]] = []
        """The directories, with the bits of their modes that they keep."""
        self._names: dict[tuple[int, int], str] = {}

    def carry(self, trees: Iterable[str], exact: Iterable[str]) -> None:
        """Carry over trees whole and other paths by themselves, as :meth:`Environment.fork` says."""
        wanted = {**dict.fromkeys(exact, False), **dict.fromkeys(map(self._image.resolve, trees), True)}
        tree = "//"
        for path in sorted(wanted, key=lambda path: path.split("/")):
            if not path.startswith(tree) and path.rstrip("/") not in self._mounts:
                self._carry(path, tree=wanted[path])
                tree = f"{path}/" if wanted[path] else tree
        # From below, because what is made in a directory changes its times.
        for place, entry, kept in reversed(self._made):
            _copy_attributes(entry.places[0], place, entry.status, kept)

    def _carry(self, path: str, *, tree: bool) -> None:
        found, before = self._snapshot.find(path), self._image.find(path)
        if same(found, before):
            return
        directory = self._directory(path.rpartition("/")[0])
        if directory is None:
            return
        place = f"{directory}/{path.rpartition('/')[2]}"
        if tree and found is not None and stat.S_ISLNK(found.status.st_mode):
            found = None
        self._put(path, place, found, before)
        if tree and found is not None and found.is_directory:
            self._fill(path, place)

    def _put(self, path: str, place: str, found: Entry | None, before: Entry | None) -> None:
        """Put into the layer what the snapshot has at a path, or a whiteout where only the image has something."""
        self._directories[path] = None
        if found is not None and found.is_directory:
            self._make_directory(path, place, found)
        elif not (found is not None and self._copy(found, place)) and before is not None:
            os.mknod(place, stat.S_IFCHR, NO_DEVICE)

    def _fill(self, path: str, place: str) -> None:
        """Put into a new directory of the layer all that the snapshot has changed in it."""
        waiting = [(path, place, False)]
        while waiting:
            path, place, hidden = waiting.pop()
            found, before = self._snapshot.find(path), None if hidden else self._image.find(path)
            assert found is not None
            if found.hides(before):
                os.setxattr(place, self._image.opaque, b"y")
                hidden = True
            for name in found.names_beside(before):
                inner = f"{path}/{name}"
                entry, other = self._snapshot.find(inner), None if hidden else self._image.find(inner)
                self._put(inner, f"{place}/{name}", entry, other)
                if entry is not None and entry.is_directory:
                    waiting.append((inner, f"{place}/{name}", hidden))

    def _directory(self, path: str) -> str | None:
        """Return where a directory of the layer is, made unless it is there; None where there can be none."""
        if path not in self._directories:
            above, _, name = path.rpartition("/")
            directory = self._directory(above)
            before, found = self._image.find(path), self._snapshot.find(path)
            self._directories[path] = None
            if directory is None:
                return None
            if before is not None and before.is_directory:
                self._make_directory(path, f"{directory}/{name}", before, 0o7777)
            elif found is not None and found.is_directory:
                self._make_directory(path, f"{directory}/{name}", found)
        return self._directories[path]

    def _make_directory(self, path: str, place: str, entry: Entry, kept: int = _NO_RIGHTS) -> None:
        os.mkdir(place, 0o700)
        self._directories[path] = place
        self._made.append((place, entry, kept))

    def _copy(self, entry: Entry, place: str) -> bool:
        """Copy a file or a link; False for anything else."""
        source, status = entry.places[0], entry.status
        number = status.st_dev, status.st_ino
        if status.st_nlink > 1 and number in self._names:
            os.link(self._names[number], place, follow_symlinks=False)
            return True
        if self._is_lower and _link(source, place, status):
            return True
        if stat.S_ISREG(status.st_mode):
            _copy_file(source, place, status)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(source), place)
        else:
            return False
        _copy_attributes(source, place, status)
        self._names[number] = place
        return True


def _link(source: str, place: str, status: os.stat_result) -> bool:
    """Make a link to a regular file that gives no rights; False where it has to be copied."""
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_mode & ~_NO_RIGHTS & 0o7777:
        return False
    try:
        if _CAPABILITIES in os.listxattr(source, follow_symlinks=False):
            return False
        os.link(source, place, follow_symlinks=False)
    except OSError:  # On another file system.
        return False
    return True


def _copy_file(source: str, target: str, status: os.stat_result) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            copy_contents(reading, writing, status)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def copy_contents(reading: int, writing: int, status: os.stat_result) -> None:
    """Copy the bytes of an open file to an empty one, with its holes, and in shared blocks where that can be."""
    for start, end in _extents(reading, status):
        os.lseek(writing, start, os.SEEK_SET)
        while start < end:
            copied = _copy_some(reading, writing, start, min(end - start, _AT_ONCE))
            if not copied:
                raise OSError(errno.ESTALE, "became shorter while it was copied")
            start += copied
    if status.st_blocks * 512 < status.st_size:
        os.ftruncate(writing, status.st_size)


def _copy_some(reading: int, writing: int, start: int, count: int) -> int:
    try:
        return os.copy_file_range(reading, writing, count, start)
    except OSError as error:
        if error.errno not in _NOT_BETWEEN_THESE:
            raise
        return os.sendfile(writing, reading, start, count)


def _extents(file: int, status: os.stat_result) -> Iterator[tuple[int, int]]:
    """Yield where a file has data: all of it, unless it has holes."""
    if status.st_blocks * 512 >= status.st_size:
        yield 0, status.st_size
        return
    end = 0
    while end < status.st_size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


def _copy_attributes(source: str, target: str, status: os.stat_result, kept: int = _NO_RIGHTS) -> None:
    """Copy owner, mode, times and what programs have noted on a file, and no set-id bit unless it is kept."""
    with contextlib.suppress(OSError):  # Without root there is one owner only.
        os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        os.chmod(target, status.st_mode & kept)
        for name in os.listxattr(source):
            if name.startswith("user.") and not name.startswith("user.overlay."):
                os.setxattr(target, name, os.getxattr(source, name))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
