"""Changes of text files: read unified diffs and ``apply_patch`` patches, and apply them to texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_evocode.errors import DiffError
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
