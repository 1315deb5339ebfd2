"""Follow the texts of files in a workspace through the recorded changes, from the task's own files on."""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_evocode.errors import DiffError
from pytest_evocode.process.trajectory.text_changes import TextChange, apply_change
from pytest_evocode.tasks import Round, Task

#: Bytes beyond which a file is not read.
TEXT_LIMIT = 2**20

#: Returns the texts that the file at a path may have had at the start of the attempt.
Originals = Callable[[str], Iterable[str]]


class WorkspaceTexts:
    """The known texts of the files in a workspace; whether any other file exists is unknown.

    ``originals`` returns the texts that a file may have had at the start. Where there are several, the first one that
    a recorded change fits is taken.
    """

    def __init__(self, originals: Originals = lambda path: ()) -> None:
        self.texts: dict[str, str] = {}
        self.lost: set[str] = set()
        """Files that exist, but whose text could not be reconstructed."""
        self._originals = originals
        self._seen: set[str] = set()

    def put(self, files: Mapping[str, str]) -> None:
        """Add files to the workspace, such as a round's ``workdir``."""
        for path, text in files.items():
            self._set(path, text)

    def apply(self, change: TextChange) -> tuple[str | None, str | None]:
        """Apply a change and return the file's text before and after; None for no file or an unknown text."""
        path = change.path
        for before in self._candidates(path, change):
            try:
                after = apply_change(before, change)
            except DiffError:
                continue
            if change.sha256 and after is not None and not _has_hash(after, change.sha256):
                continue
            self._set(path, after)
            return before, after
        self._set(path, None)
        if change.kind != "deleted":
            self.lost.add(path)
        return None, None

    def _candidates(self, path: str, change: TextChange) -> Iterable[str | None]:
        if path in self.texts:
            return [self.texts[path]]
        if path in self._seen or change.kind == "added":
            return [None]
        return [*dict.fromkeys(self._originals(path)), None]

    def _set(self, path: str, text: str | None) -> None:
        self._seen.add(path)
        self.lost.discard(path)
        if text is None:
            self.texts.pop(path, None)
        else:
            self.texts[path] = text


def _has_hash(text: str, sha256: str) -> bool:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() == sha256


class TaskTexts:
    """The texts of a task's files: those of its build context, wherever its image puts them, and of its rounds."""

    def __init__(self, task: Task) -> None:
        self.context = _read_texts(task.environment_directory)
        """The texts of the build context's files, by their paths relative to it."""
        self._by_name: dict[str, list[str]] = {}
        for path in self.context:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def originals(self, path: str) -> list[str]:
        """Return the texts that a file of the image may have: those of the files of that name in the build context.

        Files whose path has the longest common ending come first.
        """
        parts = path.split("/")
        ranked = sorted(self._by_name.get(parts[-1], ()), key=lambda each: -_common_ending(parts, each.split("/")))
        return [self.context[each] for each in ranked]

    def matching(self, pattern: str) -> list[str]:
        """Return the paths of the build context that a shell's pattern in the workspace may match."""
        depth = pattern.count("/") + 1
        return sorted(set(matching_paths(("/".join(path.split("/")[-depth:]) for path in self.context), pattern)))

    def brought_by(self, round_: Round) -> dict[str, str]:
        """Return the texts of the files that a round brings into the working directory."""
        return _read_texts(round_.workdir) if round_.workdir is not None else {}


def matching_paths(paths: Iterable[str], pattern: str) -> Iterator[str]:
    """Yield the paths that match a shell's pattern, whose star, unlike fnmatch's, ends at a slash."""
    depth = pattern.count("/")
    return (path for path in paths if path.count("/") == depth and fnmatchcase(path, pattern))


def workdir_of(task: Task) -> str | None:
    """Return the working directory by task.toml or the Dockerfile; None where neither says."""
    if task.config.environment.workdir is not None:
        return task.config.environment.workdir
    if task.dockerfile is None:
        return None
    from dockerfile_parse import DockerfileParser

    workdir = ""
    for instruction in DockerfileParser(fileobj=io.BytesIO(task.dockerfile.read_bytes())).structure:
        if instruction["instruction"] == "FROM":
            workdir = ""
        elif instruction["instruction"] == "WORKDIR":
            workdir = posixpath.normpath(posixpath.join(workdir or "/", instruction["value"]))
    return workdir or None


def _common_ending(left: list[str], right: list[str]) -> int:
    return next(
        (count for count, (a, b) in enumerate(zip(left[::-1], right[::-1], strict=False)) if a != b),
        min(len(left), len(right)),
    )


def _read_texts(directory: Path) -> dict[str, str]:
    texts = {}
    for place, names, files in os.walk(directory):
        names[:] = [name for name in names if name not in (".git", "__pycache__", "node_modules")]
        for name in files:
            path = Path(place, name)
            try:
                if path.stat().st_size <= TEXT_LIMIT:
                    texts[path.relative_to(directory).as_posix()] = path.read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                continue  # A binary or unreadable file has no known text.
    return texts
