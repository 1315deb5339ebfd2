"""Follow the texts of files in a workspace through the recorded changes, from the task's own files on.

Changes are unified diffs, ``apply_patch`` patches, replacements or whole texts.
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from pytest_evocode.errors import DiffError
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trajectories.diffs import apply_diff, unified_diff

ChangeKind = Literal["added", "modified", "deleted"]

_HEADER = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@.*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place in a file that was changed; lines include their newlines."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    """First and last old line, from 1, of each run of changed lines, without the context around it."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """The recorded change of one file."""

    path: str
    kind: ChangeKind
    diff: str | None = None
    """None for a binary file, and where no diff was recorded."""
    content: str | None = None
    """The whole new text, where that was recorded instead of a diff."""
    replacements: tuple[tuple[str, str], ...] = ()
    """Pairs of old and new pieces of text, where those were recorded instead of a diff."""
    sha256: str | None = None
    """Of the new content, where it is known."""


# Not unidiff, which refuses a diff without file headers, nor whatthepatch, which loses how a line ends.
def read_diff(diff: str) -> tuple[Hunk, ...]:
    r"""Return the hunks of a unified diff of one file.

    >>> read_diff("@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
    (Hunk(added=('c\n',), removed=('b\n',), spans=((2, 2),)),)
    """
    parts = _HEADER.split(diff)
    return tuple(_read_hunk(int(start), body) for start, body in zip(parts[1::2], parts[2::2], strict=True))


def _read_hunk(start: int, body: str) -> Hunk:
    added: list[str] = []
    removed: list[str] = []
    spans: list[tuple[int, int]] = []
    at, begun = start, 0
    for line in (*body.split("\n"), ""):
        sign = line[:1]
        if sign == "\\":  # "\ No newline at end of file"
            continue
        if sign in ("-", "+"):
            begun = begun or at
            (removed if sign == "-" else added).append(f"{line[1:]}\n")
        elif begun:
            spans.append((begun, max(begun, at - 1)))
            begun = 0
        at += sign != "+"
    return Hunk(tuple(added), tuple(removed), tuple(spans))


def apply_change(text: str | None, change: TextChange) -> str | None:
    """Return the file's text after a change; None for a deleted file.

    Args:
        text: The text before the change; None where there is no file or the text is unknown.
        change: The change.

    Raises:
        DiffError: The new text cannot be known.
    """
    if change.kind == "deleted":
        return None
    if change.content is not None:
        return change.content
    if change.diff is not None and (text is not None or change.kind == "added"):
        return apply_diff(text or "", change.diff)
    if change.replacements and text is not None:
        for old, new in change.replacements:
            if old not in text:
                raise DiffError(f"the text does not have {old[:40]!r}")
            text = text.replace(old, new)
        return text
    raise DiffError("the text before the change is not known")


def hunks_between(before: str, after: str) -> tuple[Hunk, ...]:
    r"""Return the hunks of the diff of two texts, with three lines of context.

    >>> [hunk.added for hunk in hunks_between("a\nb\n", "a\nc\n")]
    [('c\n',)]
    """
    return read_diff(unified_diff("", before, after))


def read_patch(patch: str) -> Iterator[TextChange]:
    """Yield the changes of a patch for ``apply_patch`` (``*** Begin Patch``), whose hunks have no line numbers."""
    parts = re.split(r"^\*\*\* (Add|Update|Delete) File: (.+)\n?", patch, flags=re.MULTILINE)
    for verb, path, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        lines = [line for line in body.split("\n") if not line.startswith("*** ")]
        if verb == "Delete":
            yield TextChange(path.strip(), "deleted")
        elif verb == "Add":
            content = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
            yield TextChange(path.strip(), "added", content=content)
        else:
            yield TextChange(path.strip(), "modified", replacements=tuple(_replacements(lines)))
            moved = re.search(r"^\*\*\* Move to: (.+)$", body, re.MULTILINE)
            if moved:
                yield TextChange(moved[1].strip(), "added")


def _replacements(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    old: list[str] = []
    new: list[str] = []
    for line in (*lines, "@@"):
        if line.startswith("@@"):
            if old or new:
                yield "".join(old), "".join(new)
            old, new = [], []
        elif line[:1] == "-":
            old.append(f"{line[1:]}\n")
        elif line[:1] == "+":
            new.append(f"{line[1:]}\n")
        elif line[:1] == " ":
            old.append(f"{line[1:]}\n")
            new.append(f"{line[1:]}\n")


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

    def text_of(self, path: str) -> str | None:
        """Return the text of a file; None where there is none, or it is unknown."""
        return next(iter(self._candidates(path, TextChange(path, "modified"))), None)

    def apply(self, change: TextChange) -> tuple[str | None, str | None]:
        """Apply a change and return the file's text before and after; None for no file or an unknown text."""
        path = change.path
        for before in self._candidates(path, change):
            try:
                after = apply_change(before, change)
            except DiffError:
                continue
            if change.sha256 and after is not None:
                content = after.encode("utf-8", "surrogateescape")
                if hashlib.sha256(content).hexdigest() != change.sha256:
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
