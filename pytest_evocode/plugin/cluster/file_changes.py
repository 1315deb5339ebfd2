"""Sends the files of an attempt's directory as they change, and writes them elsewhere, each whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_evocode.plugin.cluster.orders import FILE, REMOVED, Message
from pytest_evocode.tasks.atomic_write import replacing

_PART = 4 * 2**20  # bytes


class FileChanges:
    """The files of a directory that were made, changed or removed since they were last looked at."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, tuple[int, int, int]] = {}

    def messages(self) -> Iterator[Message]:
        """Yield what has changed. A file that changes while it is read is sent again by the next call."""
        found = dict(self._look())
        for path, state in found.items():
            if self._known.get(path) != state:
                with contextlib.suppress(OSError):  # It was removed, or belongs to somebody else.
                    yield from self._parts(path)
                    self._known[path] = state
        for path in self._known.keys() - found.keys():
            del self._known[path]
            yield REMOVED, path

    def _parts(self, path: str) -> Iterator[Message]:
        with (self._directory / path).open("rb") as file:
            part = file.read(_PART)
            while len(part) == _PART:
                following = file.read(_PART)
                yield FILE, path, part, not following
                if not following:
                    return
                part = following
            yield FILE, path, part, True

    def _look(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        for parent, _, names in os.walk(self._directory):
            for name in names:
                path = Path(parent, name)
                relative = path.relative_to(self._directory)
                # What is being written or gathered has such a name until it is whole.
                is_unready = any(part.startswith(".") for part in relative.parts) and "artifacts" not in relative.parts
                if is_unready or path.is_symlink() or not path.is_file():
                    continue
                with contextlib.suppress(FileNotFoundError):
                    state = path.stat()
                    yield relative.as_posix(), (state.st_ino, state.st_mtime_ns, state.st_size)


class FileCopies:
    """Writes the files that :class:`FileChanges` sends below another directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._begun: dict[str, list[bytes]] = {}

    def take(self, message: Message) -> None:
        """Take a message about a file; a path that leads out of the directory raises ValueError."""
        target = self._directory / message[1]
        if not target.resolve().is_relative_to(self._directory.resolve()):
            raise ValueError(f"{message[1]} is not in {self._directory}")
        if message[0] == REMOVED:
            target.unlink(missing_ok=True)
            return
        _, path, part, is_last = message
        parts = self._begun.setdefault(path, [])
        parts.append(part)
        if is_last:
            del self._begun[path]
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as file:
                file.writelines(parts)


def read_tree(directory: Path) -> dict[str, bytes]:
    """Return the contents of all files below a directory, by path; empty where there is none."""
    found: dict[str, bytes] = {}
    for _, path, part, _ in FileChanges(directory).messages():
        found[path] = found.get(path, b"") + part
    return found


def write_tree(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make a directory that has these files and nothing else."""
    shutil.rmtree(directory, ignore_errors=True)
    copies = FileCopies(directory)
    for path, contents in files.items():
        copies.take((FILE, path, contents, True))
