"""Recorded changes of files as the viewer shows them: ``FileChange`` in ``viewer/data.d.ts``."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_evocode.report.html.steps.sparse_text import whole_diff

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
    removed: dict[str, dict[str, Any]] = {}
    tables = list(tables)
    for table in tables:
        if table["kind"] == "deleted" and isinstance(text := table.get("diff"), str):
            removed[hashlib.sha256(_old_text(text).encode("utf-8", "replace")).hexdigest()] = {"path": table["path"]}
    gone: set[str] = set()
    for table in tables:
        source = removed.pop(table.get("sha256") or "", None) if table["kind"] == "added" else None
        if source is not None and table.get("diff"):
            gone.add(source["path"])
            changes.append(change_data(table["path"], "renamed", renamed_from=source["path"], steps=[step]))
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
