"""Brings single paths of a snapshot into a container of the image: from layer to layer, or else through the engine."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.files import ContainerFiles, batches, streamed
from pytest_evocode.environments.docker.snapshots import MOUNTED, DockerSnapshot, layered_files, layers_can_be_read
from pytest_evocode.environments.overlay import NewLayer
from pytest_evocode.environments.programs import ExecResult, FileKind
from pytest_evocode.environments.tree_archives import CHUNK, END, filter_tar, is_in, parents
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient


logger = logging.getLogger(__name__)

_FEW = 8
"""Paths in a directory of the image's that are read one by one, 80 ms each; for more of them it is read whole."""


@dataclass(frozen=True, slots=True)
class CarriedFiles:
    """Some paths of a snapshot, to be brought into a container of the image that the snapshot was made from."""

    client: APIClient
    snapshot: DockerSnapshot
    only: tuple[str, ...]
    exact: tuple[str, ...]
    labels: Mapping[str, str]
    """Of the container from which the engine reads the snapshot's files, and in which nothing is ever started."""

    def lay(self, container: str) -> bool:
        """Put the paths into the layer of a container that was never started; False where only :meth:`bring` can."""
        with faults("carrying files over from a snapshot"):
            state = self.client.inspect_container(container)
            image = self.client.inspect_image(self.snapshot.image)  # type: ignore[no-untyped-call]
        if state["Mounts"] or not layers_can_be_read(state):
            return False
        top = state["GraphDriver"]["Data"]["UpperDir"]
        if os.listdir(top):
            return False
        exact = [path for path in self.exact if path not in MOUNTED]
        try:
            NewLayer(*layered_files(image, self.snapshot.image_layers), {"": top}).carry(self.only, exact)
        except OSError as error:
            logger.info("files are carried over into container %.12s by the engine: %s", container, error)
            for path in os.scandir(top):
                shutil.rmtree(path.path) if path.is_dir(follow_symlinks=False) else os.unlink(path.path)
            return False
        return True

    def bring(self, files: ContainerFiles, remove: Callable[[Sequence[str]], ExecResult]) -> None:
        """Put the paths into a container, in place of what its image has there, without what gives rights.

        Args:
            files: The files of the container, in which nothing of the agent is yet.
            remove: Runs ``rm -rf`` there.
        """
        target = _Looks(files)
        with faults("looking at a container's mounts"):
            mounts = self.client.inspect_container(files.container)["Mounts"]
        # What is shared with services came with them, and main may be one that can only read it.
        shared = [each["Destination"] for each in mounts if each["Destination"] not in self.snapshot.volumes]
        trees = _outermost([_resolve(files, path) for path in self.only])
        trees = [path for path in trees if not any(is_in(path, each) for each in shared)]
        own = [*trees, *self.snapshot.volumes, *shared, *MOUNTED]
        exact = {path for path in self.exact if not any(is_in(path, each) for each in own)}
        with self._files() as source, tempfile.TemporaryFile() as packed, faults("carrying files over from a snapshot"):
            found = [path for path in trees if source.kind(path) in ("directory", "file")]
            volumes = [each for each in self.snapshot.volumes if any(is_in(each, path) for path in trees)]
            volumes += [each for each in self.snapshot.volumes if any(is_in(path, each) for path in trees)]
            exact |= {above for path in (*found, *volumes) for above in target.missing_above(path)}
            try:
                gone = self._pack_exact(exact, source, target, packed)
                for path in found:
                    packed.writelines(self._of_container(source, path, without=shared))
                for path in dict.fromkeys(volumes):
                    packed.writelines(self._of_volume(path, trees))
                packed.write(END)
                around = [path for path in trees if any(is_in(each, path) for each in shared)]
                if around:
                    remove(["--one-file-system", "--", *around])
                    trees = [path for path in trees if path not in around]
                    gone += [each for each in volumes if any(is_in(each, path) for path in around)]
                self._remove([*trees, *gone], files, remove)
                # Not as it comes: an engine that stops sending would be kept receiving, with the container locked.
                packed.seek(0)
                self.client.put_archive(files.container, "/", iter(lambda: packed.read(CHUNK), b""))
            except tarfile.TarError as error:
                raise EnvironmentFault(f"the engine's archive of a snapshot cannot be read: {error}") from error

    def _pack_exact(self, exact: set[str], source: _Looks, target: _Looks, packed: IO[bytes]) -> list[str]:
        """Write to a tar what the snapshot has at paths and above them, and return the paths where it has nothing."""
        groups: dict[str, set[str]] = {}
        for path in sorted(exact):
            missing = target.missing_above(path)
            place = missing[0] if missing else posixpath.dirname(path)
            groups.setdefault(place, set()).update((path, *(f"{each}/" for each in missing)))
        gone = []
        for place, awaited in groups.items():
            is_read_whole = target.kind(place) != "directory" or len(awaited) > _FEW
            if is_read_whole and source.kind(place) == "directory":
                packed.writelines(self._of_container(source, place, awaited))
            for path in sorted(each for each in awaited if not each.endswith("/")):
                if source.kind(path) in ("directory", "link", "file"):
                    packed.writelines(self._of_container(source, path, {path}))
                elif target.kind(posixpath.dirname(path)) == "directory":
                    gone.append(path)
        return gone

    def _remove(
        self, paths: Sequence[str], target: ContainerFiles, remove: Callable[[Sequence[str]], ExecResult]
    ) -> None:
        for batch in batches(paths):
            if not remove(["--", *batch]).ok and (
                left := [path for path in batch if target.look_up(path) and not self._volumes_around(path)]
            ):
                raise EnvironmentFault(f"could not be removed from the container: {', '.join(left)}")

    @contextlib.contextmanager
    def _files(self) -> Iterator[_Looks]:
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
            yield _Looks(ContainerFiles(self.client, created["Id"]))
        finally:
            discard(self.client, "container", created["Id"])

    def _of_container(
        self, source: _Looks, path: str, awaited: set[str] | None = None, without: Sequence[str] = ()
    ) -> Iterator[bytes]:
        volumes = (*self.snapshot.volumes, *without)
        if path in volumes:
            return
        chunks, _ = self.client.get_archive(source.files.container, path)
        with streamed(chunks) as stream:
            yield from filter_tar(stream, posixpath.dirname(path), without=volumes, awaited=awaited)

    def _of_volume(self, volume: str, paths: Sequence[str]) -> Iterator[bytes]:
        # Opened anew, because several forks may read it at the same time.
        with open(f"/proc/self/fd/{self.snapshot.volumes[volume].fileno()}", "rb") as stream:
            yield from filter_tar(stream, posixpath.dirname(volume), within=paths)

    def _volumes_around(self, path: str) -> bool:
        """Tell whether a path is a volume's, or has one in it: the engine's mounts cannot be removed."""
        return any(is_in(volume, path) for volume in self.snapshot.volumes)


