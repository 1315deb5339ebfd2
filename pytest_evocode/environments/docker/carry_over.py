"""Brings single paths of a snapshot into a container of the image, as a stream from the engine to the engine."""

from __future__ import annotations

import contextlib
import io
import itertools
import posixpath
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.files import DIRECTORY, SPECIAL, SYMLINK, ChunkReader, ContainerFiles
from pytest_evocode.environments.docker.snapshots import DockerSnapshot
from pytest_evocode.environments.tree_archives import CHUNK, filter_tar, is_in
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient


@dataclass(frozen=True, slots=True)
class CarriedFiles:
    """Some paths of a snapshot, to be brought into a container of the image that the snapshot was made from."""

    client: APIClient
    snapshot: DockerSnapshot
    paths: tuple[str, ...]
    labels: Mapping[str, str]
    """Of the container from which the engine reads the snapshot's files, and in which nothing is ever started."""

    def bring(self, target: ContainerFiles, remove: Callable[[Sequence[str]], object]) -> None:
        """Put the paths into a container, in place of what its image has there, without what gives rights.

        Args:
            target: The files of the container, in which nothing of the agent is yet.
            remove: Deletes files and trees there, as far as they are no volumes.
        """
        paths = _outermost([_resolve(target, path) for path in self.paths])
        if there := [path for path in paths if target.look_up(path) is not None]:
            remove(there)
        if left := [path for path in there if target.look_up(path) and not self._volumes_around(path)]:
            raise EnvironmentFault(f"could not be removed from the container: {', '.join(left)}")
        with self._files() as source, faults("carrying files over from a snapshot"):
            found = [path for path in paths if _is_carried(source, path)]
            volumes = [each for each in self.snapshot.volumes if any(is_in(each, path) for path in paths)]
            volumes += [each for each in self.snapshot.volumes if any(is_in(path, each) for path in paths)]
            above = {parent: None for path in (*found, *volumes) for parent in _parents(path)}
            missing = [parent for parent in above if target.look_up(parent) is None]
            parts = [_directory(path) for path in missing]
            parts += [self._of_container(source, path) for path in found]
            parts += [self._of_volume(path, paths) for path in dict.fromkeys(volumes)]
            try:
                self.client.put_archive(target.container, "/", itertools.chain(*parts, [bytes(2 * tarfile.BLOCKSIZE)]))
            except tarfile.TarError as error:
                raise EnvironmentFault(f"the engine's archive of a snapshot cannot be read: {error}") from error

    @contextlib.contextmanager
    def _files(self) -> Iterator[ContainerFiles]:
        """Yield the snapshot's files: those of a container that is never started."""
        from docker.types import Mount

        with faults("reading a snapshot"):
            mounts = [Mount(path, None, type="volume", no_copy=True) for path in self.snapshot.volumes]
            created = self.client.create_container(
                self.snapshot.image,
                entrypoint=["true"],
                labels=dict(self.labels),
                host_config=self.client.create_host_config(network_mode="none", mounts=mounts),
                network_disabled=True,
            )
        try:
            yield ContainerFiles(self.client, created["Id"], None)
        finally:
            with faults("removing a container"):
                self.client.remove_container(created["Id"], v=True, force=True)

    def _of_container(self, source: ContainerFiles, path: str) -> Iterator[bytes]:
        if path in self.snapshot.volumes:
            return
        chunks, _ = self.client.get_archive(source.container, path)
        stream = io.BufferedReader(ChunkReader(chunks), CHUNK)
        with contextlib.closing(chunks):
            yield from filter_tar(stream, posixpath.dirname(path), without=tuple(self.snapshot.volumes))

    def _of_volume(self, volume: str, paths: Sequence[str]) -> Iterator[bytes]:
        # Opened anew, because several forks may read it at the same time.
        with open(f"/proc/self/fd/{self.snapshot.volumes[volume].fileno()}", "rb") as stream:
            yield from filter_tar(stream, posixpath.dirname(volume), within=paths)

    def _volumes_around(self, path: str) -> bool:
        """Tell whether a path is a volume's, or has one in it: the engine's mounts cannot be removed."""
        return any(is_in(volume, path) for volume in self.snapshot.volumes)


def _directory(path: str) -> Iterator[bytes]:
    info = tarfile.TarInfo(path.lstrip("/"))
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    yield info.tobuf(tarfile.PAX_FORMAT)


def _resolve(files: ContainerFiles, path: str) -> str:
    """Return the path that an absolute one leads to, all links followed."""
    resolved = ""
    for name in path.strip("/").split("/"):
        resolved = f"{resolved}/{name}"
        found = files.look_up(resolved)
        if found is not None and int(found["mode"]) & SYMLINK and found["linkTarget"]:
            resolved = posixpath.normpath(found["linkTarget"]).rstrip("/")
    return resolved


def _is_carried(files: ContainerFiles, path: str) -> bool:
    """Tell whether a path is a directory or a regular file, and no link leads to it."""
    for parent in _parents(path):
        found = files.look_up(parent)
        if found is None or not int(found["mode"]) & DIRECTORY:
            return False
    found = files.look_up(path)
    return found is not None and not int(found["mode"]) & (SYMLINK | SPECIAL)


def _parents(path: str) -> list[str]:
    """Return the directories above a path, the highest first, without the root.

    >>> _parents("/srv/shop/data")
    ['/srv', '/srv/shop']
    """
    names = path.strip("/").split("/")
    return ["/" + "/".join(names[:depth]) for depth in range(1, len(names))]


def _outermost(paths: Sequence[str]) -> list[str]:
    """Return the paths without those that lie in others.

    >>> _outermost(["/app/data", "/srv", "/app", "/app-old"])
    ['/app', '/app-old', '/srv']
    """
    return [path for path in sorted(set(paths)) if not any(is_in(path, other) for other in paths if other != path)]
