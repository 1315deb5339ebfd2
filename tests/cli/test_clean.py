"""``evocode clean`` lists and removes what is kept on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.clean import clean_command
from pytest_evocode.verifier.cache_store import CacheStore, Index


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
