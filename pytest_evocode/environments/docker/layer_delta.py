"""Copying what changed in the upper layer of an overlay file system since it was last copied.

Two layers on top of one another, an earlier copy and the changes against it, show the same files as the upper layer
itself. That a file is the one that was copied before is told by its number and the time of its last change, which no
program in a container can set. All this rests on nobody writing to the layer meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_evocode.environments.carry_over import copy_contents

_OPAQUE = "trusted.overlay.opaque"
_PROBE = "trusted.evocode.probe"
_OF_NO_EFFECT = {f"trusted.overlay.{name}" for name in ("origin", "impure", "nlink", "uuid")}
_CARRIED = "security.capability"
"""The one attribute that the engine's own commits keep."""
_RACY = 30_000_000  # nanoseconds, three ticks of the slowest clock: a later change may get the same time
_RACY_IN_SECONDS = 2_000_000_000  # nanoseconds, where the file system counts whole seconds


class Mark(NamedTuple):
    """What an entry of a layer is known by; an entry that was not changed has the same one later."""

    inode: int
    changed: int
    """Nanoseconds; -1 where the entry may change without a trace, so that it equals no later one."""
    size: int
    mode: int
    opaque: bool
    """Whether it is a directory that hides what layers below have there."""
    links: int

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_whiteout(self) -> bool:
        """Whether it only hides what layers below have there."""
        return self.inode == 0


_WHITEOUT = Mark(0, 0, 0, stat.S_IFCHR, False, 1)


@dataclass(frozen=True, slots=True)
class Layer:
    """What an upper layer holds, by path; that of its top is empty. What is above an entry comes before it."""

    marks: Mapping[str, Mark]

    @property
    def size(self) -> int:
        """The bytes of its regular files, holes in them included."""
        return sum({mark.inode: mark.size for mark in self.marks.values() if stat.S_ISREG(mark.mode)}.values())

    def without(self, inodes: Collection[int]) -> Layer:
        """Return the layer with entries of some numbers as ones that may change without a trace."""
        if not inodes:
            return self
        return Layer({path: _distrusted(mark) if mark.inode in inodes else mark for path, mark in self.marks.items()})


@dataclass(slots=True)
class LayerChanges:
    """What has to be laid over an earlier copy of a layer to get the layer as it is now."""

    entries: dict[str, Mark] = field(default_factory=dict)
    """By path, the layer's top among them; what is above an entry comes before it."""
    opaque: set[str] = field(default_factory=set)
    """The directories among them that hide what is below."""


def read_layer(top: str, now: int) -> Layer:
    """List an upper layer.

    Args:
        top: Its directory.
        now: The time since which nobody has written to it, in nanoseconds.

    Raises:
        OSError: It cannot be read, or holds what the engine gives a meaning of its own.
    """
    marks: dict[str, Mark] = {}
    waiting = [("", _mark(top, os.lstat(top), now))]
    while waiting:
        here, mark = waiting.pop()
        marks[here] = mark
        if not mark.is_directory:
            continue
        with os.scandir(top + here) as found:
            for entry in found:
                if entry.name.startswith(".wh."):
                    raise OSError(errno.EOPNOTSUPP, "a name with a meaning in the engine's archives", entry.path)
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISSOCK(status.st_mode):  # No archive of the engine has sockets.
                    waiting.append((f"{here}/{entry.name}", _mark(entry.path, status, now)))
    return Layer(marks)


def _mark(path: str, status: os.stat_result, now: int) -> Mark:
    mode, changed = status.st_mode, status.st_ctime_ns
    if stat.S_ISCHR(mode) and status.st_rdev == 0:
        return _WHITEOUT
    racy = _RACY if changed % 1_000_000_000 else _RACY_IN_SECONDS
    opaque = stat.S_ISDIR(mode) and _is_opaque(path)
    mark = Mark(status.st_ino, changed, status.st_size, mode, opaque, status.st_nlink)
    return _distrusted(mark) if changed > now - racy else mark


def _distrusted(mark: Mark) -> Mark:
    return mark if mark.is_whiteout else mark._replace(changed=-1)


