"""What a round changed in the workspace, composed of what its steps recorded."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from pytest_evocode.report.html.changes import RoundChanges
from pytest_evocode.trajectories.diffs import apply_diff
from pytest_evocode.trajectories.file_changes import File, describe_change
from tests.report.html.recordings import change

LINES = [f"line {number}\n" for number in range(40)]


def composed(*tables: tuple[int | None, dict[str, Any]]) -> list[dict[str, Any]]:
    """The changes of a round whose steps recorded these tables."""
    changes = RoundChanges()
    for step, table in tables:
        changes.add([table], step)
    return changes.result()


def edited(draw: random.Random, text: str) -> str:
    """A text with some lines removed, changed and added."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(lines))
        lines[at : at + draw.randint(0, 3)] = [f"new {draw.random()}\n" for _ in range(draw.randint(0, 3))]
    return "".join(lines)[: None if draw.random() < 0.8 else -1]


@pytest.mark.parametrize("seed", range(60))
def test_edits_one_after_the_other_are_one_diff(seed: int) -> None:
    draw = random.Random(seed)
    texts = ["".join(LINES)]
    for _ in range(draw.randint(1, 6)):
        texts.append(edited(draw, texts[-1]))
    tables = [(number, change("a.txt", *pair)) for number, pair in enumerate(pairwise(texts))]
    found = composed(*(table for table in tables if table[1]["diff"]))
    assert apply_diff(texts[0], "".join(each["diff"] for each in found)) == texts[-1]
    for each in found:
        lines = each["diff"].splitlines()
        assert each["added"] == sum(line.startswith("+") for line in lines)
        assert each["removed"] == sum(line.startswith("-") for line in lines)
        assert (each["kind"], each["note"]) == ("changed", "")


def test_a_file_has_the_steps_that_changed_it() -> None:
    (found,) = composed((3, change("a", "1\n", "2\n")), (5, change("a", "2\n", "3\n")), (5, change("a", "3\n", "4\n")))
    assert found["steps"] == [3, 5]
    assert found["diff"] == "@@ -1 +1 @@\n-1\n+4\n"


def test_a_new_file_has_all_its_lines() -> None:
    (found,) = composed((1, change("a", None, "1\n")), (2, change("a", "1\n", "1\n2")))
    assert (found["kind"], found["added"], found["removed"]) == ("added", 2, 0)
    assert found["diff"] == "@@ -0,0 +1,2 @@\n+1\n+2\n\\ No newline at end of file\n"


def test_a_removed_file_has_the_lines_from_before_the_round() -> None:
    (found,) = composed((1, change("a", "1\n2\n", "1\n3\n")), (2, change("a", "1\n3\n", None)))
    assert (found["kind"], found["diff"]) == ("removed", "@@ -1,2 +0,0 @@\n-1\n-2\n")


def test_what_comes_and_goes_within_a_round_is_no_change() -> None:
    assert composed((1, change("a", None, "1\n")), (2, change("a", "1\n", None))) == []
    assert composed((1, change("a", "1\n", "2\n")), (2, change("a", "2\n", "1\n"))) == []


def test_a_file_that_went_and_came_elsewhere_was_renamed() -> None:
    text = "".join(LINES)
    (found,) = composed((1, change("old.py", text, None)), (1, change("new.py", None, text)))
    assert (found["kind"], found["from"], found["path"], found["diff"]) == ("renamed", "old.py", "new.py", "")


def test_a_renamed_file_may_be_changed_as_well() -> None:
    old, new = "".join(LINES), "".join(LINES).replace("line 7\n", "seven\n")
    (found,) = composed((1, change("old.py", old, None)), (2, change("new.py", None, new)))
    assert (found["kind"], found["added"], found["removed"], found["steps"]) == ("renamed", 1, 1, [1, 2])
    assert "-line 7\n+seven\n" in found["diff"]


def test_files_without_much_in_common_are_not_one() -> None:
    found = composed((1, change("old.py", "a\nb\nc\n", None)), (1, change("new.py", None, "d\ne\nf\n")))
    assert [(each["kind"], each["path"]) for each in found] == [("added", "new.py"), ("removed", "old.py")]


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (File(content=b"\0", sha256="1"), File(content=b"\0\1", sha256="2"), "it is no text in UTF-8"),
        (File(sha256="1"), File(sha256="2"), "its contents were not recorded"),
        (File(sha256="1"), File(content=b"x\n", sha256="2"), "only what it became was recorded"),
        (None, File(symlink="/etc/passwd"), "it is a link to /etc/passwd"),
        (File(content=b"x", sha256="1", mode=0o644), File(content=b"x", sha256="1", mode=0o755), "its mode changed"),
        (None, File(content=b"", sha256="1"), "it has no lines"),
    ],
)
def test_without_a_diff_it_says_why(old: File | None, new: File | None, note: str) -> None:
    tables = describe_change("a", old, new, whole_limit=2**16, limit=2**20)
    (found,) = composed(*((4, table) for table in tables))
    assert found["diff"] == ""
    assert note in found["note"]


def test_a_content_that_was_lost_in_between_is_not_made_up() -> None:
    lost = {**change("a", "2\n", "3\n"), "diff": None, "content": None}
    (found,) = composed((1, change("a", "1\n", "2\n")), (2, lost), (3, change("a", "3\n", "4\n")))
    assert (found["diff"], found["steps"]) == ("", [1, 2, 3])
    assert "not recorded" in found["note"]


def test_diffs_that_do_not_follow_one_another_are_not_joined() -> None:
    (found,) = composed((1, change("a", "1\n", "2\n")), (2, change("a", "5\n", "6\n")))
    assert found["diff"] == ""
    assert "do not follow one another" in found["note"]


@pytest.mark.parametrize(
    "diff", ["@@ -1 +1 @@\n", "@@ -9999999999 +1 @@\n-a\n+b\n", "@@ -1,2 +1 @@\n-a\n", "nonsense", ""]
)
def test_a_damaged_diff_is_no_trouble(diff: str) -> None:
    composed((1, {"path": "a", "kind": "modified", "diff": diff, "mode": None}))
    composed((1, {"path": "a", "kind": "added", "diff": diff}), (2, {"path": "a", "kind": "deleted", "diff": diff}))


def test_what_no_step_changed_is_said() -> None:
    (found,) = composed((None, change("a", "1\n", "2\n")))
    assert (found["steps"], "changed by no call" in found["note"]) == ([], True)


def test_of_very_many_files_some_are_counted() -> None:
    changes = RoundChanges()
    changes.add((change(f"{number}.txt", None, "x\n") for number in range(1200)), 1)
    found = changes.result()
    assert len(found) == 1001
    assert found[-1]["note"] == "200 more changes of further files are left out"
