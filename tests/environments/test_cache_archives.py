"""The archives of package caches that are kept on this machine: shared, bounded, private, and whole or none."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from pytest_evocode.environments.cache_archives import CacheArchives, KeptCaches
from pytest_evocode.environments.cleanup import leftovers
from pytest_evocode.environments.tree_archives import DirectoryAbove


@pytest.fixture(autouse=True)
def _cache_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))


def keep(archives: CacheArchives, key: str, contents: bytes, image: bytes = b"") -> None:
    above = (DirectoryAbove("/root", 0, 0, 0o700),)
    archives.keep(
        KeptCaches(key, "ledger", f"round-{key}", ("/root/x",), above),
        lambda archive: archive.write(image),
        lambda archive: archive.write(contents),
    )


def opened(archives: CacheArchives, key: str) -> list[BinaryIO] | None:
    """What was kept, that of the image and what was added."""
    kept = archives.read(key)
    return None if kept is None else archives.open(kept, kept.image, kept.added)


def found(archives: CacheArchives, key: str) -> bytes | None:
    """What was added."""
    files = opened(archives, key)
    if files is None:
        return None
    with files[0], files[1]:
        return files[1].read()


def test_what_was_kept_is_found_by_every_session_and_by_nobody_else() -> None:
    keep(CacheArchives("docker"), "a", b"contents", b"image")
    archives = CacheArchives("docker")
    files = opened(archives, "a")
    assert files is not None
    with files[0], files[1]:
        assert [file.read() for file in files] == [b"image", b"contents"]
    kept = archives.read("a")
    assert kept is not None
    assert (kept.paths, kept.above, kept.sizes) == (("/root/x",), (DirectoryAbove("/root", 0, 0, 0o700),), (5, 8))
    assert found(archives, "b") is found(CacheArchives("sandbox"), "a") is None
    assert stat.S_IMODE(archives.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in archives.directory.glob("*.tar")} == {0o600}


def test_rounds_whose_suites_left_the_same_share_an_archive() -> None:
    archives = CacheArchives("docker")
    keep(archives, "a", b"same", b"image")
    keep(archives, "b", b"same", b"image")
    assert len([*archives.directory.glob("*.tar")]) == 2
    archives.drop("a")
    assert found(archives, "b") == b"same"
    archives.drop("b")
    assert [*archives.directory.glob("*.tar")] == []


def test_the_least_recently_used_goes_first_and_one_that_is_open_can_be_read_on() -> None:
    archives = CacheArchives("docker", limit=10)
    for number, key in enumerate("abc"):
        keep(archives, key, key.encode() * 3)
        os.utime(archives.directory / f"{key}.json", (number, number))
    assert found(archives, "a") == b"aaa"
    held = opened(archives, "b")
    os.utime(archives.directory / "b.json", (1, 1))
    keep(archives, "d", b"dddd")
    assert [found(archives, key) for key in "abcd"] == [b"aaa", None, b"ccc", b"dddd"]
    assert held is not None
    with held[0], held[1]:
        assert held[1].read() == b"bbb"


@pytest.mark.parametrize("damage", [b"", b"contentz", None])
def test_a_damaged_archive_is_dropped_with_a_warning(damage: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    archives = CacheArchives("docker")
    keep(archives, "a", b"contents")
    kept = archives.read("a")
    assert kept is not None
    file = archives.directory / f"{kept.added}.tar"
    file.unlink()
    if damage is not None:
        file.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert found(archives, "a") is None
    assert "the package caches kept for round-a of ledger are dropped" in caplog.text
    assert [path.name for path in archives.directory.iterdir()] == ["lock"]


def test_a_damaged_index_is_as_none() -> None:
    archives = CacheArchives("docker")
    keep(archives, "a", b"contents")
    (archives.directory / "a.json").write_text("{")
    assert found(archives, "a") is None
    keep(archives, "a", b"anew")
    assert found(archives, "a") == b"anew"


def test_what_cannot_be_written_leaves_nothing() -> None:
    archives = CacheArchives("docker")

    def fail(archive: BinaryIO) -> None:
        archive.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        archives.keep(KeptCaches("a", "ledger", "round-1", (), ()), lambda archive: archive.write(b"whole"), fail)
    assert [path.name for path in archives.directory.iterdir() if path.name != "lock"] == []


def test_clean_lists_and_removes_them() -> None:
    archives = CacheArchives("sandbox")
    keep(archives, "a", b"x" * 250_000)
    with leftovers() as without:
        assert [each for each in without if "package caches" in each.what] == []
    with leftovers(package_caches=True) as listed:
        [mine] = [each for each in listed if "package caches" in each.what]
        assert mine.what == "package caches of the suite of ledger, round-a, 0.2 MB (sandbox)"
        mine.remove()
    assert found(archives, "a") is None
