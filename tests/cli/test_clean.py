"""``evocode clean`` lists and removes what is kept on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments.cache import try_lock
from pytest_evocode.environments.kept_tasks import attempt_home, lock_of
from tests.cli.conftest import Evocode


def test_unfinished_attempts_of_a_cluster_are_removed_only_when_asked_for_and_not_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    unfinished, running = attempt_home("run-1"), attempt_home("run-2")
    for home in (unfinished, running):
        (home / "a").mkdir(parents=True)
    lock = try_lock(lock_of(running))
    assert lock is not None
    assert str(unfinished) not in CliRunner().invoke(clean_command).output
    assert unfinished.is_dir()
    removed = CliRunner().invoke(clean_command, ["--kept"])
    assert f"removed files of the unfinished attempt {unfinished}\n" in removed.output
    assert str(running) not in removed.output
    assert not unfinished.exists()
    assert running.is_dir()
    lock.release()


def test_what_reference_solutions_change_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    notes = tmp_path / "reference-changes"
    notes.mkdir()
    (notes / "sandbox-0123.json").write_text("[]")
    assert f"removed notes of what reference solutions change, {notes}\n" in CliRunner().invoke(clean_command).output
    assert not notes.exists()


def test_a_cache_that_cannot_be_written_is_told_in_one_line(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", "/proc/x")
    refused = evocode("clean", "--dry-run")
    assert refused.status == 1
    assert refused.err == (
        "Error: the cache /proc/x cannot be written (No such file or directory); "
        "name another directory with EVOCODE_CACHE\n"
    )
