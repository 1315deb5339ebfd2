"""What comes along of an archive that the Docker engine made of a container's files."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from typing import Any

from pytest_evocode.environments.tree_archives import filter_tar


def archive(*members: tuple[str, bytes, str], mode: int = 0o644, **headers: str) -> io.BytesIO:
    """An archive with entries of a name, a type and what they link to; files have their name as contents."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, target, mode
            info.uid, info.gid, info.uname, info.gname = 1000, 1001, "mallory", "mallory"
            info.pax_headers = headers
            contents = name.encode() if kind == tarfile.REGTYPE else b""
            info.size = len(contents)
            tar.addfile(info, io.BytesIO(contents))
    stream.seek(0)
    return stream


def filtered(stream: io.BytesIO, above: str = "/", **which: Any) -> list[tarfile.TarInfo]:
    whole = b"".join(filter_tar(stream, above, **which)) + bytes(2 * tarfile.BLOCKSIZE)
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        members = tar.getmembers()
        for member in members:
            if member.isreg():
                contents = tar.extractfile(member)
                assert contents is not None
                assert member.name.endswith(contents.read().decode())
        return members


def names(members: Sequence[tarfile.TarInfo]) -> list[str]:
    return [member.name for member in members]


def test_files_directories_and_links_come_along_and_nothing_else() -> None:
    stream = archive(
        ("app", tarfile.DIRTYPE, ""),
        ("app/file", tarfile.REGTYPE, ""),
        ("app/link", tarfile.SYMTYPE, "/etc"),
        ("app/again", tarfile.LNKTYPE, "app/file"),
        ("app/device", tarfile.CHRTYPE, ""),
        ("app/disk", tarfile.BLKTYPE, ""),
        ("app/fifo", tarfile.FIFOTYPE, ""),
    )
    found = filtered(stream, "/srv")
    assert names(found) == ["srv/app", "srv/app/file", "srv/app/link", "srv/app/again"]
    assert [member.linkname for member in found] == ["", "", "/etc", "srv/app/file"]


def test_neither_set_id_bits_nor_attributes_nor_names_of_users_come_along() -> None:
    stream = archive(("app/x", tarfile.REGTYPE, ""), mode=0o7755, **{"SCHILY.xattr.security.capability": "all"})
    (member,) = filtered(stream)
    assert (member.mode, member.pax_headers) == (0o1755, {})
    assert (member.uid, member.gid, member.uname, member.gname) == (1000, 1001, "", "")


def test_a_hard_link_to_what_is_left_out_is_left_out() -> None:
    stream = archive(
        ("app/fifo", tarfile.FIFOTYPE, ""),
        ("app/to-fifo", tarfile.LNKTYPE, "app/fifo"),
        ("app/to-the-image", tarfile.LNKTYPE, "../etc/shadow"),
        ("app/x", tarfile.REGTYPE, ""),
    )
    assert names(filtered(stream)) == ["app/x"]


def test_only_what_is_within_the_paths_and_not_without_comes_along() -> None:
    tree = [("data", tarfile.DIRTYPE, ""), ("data/sub", tarfile.DIRTYPE, ""), ("data/sub/a", tarfile.REGTYPE, "")]
    tree += [("data/sub-not", tarfile.REGTYPE, ""), ("data/b", tarfile.REGTYPE, "")]
    assert names(filtered(archive(*tree), within=["/data/sub"])) == ["data/sub", "data/sub/a"]
    assert names(filtered(archive(*tree), without=["/data/sub"])) == ["data", "data/sub-not", "data/b"]


def test_only_awaited_entries_come_along_and_nothing_is_read_after_the_last() -> None:
    stream = archive(
        ("srv", tarfile.DIRTYPE, ""),
        ("srv/file", tarfile.REGTYPE, ""),
        ("srv/linked", tarfile.LNKTYPE, "srv/file"),
        ("srv/to-etc", tarfile.SYMTYPE, "/etc"),
        ("srv/again", tarfile.REGTYPE, ""),
        ("srv/never", tarfile.REGTYPE, ""),
    )
    begun = io.BytesIO(stream.getvalue()[: 3 * tarfile.BLOCKSIZE] + b"no tar" * tarfile.BLOCKSIZE)
    awaited = {"/srv/", "/srv/linked", "/srv/to-etc/", "/srv/again", "/srv/missing"}
    assert names(filtered(stream, awaited=awaited)) == ["srv", "srv/again"]
    assert awaited == {"/srv/linked", "/srv/to-etc/", "/srv/missing"}, "a link's file and a directory are not there"
    assert names(filtered(begun, awaited={"/srv/file"})) == ["srv/file"]


def test_a_path_that_is_a_link_itself_is_left_out() -> None:
    assert filtered(archive(("app", tarfile.SYMTYPE, "/etc")), within=["/app"]) == []
