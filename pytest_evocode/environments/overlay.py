"""Overlay file systems: reading their layers, and carrying paths of a snapshot over into an empty layer above an image.

The sandbox launcher imports this, so the standard library only.

What lies over an image is half of the truth: a directory shows the image's files through it unless it is opaque, and a
whiteout, a character device 0:0 or an empty file with an attribute, hides what the image has there. So a snapshot is
looked at whole, as the kernel shows it, beside the image.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        hidden: Paths at which there is to be nothing.
    """

    def __init__(self, mounts: Mapping[str, Sequence[str]], opaque: str, hidden: Iterable[str] = ()) -> None:
        self.opaque = opaque
        self._whiteout = whiteout_attribute(opaque)
        self.mounts = frozenset(mounts)
        self._found: dict[str, Entry | None] = {
            path: Entry(os.lstat(layers[0]), tuple(layers)) if layers else None for path, layers in mounts.items()
        }
        self._found |= dict.fromkeys(hidden)

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
                if status is None and not self._is_whiteout(here, info):
                    return Entry(info, (here,))
                break
            status = status or info
            found.append(here)
            if self._is_opaque(here):
                break
        return None if status is None else Entry(status, tuple(found))

    def _is_whiteout(self, path: str, info: os.stat_result) -> bool:
        if stat.S_ISREG(info.st_mode) and info.st_size == 0:
            return _attribute(path, self._whiteout) is not None
        return is_device_whiteout(info)

    def _is_opaque(self, directory: str) -> bool:
        return _attribute(directory, self.opaque) == b"y"

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


def _attribute(path: str, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError:
        return None


def is_device_whiteout(info: os.stat_result) -> bool:
    """Tell whether that is the status of a whiteout as the kernel makes them."""
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == NO_DEVICE


def whiteout_attribute(opaque: str) -> str:
    """Return the attribute of empty files that are whiteouts, by that of opaque directories."""
    return f"{opaque.rpartition('.')[0]}.whiteout"


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


_AT_ONCE = 2**30  # bytes
_NO_RIGHTS = 0o1777  # of the bits of a mode
_NOT_BETWEEN_THESE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


class NewLayer:
    """An empty layer above an image, which gets what a snapshot of the same image has at some paths.

    Directories, regular files and links come along, with owners, modes and times, and no set-id bit, no file
    capability, no device, FIFO or socket.

    Args:
        snapshot: The files of the snapshot.
        image: The files of the image.
        mounts: The directories of the layer, by the paths at which they are mounted.
    """

    def __init__(self, snapshot: LayeredFiles, image: LayeredFiles, mounts: Mapping[str, str]) -> None:
        self._snapshot = snapshot
        self._image = image
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
        if stat.S_ISREG(status.st_mode):
            copy_file(source, place, status)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(source), place)
        else:
            return False
        _copy_attributes(source, place, status)
        self._names[number] = place
        return True


def copy_file(source: str, target: str, status: os.stat_result) -> None:
    """Copy the contents of a regular file, with its holes, to one that is made; raises OSError."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _copy_contents(reading, writing, status)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_contents(reading: int, writing: int, status: os.stat_result) -> None:
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
