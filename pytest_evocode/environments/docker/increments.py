"""Snapshots of a container that has written much: a layer of what was changed since the last one, not of all there is.

The engine's commit copies the whole layer of a container, each time. So after a large one, a container of its image is
made, which is never started: its empty layer gets what has changed in the other since, and is committed.

What has not changed is told by inode and change time, which no program sets. Only through a mapping that is shared and
writable a file may change and keep both, so a snapshot at which there is one is none to go on from.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_evocode.environments.docker.calls import faults, remove
from pytest_evocode.environments.overlay import NO_DEVICE, copy_file, is_device_whiteout
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

LARGE = 32 * 2**20
"""Bytes in the layer of a container from which on its commit takes longer than what is done here in its place."""
_MOST_LAYERS = 100  # of an image; overlay2 mounts no more than 128
_RECENT = 100_000_000  # nanoseconds; some kernels' clock for change times goes on every 10 ms
_IS_WHOLE = "the next snapshot of container %.12s is of all its files: %s"
_OVERLAY = "trusted.overlay."
_OPAQUE = f"{_OVERLAY}opaque"
_ELSEWHERE = frozenset({f"{_OVERLAY}redirect", f"{_OVERLAY}metacopy"})
"""Attributes of what is only in part where it stands."""


class _Seen(NamedTuple):
    """What tells whether something in a layer has changed."""

    mode: int
    inode: int
    size: int
    changed: int
    """Nanoseconds since the epoch; 0 where it was changed so recently that it might be again at the same moment."""


@dataclass(frozen=True, slots=True)
class _Base:
    """A snapshot to go on from."""

    of: str
    """The container that it is of."""
    container: str
    """A container of the image, never started."""
    top: str
    """The empty layer of that, a directory of this machine."""
    seen: Mapping[str, _Seen]
    """What there was in the layer of the container, by path."""


class _Next(NamedTuple):
    """What the next snapshot goes on from, while it is being made."""

    image: str
    """A name of the image of the last one, so that it stays when that is discarded."""
    base: Future[_Base | None]


class Increments:
    """What the next snapshot of one environment can go on from.

    Args:
        client: A client of the engine.
        labels: Of the containers that are made, by which those of a session that was killed are found.
    """

    def __init__(self, client: APIClient, labels: Mapping[str, str]) -> None:
        self._client = client
        self._labels = labels
        # Its container is made while the next turn runs: the engine writes all files to the disk first.
        self._maker = ThreadPoolExecutor(1, "next-snapshot")
        self._next: _Next | None = None
        self._used: _Next | None = None
        """The last one, until the snapshot that went on from it is committed."""
        self._seen: dict[str, _Seen] | None = None

    def prepare(self, state: Mapping[str, Any], size: int) -> str:
        """Return the container to commit for a snapshot of one that is paused: itself, or one with what has changed.

        Args:
            state: What the engine says of the container, whose layer can be read.
            size: The bytes in its layer.
        """
        container: str = state["Id"]
        if self._used is not None:  # Its snapshot has failed.
            self._forget(self._used)
        self._used, self._next, self._seen = self._next, None, None
        base = self._used.base.result() if self._used is not None else None
        committed = container
        if size >= LARGE and os.geteuid() == 0:  # Others' files are copied with all that they have.
            upper = state["GraphDriver"]["Data"]["UpperDir"]
            try:
                found = _list(upper)
                if base is not None and base.of == container:
                    _Copy(upper, found, base).make()
                    committed = base.container
                if not _has_shared_mapping(container, state["State"]["Pid"]):
                    since = time.time_ns() - _RECENT
                    self._seen = {path: _seen(status, since) for path, status in found.items()}
            except OSError as error:
                logger.info("container %.12s is committed whole: %s", container, error)
                committed, self._seen = container, None
        return committed

    def committed(self, container: str, image: str) -> None:
        """Take the image that a container was committed as for the next snapshot to go on from.

        Args:
            container: The container that the snapshot is of.
            image: The name of the image.
        """
        if self._used is not None:
            self._forget(self._used)
        seen, self._seen, self._used = self._seen, None, None
        if seen is None:
            return
        name = f"{image}-next"
        repository, _, tag = name.partition(":")
        try:
            with faults("preparing the next snapshot"):
                self._client.tag(image, repository, tag)
        except EnvironmentFault as error:
            logger.info(_IS_WHOLE, container, error)
        else:
            self._next = _Next(name, self._maker.submit(self._make_base, container, name, seen))

    def _make_base(self, container: str, image: str, seen: Mapping[str, _Seen]) -> _Base | None:
        try:
            with faults("preparing the next snapshot"):
                layers = self._client.inspect_image(image)["RootFS"]["Layers"]  # type: ignore[no-untyped-call]
                if len(layers) < _MOST_LAYERS:
                    host_config = self._client.create_host_config(network_mode="none")
                    made = self._client.create_container(
                        image, labels=dict(self._labels), host_config=host_config, network_disabled=True
                    )["Id"]
                    top = self._client.inspect_container(made)["GraphDriver"]["Data"]["UpperDir"]
                    return _Base(container, made, top, seen)
        except EnvironmentFault as error:
            logger.info(_IS_WHOLE, container, error)
        return None

    def close(self) -> None:
        """Remove what waits for a next snapshot."""
        for each in (self._next, self._used):
            if each is not None:
                self._forget(each)
        self._next = self._used = None

    def _forget(self, left: _Next) -> None:
        from pytest_evocode.environments.docker.client import EngineClient

        def both() -> None:
            if (base := left.base.result()) is not None:
                remove(self._client, "container", base.container)
            remove(self._client, "image", left.image)

        assert isinstance(self._client, EngineClient)
        self._client.removals.remove({f"image {left.image}": both})


def _seen(status: os.stat_result, since: int) -> _Seen:
    changed = 0 if status.st_ctime_ns >= since else status.st_ctime_ns
    return _Seen(status.st_mode, status.st_ino, status.st_size, changed)


def _list(directory: str) -> dict[str, os.stat_result]:
    """Return all that is in a directory and below, by path from it, each directory before what is in it."""
    found: dict[str, os.stat_result] = {}
    waiting = [""]
    while waiting:
        here = waiting.pop()
        with os.scandir(f"{directory}{here}") as entries:
            for entry in entries:
                path = f"{here}/{entry.name}"
                found[path] = status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
    return found


def _has_shared_mapping(container: str, first: int) -> bool:
    """Tell whether a process of a container may write to a file by memory, or whether its processes cannot be seen.

    ``first`` is the number of its PID 1 on this machine.
    """
    if container not in _text(f"/proc/{first}/cgroup"):
        return True
    own = (each for each in os.listdir("/proc") if each.isdigit() and container in _text(f"/proc/{each}/cgroup"))
    return any(_maps_shared(number) for number in own)


def _maps_shared(process: str) -> bool:
    for line in _text(f"/proc/{process}/maps").splitlines():
        _, rights, _, _, inode, *_ = line.split()
        if rights[1] == "w" and rights[3] == "s" and inode != "0":
            return True
    return False


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # It has ended.
        return ""


class _Copy:
    """Copies what has changed in a layer since a snapshot of it into the empty layer over that snapshot.

    Everything is copied as it stands, whiteouts and opaque directories among it: what the image below has at a
    path has not changed.

    Args:
        upper: The layer.
        found: What is in it.
        base: The snapshot.
    """

    def __init__(self, upper: str, found: Mapping[str, os.stat_result], base: _Base) -> None:
        self._upper = upper
        self._found = found
        self._seen = base.seen
        self._top = base.top
        self._fresh: set[str] = set()
        """Directories that were not there before, or others; all in them is copied."""
        self._made: dict[str, None] = {"": None}
        """Directories of the new layer, each before those in it."""
        self._links: dict[int, list[str]] = {}
        """Paths of each file that has several, by its inode."""

    def make(self) -> None:
        """Fill the layer; raises OSError where that cannot be."""
        if os.listdir(self._top):
            raise OSError(errno.ENOTEMPTY, "the engine's layer is not empty")
        for path, status in self._found.items():
            if stat.S_ISDIR(status.st_mode):
                self._directory(path, status)
            elif self._is_fresh(path) or _seen(status, 2**63) != self._seen.get(path):
                self._file(path, status)
        for path in self._gone():
            self._make_above(path)
            os.mknod(f"{self._top}{path}", stat.S_IFCHR, NO_DEVICE)
        for paths in self._links.values():
            if len(paths) != self._found[paths[0]].st_nlink:
                raise OSError(errno.EXDEV, "some of the names of a file have not changed")
        for path in reversed(self._made):  # What is made in a directory changes its times.
            if path:
                self._attributes(path, self._found[path])

    def _is_fresh(self, path: str) -> bool:
        return path.rpartition("/")[0] in self._fresh

    def _directory(self, path: str, status: os.stat_result) -> None:
        before = self._seen.get(path)
        was_one = before is not None and stat.S_ISDIR(before.mode)
        if not self._is_fresh(path) and was_one and before is not None and before.inode == status.st_ino:
            if before != _seen(status, 2**63):
                self._make(path)
            return
        self._fresh.add(path)
        self._make(path)
        if was_one:
            os.setxattr(f"{self._top}{path}", _OPAQUE, b"y")

    def _gone(self) -> Iterator[str]:
        """Yield what was removed from directories that are still the same."""
        for path, before in self._seen.items():
            if path in self._found:
                continue
            above = path.rpartition("/")[0]
            status = self._found.get(above)
            if above and (status is None or not stat.S_ISDIR(status.st_mode) or above in self._fresh):
                continue
            if stat.S_ISCHR(before.mode):
                raise OSError(errno.ESTALE, "a whiteout is gone, and what is below shows")
            yield path

    def _make(self, path: str) -> None:
        self._make_above(path)
        if path not in self._made:
            os.mkdir(f"{self._top}{path}", 0o700)
            self._made[path] = None

    def _make_above(self, path: str) -> None:
        above = path.rpartition("/")[0]
        if above not in self._made:
            self._make(above)

    def _file(self, path: str, status: os.stat_result) -> None:
        self._make_above(path)
        source, place = f"{self._upper}{path}", f"{self._top}{path}"
        if status.st_nlink > 1 and not is_device_whiteout(status):  # The kernel has one whiteout for all.
            links = self._links.setdefault(status.st_ino, [])
            links.append(path)
            if len(links) > 1:
                os.link(f"{self._top}{links[0]}", place, follow_symlinks=False)
                return
        if stat.S_ISREG(status.st_mode):
            copy_file(source, place, status)
        elif stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(source), place)
        else:
            os.mknod(place, status.st_mode, status.st_rdev)
        self._attributes(path, status)

    def _attributes(self, path: str, status: os.stat_result) -> None:
        """Give something the owner, mode, attributes and times that it has in the layer that is copied."""
        source, place = f"{self._upper}{path}", f"{self._top}{path}"
        os.chown(place, status.st_uid, status.st_gid, follow_symlinks=False)
        if not stat.S_ISLNK(status.st_mode):
            os.chmod(place, stat.S_IMODE(status.st_mode))
        for name in os.listxattr(source, follow_symlinks=False):
            if name in _ELSEWHERE:
                raise OSError(errno.EXDEV, f"{name} is set")
            # A directory that was there hides what the image has, and not what the snapshot has in it.
            is_kept = path in self._fresh if name == _OPAQUE else not name.startswith(_OVERLAY)
            if is_kept:
                value = os.getxattr(source, name, follow_symlinks=False)
                os.setxattr(place, name, value, follow_symlinks=False)
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
