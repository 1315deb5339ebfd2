"""Diffs: what they look like, and that they lead to the very same bytes again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.errors import DiffError
from pytest_evocode.trajectories.diffs import apply_diff, unified_diff
from pytest_evocode.trajectories.file_changes import File, describe_change, file_after, sha256_of

# Few lines and many ends: what differs between texts is mostly where lines stand and how they end.
LINES = st.sampled_from(
    ["", "a", "b", " a", "-a", "+a", "@@ -1 +1 @@", "--- a/x", "\\ No newline at end of file", "é", "\u2028", "\x0c"]
)
TEXTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\n", "\r\n", "\r"])), max_size=25).map(
    lambda parts: "".join(line + end for line, end in parts)
) | st.text(max_size=30)
CONTENTS = TEXTS.map(str.encode) | st.binary(max_size=20)
FILES = st.none() | st.builds(
    lambda content, mode, target: (
        File(symlink=target) if target else File(mode=mode, content=content, sha256=sha256_of(content))
    ),
    CONTENTS,
    st.sampled_from([0o644, 0o755, 0o600]),
    st.none() | st.just("elsewhere"),
)


@given(TEXTS, TEXTS)
def test_a_diff_leads_from_one_text_to_the_other(old: str, new: str) -> None:
    assert apply_diff(old, unified_diff("a", old, new)) == new


@given(TEXTS)
def test_equal_texts_have_no_diff(text: str) -> None:
    assert unified_diff("a", text, text) == ""


@given(FILES, FILES)
def test_tables_lead_from_one_file_to_the_other(old: File | None, new: File | None) -> None:
    file = old
    for table in describe_change("a", old, new, whole_limit=2**20, limit=2**20) if old != new else []:
        file = file_after(file, table)
    assert file == new


def test_a_diff_is_what_diff_prints() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    new = old.replace("2\n", "two\n", 1).replace("20\n", "20")
    assert unified_diff("src/a.py", old, new).splitlines() == [
        "--- a/src/a.py",
        "+++ b/src/a.py",
        "@@ -1,5 +1,5 @@",
        *(" 1", "-2", "+two", " 3", " 4", " 5"),
        "@@ -17,4 +17,4 @@",
        *(" 17", " 18", " 19", "-20", "+20", "\\ No newline at end of file"),
    ]


def test_a_file_that_is_made_or_deleted_is_in_the_diff_whole() -> None:
    assert unified_diff("a", None, "x\ny\n") == "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+x\n+y\n"
    assert unified_diff("a", "x", None) == "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_git_applies_it(tmp_path: Path) -> None:
    old = "one\r\ntwo\nthree\n" * 20 + "end"
    new = old.replace("two", "2", 7).removesuffix("end") + "\nlast"
    (tmp_path / "a b.txt").write_bytes(old.encode())
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path,
        input=unified_diff("a b.txt", old, new).encode(),
        check=True,
    )
    assert (tmp_path / "a b.txt").read_bytes() == new.encode()


def test_texts_of_nothing_but_repetition_are_done_with_in_a_moment() -> None:
    # Every hundredth line is the same, which is where difflib looks at pairs by the million.
    old = [f"{number % 120}\n" for number in range(30_000)]
    new = [f"{number * 7 % 120}\n" for number in range(30_000)]
    diff = unified_diff("a", "".join(old), "".join(new))
    assert apply_diff("".join(old), diff) == "".join(new)
    assert diff.count("@@ -") == 1


@pytest.mark.parametrize(
    ("text", "diff", "why"),
    [
        ("a\n", "@@ -1 +1 @@\n-b\n+c\n", "line 2 is not what the text has there"),
        ("a\n", "@@ -7 +7 @@\n-b\n+c\n", "line 1 is about lines that the text does not have"),
        ("a\n", "@@ -1 +1 @@\n-a\n", "cut off"),
        ("a\n", "@@ -1 +1 @@\n-a\n+c", "cut off"),
    ],
)
def test_a_diff_of_another_text_is_refused(text: str, diff: str, why: str) -> None:
    with pytest.raises(DiffError, match=why):
        apply_diff(text, diff)


def test_a_diff_that_was_tampered_with_is_refused() -> None:
    old, new = (File(mode=0o644, content=text, sha256=sha256_of(text)) for text in (b"a\n", b"key=SECRET\n"))
    (table,) = describe_change("a", old, new, whole_limit=100, limit=1000)
    with pytest.raises(DiffError, match="would not be what it was"):
        file_after(old, {**table, "diff": table["diff"].replace("SECRET", "[TOKEN]")})


def test_what_is_over_the_limits_is_named_and_not_contained() -> None:
    binary = File(mode=0o644, content=b"\0" * 100, sha256=sha256_of(b"\0" * 100))
    text = File(mode=0o644, content=b"x\n" * 50, sha256=sha256_of(b"x\n" * 50))
    for file in (binary, text):
        (table,) = describe_change("a", None, file, whole_limit=99, limit=99)
        assert (table["diff"], table["content"], table["sha256"]) == (None, None, file.sha256)
        with pytest.raises(DiffError, match="neither its diff nor its content"):
            file_after(None, table)


def test_a_new_mode_needs_no_content() -> None:
    old = File(mode=0o644, content=b"\0" * 1000, sha256=sha256_of(b"\0" * 1000))
    new = File(mode=0o755, content=old.content, sha256=old.sha256)
    (table,) = describe_change("a", old, new, whole_limit=0, limit=0)
    assert (table["diff"], table["mode"]) == ("", "0755")
    assert file_after(old, table) == new
