"""Tar streams out of an environment are hostile: made by hand here, as no environment of ours would make them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.environments import archive
from pytest_evocode.environments.archive import DEPTH_LIMIT, unpack
from pytest_evocode.environments.programs import CappedOutput


def entry(name: str, *, type: bytes = tarfile.REGTYPE, link: str = "", size: int = 1) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = type, link, 0o6777
    info.size = size if type == tarfile.REGTYPE else 0
    return info


def tar(*entries: tarfile.TarInfo) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        for info in entries:
            made.addfile(info, io.BytesIO(b"x" * info.size))
    stream.seek(0)
    return stream


def below(directory: Path) -> Iterator[str]:
    yield from (path.relative_to(directory).as_posix() for path in sorted(directory.rglob("*")))


@pytest.mark.parametrize("name", ["out/../../evil", "../evil", "/etc/evil", "out/sub/../../../evil"])
def test_names_that_lead_out_are_left_out(tmp_path: Path, name: str) -> None:
    left_out = unpack(tar(entry("out", type=tarfile.DIRTYPE), entry(name), entry("out/fine")), tmp_path / "in" / "t")
    assert left_out == (f"{name}: leads out of the directory",)
    assert list(below(tmp_path)) == ["in", "in/t", "in/t/fine"]


@pytest.mark.parametrize("type", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_nothing_is_written_through_a_link(tmp_path: Path, type: bytes) -> None:
    (tmp_path / "outside").mkdir()
    stream = tar(entry("out/link", type=type, link=str(tmp_path / "outside")), entry("out/link/file"))
    assert unpack(stream, tmp_path / "t") == ("out/link: neither a file nor a directory",)
    assert list(below(tmp_path)) == ["outside", "t", "t/link", "t/link/file"]
    assert not (tmp_path / "t" / "link").is_symlink()


@pytest.mark.parametrize("type", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_left_out(tmp_path: Path, type: bytes) -> None:
    assert len(unpack(tar(entry("out/node", type=type)), tmp_path / "t")) == 1
    assert list(below(tmp_path)) == []


def test_special_mode_bits_and_owners_do_not_come_along(tmp_path: Path) -> None:
    unpack(tar(entry("out/file")), tmp_path / "t")
    assert (tmp_path / "t" / "file").stat().st_mode & 0o7111 == 0


def test_unpacking_ends_at_the_limit(tmp_path: Path) -> None:
    stream = tar(entry("out/a", size=60), entry("out/b", size=41), entry("out/c", size=1))
    assert unpack(stream, tmp_path / "t", limit=100) == ("out/b: over the limit of 100 bytes, it and all that follows",)
    assert list(below(tmp_path / "t")) == ["a"]


def test_exactly_the_limit_is_unpacked(tmp_path: Path) -> None:
    assert unpack(tar(entry("out/a", size=60), entry("out/b", size=40)), tmp_path / "t", limit=100) == ()


def test_excluded_entries_do_not_count_towards_the_limit(tmp_path: Path) -> None:
    stream = tar(entry("out/big.bin", size=200), entry("out/a", size=60))
    assert unpack(stream, tmp_path / "t", limit=100, exclude=["*.bin"]) == ()


def test_unpacking_ends_at_the_limit_of_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "ENTRY_LIMIT", 3)
    link = entry("out/link", type=tarfile.SYMTYPE, link="a")
    stream = tar(entry("out", type=tarfile.DIRTYPE), entry("out/x.bin"), link, *map(entry, ("out/a", "out/b", "out/c")))
    assert unpack(stream, tmp_path / "t", exclude=["*.bin"]) == (
        "out/link: neither a file nor a directory",
        "out/b: over the limit of 3 files, it and all that follows",
    )
    assert list(below(tmp_path / "t")) == ["a"]


def test_of_many_reasons_the_first_are_given_and_the_number_of_the_others(tmp_path: Path) -> None:
    links = [entry(f"out/{number}", type=tarfile.SYMTYPE, link="a") for number in range(1000)]
    left_out = unpack(tar(*links, entry("out/big", size=200)), tmp_path / "t", limit=100)
    assert left_out[:2] == ("out/0: neither a file nor a directory", "out/1: neither a file nor a directory")
    assert left_out[20:] == ("and 980 more", "out/big: over the limit of 100 bytes, it and all that follows")


def test_a_reason_shows_the_end_of_a_long_name(tmp_path: Path) -> None:
    (left_out,) = unpack(tar(entry("out/" + "x" * 100_000 + "/end", type=tarfile.FIFOTYPE)), tmp_path / "t")
    assert len(left_out) < 400
    assert left_out.endswith("x/end: neither a file nor a directory")


def test_a_stream_is_read_to_its_end(tmp_path: Path) -> None:
    stream = tar(entry("out/file"))
    stream.seek(0, io.SEEK_END)
    stream.write(b"\0" * 100_000)
    stream.seek(0)
    assert unpack(stream, tmp_path / "t") == ()
    assert stream.read() == b""


def test_a_name_the_host_cannot_hold_is_left_out(tmp_path: Path) -> None:
    (left_out,) = unpack(tar(entry("out/" + "n" * 300), entry("out/fine")), tmp_path / "t")
    assert left_out.endswith("File name too long")
    assert list(below(tmp_path / "t")) == ["fine"]


def test_what_is_nested_too_deep_is_left_out_and_told_of_once(tmp_path: Path) -> None:
    deep = [entry("out/" + "d/" * depth + "f") for depth in (90, 200, 400)]
    (left_out,) = unpack(tar(*deep, entry("out/fine")), tmp_path / "t")
    assert left_out.endswith(f"nested deeper than {DEPTH_LIMIT} levels, it and whatever else is")
    assert [path.name for path in tmp_path.rglob("f*")] == ["fine", "f"]


def test_a_file_where_a_directory_is_does_not_end_the_download(tmp_path: Path) -> None:
    stream = tar(entry("out/x/y"), entry("out/x"), entry("out/x/y/z"), entry("out/fine"))
    assert len(unpack(stream, tmp_path / "t")) == 2
    assert list(below(tmp_path / "t")) == ["fine", "x", "x/y"]


def test_reasons_can_be_written_as_utf8_whatever_the_name(tmp_path: Path) -> None:
    (left_out,) = unpack(tar(entry("out/\udcff", type=tarfile.FIFOTYPE)), tmp_path / "t")
    assert left_out.encode() == b"out/?: neither a file nor a directory"


def test_short_output_is_kept_whole() -> None:
    output = CappedOutput(10)
    for chunk in (b"0123456789", b"abcdefghij"):
        output.add(chunk)
    assert output.text() == "0123456789abcdefghij"


def test_long_output_keeps_head_and_tail_and_counts_the_gap() -> None:
    output = CappedOutput(10)
    for _ in range(143):
        output.add(b"ABCDEFG")
    assert output.text() == "ABCDEFGABC\n[... 981 bytes left out ...]\nEFGABCDEFG"


def test_one_chunk_over_both_limits_is_cut() -> None:
    output = CappedOutput(4)
    output.add(b"head" + b"." * 100 + b"tail")
    assert output.text() == "head\n[... 100 bytes left out ...]\ntail"
