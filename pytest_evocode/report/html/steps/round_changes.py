"""What a round changed in the workspace, composed of the changes that its steps recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.errors import DiffError
from pytest_evocode.report.html.steps.file_changes import change_data, note_of, text_in, without_header
from pytest_evocode.report.html.steps.sparse_text import SparseText
from pytest_evocode.trajectories.diffs import split_lines, unified_diff

_MOST_FILES = 1000
_ALIKE = 0.6  # of the lines of the longer text, from which on a removed and an added file are one that was renamed
_FEWEST_LINES = 3  # of a text that was renamed and changed
_LARGEST_RENAMED = 2000  # lines
_MOST_COMPARED = 1000  # pairs of removed and added files


@dataclass(slots=True)
class _File:
    """A file through the changes of a round."""

    text: SparseText
    existed: bool
    exists: bool = True
    unknown: str = ""
    """Why there is no diff."""
    notes: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    differs: bool = False
    """Whether more than its mode or its kind was changed."""


class RoundChanges:
    """Composes the changes of a round, in the order in which they were made."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._left_out = 0

    def add(self, tables: Iterable[Mapping[str, Any]], step: int | None) -> None:
        """Add changes that a step recorded, or that no step made where it is None."""
        for table in tables:
            path = table["path"]
            file = self._files.get(path)
            if file is None:
                if len(self._files) == _MOST_FILES:
                    self._left_out += 1
                    continue
                existed = table["kind"] != "added"
                file = self._files[path] = _File(SparseText(existed=existed), existed)
            if step is None:
                file.notes.append("a part of it was changed by no call, such as by a program in the background")
            elif step not in file.steps:
                file.steps.append(step)
            _apply(file, table)

    def result(self) -> list[dict[str, Any]]:
        """Return the changed files by path; those that are as they were before are not among them."""
        renamed = self._renamed()
        sources = set(renamed.values())
        found = []
        for path, file in sorted(self._files.items()):
            if path in renamed:
                found.append(_renamed_data(path, file, renamed[path], self._files[renamed[path]]))
            elif path not in sources and (data := _file_data(path, file)) is not None:
                found.append(data)
        if self._left_out:
            note = f"{self._left_out} more changes of further files are left out"
            found.append(change_data("...", "changed", note=note))
        return found

    def _renamed(self) -> dict[str, str]:
        """Return the paths before of files that were renamed, by the paths after."""
        gone = {
            path: text
            for path, file in self._files.items()
            if file.existed and not file.exists and not file.unknown and (text := file.text.before)
        }
        came = {
            path: text
            for path, file in sorted(self._files.items())
            if file.exists and not file.existed and not file.unknown and (text := file.text.now)
        }
        found: dict[str, str] = {}
        same = {text: path for path, text in sorted(gone.items(), reverse=True)}
        for path, text in came.items():
            if source := same.pop(text, None):
                found[path] = source
                del gone[source]
        rest = {path: text for path, text in came.items() if path not in found}
        if len(rest) * len(gone) > _MOST_COMPARED:
            return found
        for path, text in rest.items():
            best = max(gone, key=lambda each: _likeness(gone[each], text), default="")
            if best and _likeness(gone[best], text) >= _ALIKE:
                found[path] = best
                del gone[best]
        return found


def _apply(file: _File, table: Mapping[str, Any]) -> None:
    kind, diff = table["kind"], table.get("diff")
    file.exists = kind != "deleted"
    if kind == "deleted" and not isinstance(diff, str):
        file.differs = True
        file.unknown = file.unknown or ("" if not file.existed else note_of(table))
        return
    if isinstance(table.get("symlink"), str):
        file.differs = True
        file.unknown = file.unknown or note_of(table)
        return
    if not isinstance(diff, str):
        text = text_in(table)
        file.differs = True
        if text is not None and kind == "added" and not file.unknown:
            file.text.replace(text)
        else:
            file.unknown = file.unknown or note_of(table)
        return
    if not diff and kind == "modified":
        file.notes.append(f"its mode changed to {table.get('mode')}")
        return
    file.differs = True
    if file.unknown:
        return
    try:
        file.text.apply(without_header(diff))
        if kind == "deleted":
            file.text.close()
    except DiffError as error:
        file.unknown = f"its recorded changes do not follow one another, see the steps: {error}"


def _file_data(path: str, file: _File) -> dict[str, Any] | None:
    if not file.existed and not file.exists:
        return None  # It came and went within the round.
    kind = "removed" if not file.exists else "changed" if file.existed else "added"
    notes = dict.fromkeys([file.unknown, *file.notes] if file.unknown else file.notes)
    note = "; ".join(notes)
    if file.unknown:
        return change_data(path, kind, note=note, steps=file.steps)
    diff, added, removed = file.text.diff()
    if not diff and kind == "changed" and file.differs and not file.notes:
        return None  # It is again what it was.
    if not diff and not note:
        note = "it has no lines"
    return change_data(path, kind, diff, counts=(added, removed), note=note, steps=file.steps)


def _renamed_data(path: str, file: _File, source: str, gone: _File) -> dict[str, Any]:
    old, new = gone.text.before or "", file.text.now or ""
    diff = without_header(unified_diff(path, old, new))
    steps = sorted({*gone.steps, *file.steps})
    return change_data(
        path, "renamed", diff, note="; ".join(dict.fromkeys(file.notes)), steps=steps, renamed_from=source
    )


def _likeness(old: str, new: str) -> float:
    """Return the share of lines that two texts have in common, 0 to 1."""
    if old == new:
        return 1.0
    before, after = split_lines(old), split_lines(new)
    longer = max(len(before), len(after))
    if min(len(before), len(after)) < _FEWEST_LINES or longer > _LARGEST_RENAMED:
        return 0.0
    return (Counter(before) & Counter(after)).total() / longer
