"""The texts in a workspace as an agent's recorded changes make them, from what the task brings to what was left."""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_evocode.errors import DiffError
from pytest_evocode.process.trajectory.text_changes import TextChange, apply_change
from pytest_evocode.tasks import Round, Task

#: Bytes of a file that is looked into.
TEXT_LIMIT = 2**20

#: Finds texts that a file may have had at the beginning, by its path.
Originals = Callable[[str], Iterable[str]]


class WorkspaceTexts:
    """The files of a workspace whose text is known; every other file may be there or not.

    ``originals`` gives the texts that a file may have had before anything was recorded of it: one that a recorded
    change fits is taken.
    """

    def __init__(self, originals: Originals = lambda path: ()) -> None:
        self.texts: dict[str, str] = {}
        self.lost: set[str] = set()
        """Files that are there with a text that could not be found out."""
        self._originals = originals
        self._seen: set[str] = set()

    def put(self, files: Mapping[str, str]) -> None:
        """Lay files over the workspace, as a round's ``workdir`` is."""
        for path, text in files.items():
            self._set(path, text)

    def text(self, path: str) -> str | None:
        """A file's text; one that nothing is recorded of has its original's, where there is only one."""
        if path not in self._seen:
            found = set(self._originals(path))
            if len(found) == 1:
                return found.pop()
        return self.texts.get(path)

    def apply(self, change: TextChange) -> tuple[str | None, str | None]:
        """The file's text before and after a change; None for no file and for what cannot be known."""
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
    """The texts that a task brings: those of its build context, wherever its image puts them, and of its rounds."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._context = _read_texts(task.environment_directory)
        self._by_name: dict[str, list[str]] = {}
        for path in self._context:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def originals(self, path: str) -> list[str]:
        """The texts that a file of the image may have: of files in the build context whose path ends as this one does.

        The longest common ending comes first.
        """
        parts = path.split("/")
        ranked = sorted(self._by_name.get(parts[-1], ()), key=lambda each: -_common_ending(parts, each.split("/")))
        return [self._context[each] for each in ranked]

    def matching(self, pattern: str) -> list[str]:
        """The paths that a shell's pattern in the workspace may stand for, as far as the build context has them."""
        depth = pattern.count("/") + 1
        found = ("/".join(path.split("/")[-depth:]) for path in self._context)
        # A shell's star ends at a slash, and fnmatch's does not.
        return sorted({path for path in found if path.count("/") + 1 == depth and fnmatchcase(path, pattern)})

    @property
    def paths(self) -> list[str]:
        """Paths of the build context, relative to it."""
        return sorted(self._context)

    def context(self, path: str) -> str:
        """A text of the build context."""
        return self._context[path]

    def brought_by(self, round_: Round) -> dict[str, str]:
        """What a round puts into the working directory."""
        return _read_texts(round_.workdir) if round_.workdir is not None else {}


def workdir_of(task: Task) -> str | None:
    """The working directory of a task's image, as task.toml or its Dockerfile says; None where neither does."""
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
                continue  # A binary file, or one that is not there: its text is not known.
    return texts
