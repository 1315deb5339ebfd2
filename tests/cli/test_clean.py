"""``evocode clean`` lists and removes what is kept on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from pytest_evocode.verifier.cache_store import CacheStore, Index

from pytest_evocode.cli.clean import clean_command
from pytest_evocode.environments.attempt_homes import attempt_home, lock_of
from pytest_evocode.environments.cache import try_lock


def test_caches_of_images_are_listed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    store = CacheStore("0123456789abcdef")
    with store.locked():
        store.write(Index())
    line = "caches of Python of the image 0123456789ab, 0.0 MB\n"
    listed = CliRunner().invoke(clean_command, ["--dry-run"])
    assert f"would remove {line}" in listed.output
    assert store.read() is not None
    removed = CliRunner().invoke(clean_command)
    assert f"removed {line}" in removed.output
    assert store.read() is None
    assert "image" not in CliRunner().invoke(clean_command, ["--dry-run"]).output


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
