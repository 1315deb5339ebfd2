"""What an agent declared as its work is harmless where a suite runs, whatever the agent made of it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence

import pytest

from pytest_evocode.environments import artifact_archives
from pytest_evocode.environments.artifact_archives import BoundedFile, DeclaredTree, copy_declared
from pytest_evocode.errors import UnreadableFile

REG, DIR, SYM, LNK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
Entry = tuple[str, bytes, str]
"""Path, type, and contents or where a link leads."""


def packed(entries: Sequence[Entry], mode: int = 0o6777) -> io.BytesIO:
    """A tar as an environment packs it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind, text in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.uid, info.uname = kind, mode, 1234, "somebody"
            if kind == REG:
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
            else:
                info.linkname = text
                archive.addfile(info)
    stream.seek(0)
    return stream


def copied(
    entries: Sequence[Entry],
    source: str = "/out",
    target: str = "/out",
    exclude: Sequence[str] = (),
    without: Sequence[str] = (),
) -> tuple[dict[str, tarfile.TarInfo], tuple[str, ...]]:
    """What comes of packed entries: those that are unpacked by their names, and why others are not."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        left_out = copy_declared(packed(entries), DeclaredTree(source, target, exclude, without), archive)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as archive:
        return {member.name: member for member in archive}, left_out


def test_files_directories_and_links_within_come_along_without_rights() -> None:
    entries = [
        ("srv/out", DIR, ""),
        ("srv/out/a", REG, "text"),
        ("srv/out/in", DIR, ""),
        ("srv/out/in/up", SYM, "../a"),
        ("srv/out/in/same", LNK, "srv/out/a"),
        ("srv/out/in/dangling", SYM, "nothing/there"),
    ]
    found, left_out = copied(entries, source="/srv/out", target="/mnt/real")
    assert list(found) == [name.replace("srv/out", "mnt/real") for name, _, _ in entries]
    assert left_out == ()
    assert {each.mode for each in found.values()} == {0o777}
    assert {(each.uid, each.gid, each.uname) for each in found.values()} == {(0, 0, "")}
    assert found["mnt/real/in/same"].linkname == "mnt/real/a"
    assert found["mnt/real/in/up"].linkname == "../a"


def test_a_single_file_may_be_declared() -> None:
    found, left_out = copied([("app/log.txt", REG, "x")], source="/app/log.txt", target="/app/log.txt")
    assert (list(found), left_out) == (["app/log.txt"], ())


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        ([("out/x", SYM, "/etc/passwd")], "/out/x: is a link that leads out of what was declared"),
        ([("out/x", SYM, "../tests/answers")], "/out/x: is a link that leads out of what was declared"),
        ([("out/x", SYM, "a/../../tests")], "/out/x: is a link that leads out of what was declared"),
        # Each ".." seems to take back the name before it, and the link that this names is the directory above.
        (
            [("out/here", SYM, "."), ("out/x", SYM, "here/../tests/answers")],
            "/out/x: is a link that leads out of what was declared",
        ),
        ([("out/a", SYM, "b"), ("out/b", SYM, "a")], "/out/a: is a link that leads out of what was declared"),
        ([("out/x", SYM, "in"), ("out/x/file", REG, "")], "/out/x/file: is below what was left out, or below a link"),
        ([("out/x", LNK, "etc/shadow")], "/out/x: is a link to what was left out"),
        ([("out/pipe", tarfile.FIFOTYPE, "")], "/out/pipe: is neither a file nor a directory nor a link"),
        ([("out/disk", tarfile.BLKTYPE, "")], "/out/disk: is neither a file nor a directory nor a link"),
        ([("out/../etc/passwd", REG, "")], "/out/../etc/passwd: leads out of what was declared"),
        ([("etc/passwd", REG, "")], "etc/passwd: is not where it was declared"),
        ([("out/no/such/file", REG, "")], "/out/no/such/file: is below what was left out, or below a link"),
    ],
)
def test_what_could_do_harm_is_left_out(hostile: list[Entry], why: str) -> None:
    found, left_out = copied([("out", DIR, ""), *hostile, ("out/good", REG, "x")])
    assert why in left_out
    assert why.rpartition(": ")[0].strip("/") not in found
    assert {"out", "out/good"} <= found.keys()


def test_a_link_in_place_of_what_was_declared_brings_nothing() -> None:
    found, left_out = copied([("out", SYM, "etc"), ("out/passwd", REG, "x")])
    assert (found, left_out) == (
        {},
        ("/out: is a link", "/out/passwd: is below what was left out, or below a link"),
    )


def test_excluded_names_and_places_of_the_suites_own_are_left_out() -> None:
    entries = [("out", DIR, ""), ("out/a.tmp", REG, ""), ("out/tests", DIR, ""), ("out/tests/test.sh", REG, "")]
    found, left_out = copied(entries, exclude=["*.tmp"], without=["/out/tests"])
    assert list(found) == ["out"]
    assert left_out == (
        "/out/tests: is a place of the suite's own",
        "/out/tests/test.sh: is a place of the suite's own",
    )


def test_what_is_nested_deeper_than_tools_can_follow_is_left_out() -> None:
    names = ["out" + "/d" * depth for depth in range(102)]
    found, left_out = copied([(name, DIR, "") for name in names])
    assert (len(found), len(left_out)) == (101, 1)
    wide = ["out" + f"/{'w' * 250}" * depth for depth in range(18)]
    found, left_out = copied([(name, DIR, "") for name in wide])
    assert len(found) == 16
    assert left_out[0].endswith(": is nested too deeply")


def test_too_many_entries_and_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_archives, "ENTRIES_LIMIT", 2)
    with pytest.raises(UnreadableFile, match="has more than 2 files"):
        copied([("out", DIR, ""), ("out/a", REG, ""), ("out/b", REG, "")])
    kept = io.BytesIO()
    bounded = BoundedFile(kept, 10)
    bounded.write(b"12345")
    with pytest.raises(UnreadableFile, match="is too large"):
        bounded.write(b"123456")
    assert kept.getvalue() == b"12345"