def _is_opaque(path: str) -> bool:
    try:
        value = os.getxattr(path, _OPAQUE, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return False
        raise
    if value != b"y":
        raise OSError(errno.EOPNOTSUPP, "a directory of an unknown kind", path)
    return True


def find_changes(before: Layer | None, now: Layer) -> LayerChanges:
    """Compare a layer with what it was at an earlier copy; None is a layer that held nothing.

    This relies on what overlay file systems guarantee: what is once hidden of the layers below never shows again.
    """
    earlier = before.marks if before is not None else {}
    wanted = {""}
    changes = LayerChanges()
    fresh = {""} if before is None else set()  # Directories of which nothing earlier shows.
    for path, mark in now.marks.items():
        old = earlier.get(path)
        in_fresh = path != "" and path.rpartition("/")[0] in fresh
        if mark.is_directory and path:
            hides = mark.opaque and not (old is not None and old.opaque and old.inode == mark.inode)
            if in_fresh or old is None or not old.is_directory or hides:
                fresh.add(path)
                if mark.opaque:
                    changes.opaque.add(path)
        if in_fresh or path in fresh or mark != old or mark.changed == -1:
            wanted.add(path)
    gone = [
        path
        for path, old in earlier.items()
        if path not in now.marks and not old.is_whiteout and _shows_through(path.rpartition("/")[0], now, fresh)
    ]
    wanted |= _other_names(now, wanted)
    for path in [*wanted, *gone]:
        while path and (path := path.rpartition("/")[0]) not in wanted:
            wanted.add(path)
    changes.entries = {path: mark for path, mark in now.marks.items() if path in wanted}
    changes.entries |= dict.fromkeys(gone, _WHITEOUT)
    return changes


def _shows_through(directory: str, now: Layer, fresh: Collection[str]) -> bool:
    """Tell whether what an earlier copy has in a directory shows, unless something is put over it."""
    mark = now.marks.get(directory)
    return mark is not None and mark.is_directory and directory not in fresh


def _other_names(now: Layer, wanted: Collection[str]) -> set[str]:
    """Return all names of the files of which some names are wanted, because links between layers there are none."""
    linked = {
        mark.inode
        for path in wanted
        if (mark := now.marks[path]).links > 1 and not (mark.is_directory or not mark.inode)
    }
    return {path for path, mark in now.marks.items() if mark.inode in linked} if linked else set()


def copy_changes(changes: LayerChanges, top: str, target: str) -> None:
    """Copy entries of an upper layer into a new directory, which becomes an upper layer itself.

    Args:
        changes: What is copied.
        top: The layer's directory.
        target: The directory, which does not exist yet; a copy that failed is left as it is.

    Raises:
        OSError: It cannot be read or written, or somebody has written to it, or it has what only the kernel can read.
    """
    names: dict[int, str] = {}
    os.mkdir(target, 0o700)
    # Without the right to it, the kernel would hide such attributes from us instead of refusing them.
    os.setxattr(target, _PROBE, b"y")
    os.removexattr(target, _PROBE)
    for path, mark in changes.entries.items():
        if mark.is_directory:
            if path:
                os.mkdir(target + path, 0o700)
        elif mark.is_whiteout:
            os.mknod(target + path, stat.S_IFCHR, 0)
        elif mark.links > 1 and mark.inode in names:
            os.link(target + names[mark.inode], target + path, follow_symlinks=False)
        else:
            _copy_entry(top + path, target + path, mark)
            names[mark.inode] = path
    # From below, because what is made in a directory changes its times.
    for path in reversed(changes.entries):
        if changes.entries[path].is_directory:
            _copy_attributes(top + path, target + path, os.lstat(top + path))
            if path in changes.opaque:
                os.setxattr(target + path, _OPAQUE, b"y")


def _copy_entry(source: str, target: str, mark: Mark) -> None:
    if stat.S_ISREG(mark.mode):
        reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOATIME | os.O_CLOEXEC)
        try:
            status = os.fstat(reading)
            if status.st_ino != mark.inode:
                raise OSError(errno.ESTALE, "was replaced while it was copied", source)
            writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                copy_contents(reading, writing, status)
            finally:
                os.close(writing)
        finally:
            os.close(reading)
    else:
        status = os.lstat(source)
        if stat.S_ISLNK(mark.mode):
            os.symlink(os.readlink(source), target)
        else:
            os.mknod(target, stat.S_IFMT(mark.mode) | 0o600, status.st_rdev)
    _copy_attributes(source, target, status)


def _copy_attributes(source: str, target: str, status: os.stat_result) -> None:
    """Copy owner, mode, times and what the engine's commits keep of the extended attributes."""
    os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        os.chmod(target, stat.S_IMODE(status.st_mode))
    for name in os.listxattr(source, follow_symlinks=False):
        if name == _CARRIED:
            os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False), follow_symlinks=False)
        elif name.startswith("trusted.overlay.") and name != _OPAQUE and name not in _OF_NO_EFFECT:
            raise OSError(errno.EOPNOTSUPP, f"an attribute that only the kernel can read: {name}", source)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