class _Looks:
    """What stands at the paths of a container that does not change; the engine is asked once for each."""

    def __init__(self, files: ContainerFiles) -> None:
        self.files = files
        self._kinds: dict[str, FileKind | None] = {"/": "directory"}

    def kind(self, path: str) -> FileKind | None:
        """Return what stands at a path; None for nothing, and where a link leads to."""
        if path not in self._kinds:
            is_there = self.kind(posixpath.dirname(path)) == "directory"
            self._kinds[path] = self.files.kind(path) if is_there else None
        return self._kinds[path]

    def missing_above(self, path: str) -> list[str]:
        """Return the directories above a path that are not there, the highest first."""
        return [parent for parent in parents(path) if self.kind(parent) != "directory"]


def _resolve(files: ContainerFiles, path: str) -> str:
    """Return the path that an absolute one leads to, all links followed."""
    resolved = ""
    for name in path.strip("/").split("/"):
        resolved = f"{resolved}/{name}"
        found = files.look_up(resolved)
        if found is not None and found.kind == "link" and found.leads_to:
            resolved = posixpath.normpath(found.leads_to).rstrip("/")
    return resolved


def _outermost(paths: Sequence[str]) -> list[str]:
    """Return the paths without those that lie in others.

    >>> _outermost(["/app/data", "/srv", "/app", "/app-old"])
    ['/app', '/app-old', '/srv']
    """
    return [path for path in sorted(set(paths)) if not any(is_in(path, other) for other in paths if other != path)]
