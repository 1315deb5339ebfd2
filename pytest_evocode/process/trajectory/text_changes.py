"""Changes of files: unified diffs and the patches of ``apply_patch``, taken apart and applied to texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_evocode.errors import DiffError
from pytest_evocode.trajectories.diffs import patched, unified_diff

ChangeKind = Literal["added", "modified", "deleted"]

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place in a file that became another; lines with their newlines."""

    added: tuple[str, ...]
    """The lines that were not there before."""
    removed: tuple[str, ...]
    """The lines that are not there any more."""
    spans: tuple[tuple[int, int], ...]
    """First and last old line, from 1, of each part that was changed, without what is around it."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """What became of one file, as far as it was recorded."""

    path: str
    kind: ChangeKind
    diff: str | None = None
    """None where the change is of a binary file, or was not recorded."""
    content: str | None = None
    """The whole new text, where that was recorded instead."""
    replacements: tuple[tuple[str, str], ...] = ()
    """Or the pieces of text that were put in place of others."""
    sha256: str | None = None
    """Of the new content, where it is known."""


def read_diff(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff of one file.

    >>> read_diff("@@ -1,2 +1,2 @@\\n a\\n-b\\n+c\\n")
    (Hunk(added=('c\\n',), removed=('b\\n',), spans=((2, 2),)),)
    """
    hunks: list[Hunk] = []
    lines = diff.split("\n")
    position = 0
    while position < len(lines):
        header = _HEADER.match(lines[position])
        position += 1
        if header is not None:
            start, old_count, new_count = (1 if group is None else int(group) for group in header.groups())
            hunk, position = _read_hunk(lines, position, start, old_count, new_count)
            hunks.append(hunk)
    return tuple(hunks)


def _read_hunk(lines: Sequence[str], position: int, start: int, old_left: int, new_left: int) -> tuple[Hunk, int]:
    added: list[str] = []
    removed: list[str] = []
    spans: list[tuple[int, int]] = []
    at, begun = start, 0
    while position < len(lines) and (old_left > 0 or new_left > 0):
        line = lines[position]
        position += 1
        if line[:1] == "\\":
            continue
        if line[:1] in ("-", "+"):
            begun = begun or at
            (removed if line[0] == "-" else added).append(f"{line[1:]}\n")
        elif begun:
            spans.append((begun, max(begun, at - 1)))
            begun = 0
        at += line[:1] != "+"
        old_left -= line[:1] != "+"
        new_left -= line[:1] != "-"
    if begun:
        spans.append((begun, max(begun, at - 1)))
    return Hunk(tuple(added), tuple(removed), tuple(spans)), position


def apply_change(text: str | None, change: TextChange) -> str | None:
    """The file's text after a change; ``text`` is the one before, None for no file or an unknown text.

    None for a deleted file. Raises :class:`~pytest_evocode.trajectories.diffs.DiffError` where the new text cannot be
    known.
    """
    if change.kind == "deleted":
        return None
    if change.content is not None:
        return change.content
    if change.diff is not None and (text is not None or change.kind == "added"):
        return patched(text or "", change.diff)
    if change.replacements and text is not None:
        for old, new in change.replacements:
            if old not in text:
                raise DiffError(f"the text does not have {old[:40]!r}")
            text = text.replace(old, new)
        return text
    raise DiffError("the text before the change is not known")


def hunks_between(before: str, after: str) -> tuple[Hunk, ...]:
    """The hunks of the diff of two texts, with three lines of context.

    >>> [hunk.added for hunk in hunks_between("a\\nb\\n", "a\\nc\\n")]
    [('c\\n',)]
    """
    return read_diff(unified_diff("", before, after))


def read_patch(patch: str) -> Iterator[TextChange]:
    """The changes of a patch for ``apply_patch`` (``*** Begin Patch``), whose hunks have no line numbers."""
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
