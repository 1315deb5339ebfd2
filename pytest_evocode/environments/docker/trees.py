"""Keeps directories of a container as they are, and puts them into another one, by the engine's archive calls."""

from __future__ import annotations

import contextlib
import io
import itertools
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.files import DIRECTORY, SPECIAL, SYMLINK, ChunkReader, ContainerFiles
from pytest_evocode.environments.tree_archives import CHUNK, END, DirectoryAbove, filter_tar, is_in

if TYPE_CHECKING:
    from docker import APIClient


class ContainerTrees(ABC):
    """A base class with the verbs of :class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`."""

    _client: APIClient

    @property
    @abstractmethod
    def _files(self) -> ContainerFiles:
        """The files of the running container."""

    @property
    @abstractmethod
    def _mounted(self) -> Sequence[str]:
        """The directories that are mounts of the engine's."""

    @abstractmethod
    def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""

    def pack_trees(self, paths: Sequence[str], archive: BinaryIO, *, files: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`."""
        for path in paths:
            found = self._files.look_up(path)
            wanted = found is not None and (
                int(found["mode"]) & DIRECTORY or (files and not int(found["mode"]) & (SYMLINK | SPECIAL))
            )
            if not wanted:
                continue
            with faults(f"reading {path}"):
                chunks, _ = self._client.get_archive(self._files.container, path)
                with contextlib.closing(chunks):
                    stream = io.BufferedReader(ChunkReader(chunks), CHUNK)
                    archive.writelines(filter_tar(stream, posixpath.dirname(path)))
        archive.write(END)

    def put_trees(self, paths: Sequence[str], above: Sequence[DirectoryAbove], archive: BinaryIO) -> None:
        """See :class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`."""
        self._files.make_pending()
        links = [each.path for each in above if self._files.is_link(each.path)]
        self.remove(links)
        # A mount cannot be removed, and a fork has those of its image, such as a VOLUME. What is there stays beside.
        self.remove([path for path in paths if not any(is_in(mount, path) for mount in self._mounted)])
        # The engine would give those that are there another owner.
        missing = [directory for directory in above if not self._files.is_directory(directory.path)]
        parts = (directory.entry() for directory in missing)
        chunks = iter(lambda: archive.read(CHUNK), b"")
        with faults("putting directories into a container"):
            self._client.put_archive(self._files.container, "/", itertools.chain(parts, chunks))
