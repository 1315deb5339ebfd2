"""Keeps directories of a sandbox as they are, and puts them into another one."""

from __future__ import annotations

import os
import posixpath
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, BinaryIO

from pytest_evocode.environments.sandbox.launcher_client import receive, send_tar
from pytest_evocode.environments.tree_archives import CHUNK, END, DirectoryAbove, filter_tar


class SandboxTrees(ABC):
    """A base class with the verbs of :class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`."""

    @abstractmethod
    def _begin(self, operation: str, fds: Sequence[int] = (), *, control: int | None = None, **arguments: Any) -> int:
        """Send a request, and return the descriptor that the reply comes from unless ``control`` is to take it."""

    @abstractmethod
    def _ask(
        self, operation: str, fds: Sequence[int] = (), *, timeout: float | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Send a request and return the reply, which has to come within ``timeout`` seconds."""

    @abstractmethod
    def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""

    def pack_trees(self, paths: Sequence[str], archive: BinaryIO, *, files: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`."""
        for path in paths:
            if self._kind(path) not in (("directory", "file") if files else ("directory",)):
                continue
            read, write = os.pipe()
            with os.fdopen(read, "rb") as stream:
                try:
                    reply = self._begin("pack", [write], path=path)
                finally:
                    os.close(write)
                try:
                    archive.writelines(filter_tar(stream, posixpath.dirname(path)))
                except BaseException:
                    os.close(reply)
                    raise
            receive(reply)
        archive.write(END)

    def put_trees(self, paths: Sequence[str], above: Sequence[DirectoryAbove], archive: BinaryIO) -> None:
        """See :class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`."""
        self.remove([each.path for each in above if self._kind(each.path) == "link"])
        self.remove(paths)

        def write(stream: BinaryIO) -> None:
            stream.writelines(directory.entry() for directory in above)
            shutil.copyfileobj(archive, stream, CHUNK)

        send_tar(self._begin, write)

    def _kind(self, path: str) -> object:
        """Return what stands at a path, a link not followed; None where there is nothing."""
        return self._ask("status", path=path).get("status", {}).get("kind")
