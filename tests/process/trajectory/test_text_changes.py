"""Diffs and patches, and the texts that they lead to."""

from __future__ import annotations

from pytest_evocode.process.trajectory.file_texts import (
    TextChange,
    WorkspaceTexts,
    apply_change,
    hunks_between,
    read_patch,
)


def test_what_was_added_and_removed_is_without_what_is_around_it() -> None:
    (hunk,) = hunks_between("a\nb\nc\nd\n", "a\nb\nx\nd\n")
    assert (hunk.added, hunk.removed, hunk.spans) == (("x\n",), ("c\n",), ((3, 3),))


def test_a_patch_without_line_numbers_is_replacements() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n x\n-y\n+z\n*** Delete File: b.py\n*** End Patch"
    first, second = read_patch(patch)
    assert apply_change("w\nx\ny\n", first) == "w\nx\nz\n"
    assert (second.path, second.kind) == ("b.py", "deleted")


def test_a_text_is_the_one_that_the_recorded_change_fits() -> None:
    workspace = WorkspaceTexts(lambda path: ["other\n", "a\n"])
    change = TextChange("x.py", "modified", diff=("@@ -1 +1 @@\n-a\n+b\n"))
    assert workspace.apply(change) == ("a\n", "b\n")


def test_a_text_that_cannot_be_known_is_lost_until_it_is_written_anew() -> None:
    workspace = WorkspaceTexts()
    workspace.apply(TextChange("x.py", "modified", diff=("@@ -1 +1 @@\n-a\n+b\n")))
    assert workspace.lost == {"x.py"}
    workspace.apply(TextChange("x.py", "modified", content="c\n"))
    assert (workspace.texts["x.py"], workspace.lost) == ("c\n", set())


def test_a_hash_that_does_not_fit_is_another_text() -> None:
    workspace = WorkspaceTexts()
    workspace.apply(TextChange("x.py", "added", diff=("@@ -0,0 +1 @@\n+a\n"), sha256="0" * 64))
    assert workspace.lost == {"x.py"}
