"""Scratch directories of processes that were killed are removed, and no others."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments.choice import choose_engine
from pytest_evocode.environments.scratch import (
    Scratch,
    find_dead,
    hold,
    remove_all_dead,
    remove_dead,
    scratch_directory,
)
from pytest_evocode.errors import UsageError
from tests.waiting import wait_until

NOBODY = 65534
#: Makes two directories, one with files, and says which.
MAKER = """
from pytest_evocode.environments.scratch import Scratch
made = Scratch("live"), Scratch("files")
(made[1].path / "below").mkdir()
(made[1].path / "below" / "file").write_text("x")
print(*(each.path for each in made), flush=True)
input()
"""


@pytest.fixture(autouse=True)
def scratch_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``TMPDIR`` for the test alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # Where it was looked up before.
    return tmp_path


@pytest.fixture
def maker(scratch_files: Path) -> subprocess.Popen[str]:
    """A process that has made two directories."""
    return subprocess.Popen([sys.executable, "-c", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def made_by(maker: subprocess.Popen[str]) -> list[Path]:
    assert maker.stdout is not None
    return sorted(map(Path, maker.stdout.readline().split()))


def kill(maker: subprocess.Popen[str]) -> list[Path]:
    """Kill the process, and return what it left."""
    left = made_by(maker)
    maker.kill()
    maker.communicate()
    return left


def test_an_engine_removes_what_a_killed_process_left_empty_or_not(
    maker: subprocess.Popen[str], scratch_files: Path
) -> None:
    left = kill(maker)
    assert find_dead() == left
    assert len(left) == 2
    with pytest.raises(UsageError):
        choose_engine("none")
    assert list(scratch_files.iterdir()) == []


def test_what_a_living_process_uses_stays(maker: subprocess.Popen[str]) -> None:
    used = made_by(maker)
    with contextlib.closing(Scratch("files")) as own:
        remove_all_dead()
        for path in (*used, own.path):
            remove_dead(path)
            assert path.is_dir()
        assert (used[0] / "below/file").is_file()
    maker.kill()
    maker.communicate()


def test_what_a_dead_process_left_to_another_that_lives_stays(maker: subprocess.Popen[str]) -> None:
    held, other = kill(maker)
    lock = hold(held)
    assert lock is not None
    assert find_dead() == [other]
    remove_all_dead()
    assert held.is_dir()
    assert not other.exists()
    os.close(lock)
    assert find_dead() == [held]


def test_the_descriptor_of_a_lock_holds_for_a_process_that_inherits_it(scratch_files: Path) -> None:
    program = (
        "import subprocess, sys; from pytest_evocode.environments.scratch import Scratch; made = Scratch('watch'); "
        "subprocess.Popen(['cat'], pass_fds=[made.lock]); print(made.path, flush=True); import os; os._exit(1)"
    )
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as maker:
        (path,) = made_by(maker)
        maker.wait()
        assert find_dead() == []
        assert maker.stdin is not None
        assert maker.stdout is not None
        maker.stdin.close()
        assert maker.stdout.read() == ""
    # The other process is ending, and closes one descriptor after the other.
    wait_until(lambda: find_dead() == [path], "the other process has ended, too")


def test_what_others_left_and_what_is_only_called_alike_stays(
    maker: subprocess.Popen[str], scratch_files: Path
) -> None:
    left = kill(maker)
    target = scratch_files / "target"
    target.mkdir()
    (target / "file").touch()
    alike = left[0].with_name(left[0].name.replace("files", "link"))
    alike.symlink_to(target)
    left[0].with_name(left[0].name.replace("files", "plain")).touch()
    for name in ("evocode-live-abcdefgh", f"{left[0].name}.old", f"my-{left[0].name}"):
        (scratch_files / name).mkdir()
    assert find_dead() == left
    remove_dead(alike)
    assert (target / "file").exists()
    if os.geteuid() == 0:  # Only root can give files to another user.
        os.chown(left[1], NOBODY, NOBODY)
        assert find_dead() == left[:1]
        os.chown(left[1], 0, 0)
    # Another machine made it.
    kind, host, *rest = left[0].name.removeprefix("evocode-").split("-")
    other = left[0].rename(left[0].with_name("-".join(["evocode", kind, f"{int(host, 16) ^ 1:08x}", *rest])))
    assert find_dead() == left[1:]
    assert other.is_dir()


def test_a_directory_is_gone_with_its_context(scratch_files: Path) -> None:
    with scratch_directory() as path:
        (path / "file").touch()
        assert path.parent == scratch_files
    assert list(scratch_files.iterdir()) == []


def test_evocode_clean_lists_and_removes_it(
    maker: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    left = kill(maker)
    listed = CliRunner().invoke(clean_command, ["--dry-run"]).output
    assert [f"would remove scratch files {path}" in listed for path in left] == [True, True]
    assert left[0].is_dir()
    removed = CliRunner().invoke(clean_command).output
    assert [f"removed scratch files {path}" in removed for path in left] == [True, True]
    assert not any(path.exists() for path in left)
