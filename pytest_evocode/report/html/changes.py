"""Changes of files that a step or a round made, as the viewer shows them: ``FileChange`` in ``viewer/data.d.ts``."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.errors import DiffError
from pytest_evocode.report.html.sparse_text import SparseText, whole_diff
from pytest_evocode.trajectories.diffs import split_lines, unified_diff

#: Characters of a diff.
LONGEST_DIFF = 200_000

KINDS = {"added": "added", "modified": "changed", "deleted": "removed"}
"""What the viewer calls the kinds of recorded changes."""
NOT_RECORDED = "its contents were not recorded: it is no text in UTF-8, or over a limit"


def is_change(table: Any) -> bool:
    """Return whether a value of a trajectory is the table of a changed file."""
    return isinstance(table, dict) and table.get("kind") in KINDS and isinstance(table.get("path"), str)


def change_data(
    path: str,
    kind: str,
    diff: str = "",
    *,
    counts: tuple[int, int] | None = None,
    note: str = "",
    steps: Sequence[int] = (),
    renamed_from: str = "",
) -> dict[str, Any]:
    """Return a changed file; its diff has no header, and is cut where it is long, with a note.

    ``counts`` are the lines added and removed; None counts them in the diff.
    """
    added, removed = counts if counts is not None else count_lines(diff)
    shown = diff
    if len(diff) > LONGEST_DIFF:
        shown = diff[: diff.rfind("\n", 0, LONGEST_DIFF) + 1]
        cut = f"the diff has {len(diff):,} characters, of which the first {len(shown):,} are shown"
        note = f"{note}; {cut}" if note else cut
    return {
        "path": path,
        "kind": kind,
        "from": renamed_from,
        "diff": shown,
        "added": added,
        "removed": removed,
        "note": note,
        "steps": list(steps),
    }


def changes_of_call(tables: Iterable[Mapping[str, Any]], step: int) -> list[dict[str, Any]]:
    """Return the files that one call changed; one that was removed and added elsewhere unchanged is renamed."""
    changes: list[dict[str, Any]] = []
    removed: dict[str, str] = {}
    tables = list(tables)
    for table in tables:
        if table["kind"] == "deleted" and isinstance(text := table.get("diff"), str):
            removed[hashlib.sha256(_old_text(text).encode("utf-8", "replace")).hexdigest()] = table["path"]
    gone: set[str] = set()
    for table in tables:
        source = removed.pop(table.get("sha256") or "", None) if table["kind"] == "added" else None
        if source is not None and table.get("diff"):
            gone.add(source)
            changes.append(change_data(table["path"], "renamed", renamed_from=source, steps=[step]))
        else:
            changes.append(_of_table(table, step))
    return [change for change in changes if not (change["kind"] == "removed" and change["path"] in gone)]


def _of_table(table: Mapping[str, Any], step: int) -> dict[str, Any]:
    kind, diff = KINDS[table["kind"]], table.get("diff")
    if isinstance(diff, str):
        note = "" if diff else note_of(table)
        return change_data(table["path"], kind, without_header(diff), note=note, steps=[step])
    text = text_in(table)
    if text is not None and kind == "added":
        return change_data(table["path"], kind, whole_diff("+", text), steps=[step])
    return change_data(table["path"], kind, note=note_of(table), steps=[step])


def note_of(table: Mapping[str, Any]) -> str:
    """Return why a change has no diff."""
    if isinstance(link := table.get("symlink"), str):
        return f"it is a link to {link}"
    if table.get("diff") == "":
        if table["kind"] == "modified":
            return f"only its mode changed, to {table.get('mode')}"
        return "it has no lines"
    if text_in(table) is not None:
        return "only what it became was recorded, and not what it was"
    if table.get("content") is not None:
        return "it is no text in UTF-8"
    return NOT_RECORDED


def text_in(table: Mapping[str, Any]) -> str | None:
    """Return the whole new text of a file, where that was recorded in place of a diff and is text."""
    try:
        text = base64.b64decode(table["content"], validate=True).decode("utf-8")
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    return None if "\0" in text else text


def without_header(diff: str) -> str:
    """Return a unified diff without the lines that name its two sides."""
    at = 0 if diff.startswith("@@") else diff.find("\n@@") + 1
    return diff[at:]


def count_lines(diff: str) -> tuple[int, int]:
    """Return how many lines a diff without a header adds and removes."""
    at_start = "\n" + diff
    return at_start.count("\n+"), at_start.count("\n-")


def _old_text(diff: str) -> str:
    """Return the text that the diff of a removed file has."""
    lines = without_header(diff).split("\n")
    kept = [line for line in lines if line[:1] in ("-", "\\")]
    text = "".join(f"{line[1:]}\n" for line in kept if line[:1] == "-")
    return text[:-1] if kept and kept[-1].startswith("\\") else text


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
    is_link = isinstance(table.get("symlink"), str)
    file.exists = kind != "deleted"
    if diff == "" and kind == "modified" and not is_link:
        file.notes.append(f"its mode changed to {table.get('mode')}")
        return
    file.differs = True
    if file.unknown:
        return
    if not isinstance(diff, str) and kind == "deleted":
        file.unknown = note_of(table) if file.existed else ""
    elif not isinstance(diff, str) and not is_link and kind == "added" and (text := text_in(table)) is not None:
        file.text.replace(text)
    elif not isinstance(diff, str) or is_link:
        file.unknown = note_of(table)
    else:
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
