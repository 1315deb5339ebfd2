"""Whose a snapshot is, and whether it is still needed: what cannot be read is left alone."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from pytest_evocode.environments import cleanup, owners
from pytest_evocode.environments.cache import is_locked
from pytest_evocode.environments.owners import Owner, is_needed
from pytest_evocode.environments.sandbox import leftovers
from pytest_evocode.environments.sandbox.snapshots import leftover_snapshots
from pytest_evocode.results.directory import SNAPSHOT_FILE, STATE_FILE

NOBODY = 65534


@contextlib.contextmanager
def without_root() -> Iterator[None]:
    """Be a user other than root, if that is who runs the tests."""
    if os.geteuid() == 0:
        os.setresuid(NOBODY, NOBODY, 0)
        try:
            yield
        finally:
            os.setresuid(0, 0, 0)
    else:
        yield


@contextlib.contextmanager
def as_somebody_else(directory: Path) -> Iterator[None]:
    """Be a user who may not enter a directory."""
    mode = directory.stat().st_mode
    directory.chmod(0o700 if os.geteuid() == 0 else 0)
    try:
        with without_root():
            yield
    finally:
        directory.chmod(mode)


@pytest.fixture
def dead() -> Owner:
    """A process of this machine that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = Owner.of(process.pid)
        process.communicate(b"\n")
    assert not owner.is_alive()
    return owner


@pytest.mark.parametrize("place", [STATE_FILE, SNAPSHOT_FILE, f"steps/round-1/{SNAPSHOT_FILE}"])
def test_a_snapshot_is_needed_while_a_file_of_its_attempt_mentions_it(tmp_path: Path, place: str) -> None:
    assert not is_needed("the-snapshot", tmp_path)
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"reference": "the-snapshot"}')
    assert is_needed("the-snapshot", tmp_path)
    assert not is_needed("another", tmp_path)
    assert not is_needed("the-snapshot", tmp_path / "gone")
    assert not is_needed("the-snapshot", file)


def test_a_snapshot_of_an_attempt_that_cannot_be_read_is_needed(tmp_path: Path) -> None:
    attempt = tmp_path / "attempt"
    (attempt / "steps").mkdir(parents=True)
    with as_somebody_else(attempt):
        assert is_needed("the-snapshot", attempt)
    with as_somebody_else(tmp_path):
        assert is_needed("the-snapshot", attempt)
    with as_somebody_else(attempt / "steps"):
        assert is_needed("the-snapshot", attempt)


def test_a_damaged_file_of_an_attempt_that_mentions_a_snapshot_still_needs_it(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_bytes(b'\xff\xfe{"the-snapshot')
    assert is_needed("the-snapshot", tmp_path)


def test_a_session_removes_no_snapshot_whose_attempt_it_cannot_read(tmp_path: Path, dead: Owner) -> None:
    attempt = tmp_path / "attempt"
    attempt.mkdir()
    layer = tmp_path / "kept" / "snapshot-1"
    layer.mkdir(parents=True)
    (layer / "owner.json").write_text(json.dumps({**asdict(dead), "keep_for": str(attempt)}))
    assert leftover_snapshots(layer.parent) == [layer]
    tmp_path.chmod(0o755)
    for above in tmp_path.parents[:2]:
        above.chmod(0o755)
    with as_somebody_else(attempt):
        assert leftover_snapshots(layer.parent) == []
    with as_somebody_else(layer.parent):
        assert leftover_snapshots(layer.parent) == []


@pytest.mark.parametrize(("noted", "others"), [("own", False), ("another", True), (None, True)])
def test_of_snapshots_in_memory_those_of_other_caches_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: Owner, noted: str | None, others: bool
) -> None:
    own = tmp_path / "own"
    monkeypatch.setenv("EVOCODE_CACHE", str(own))
    parent = tmp_path / "shm" / "sandboxes"
    monkeypatch.setattr(leftovers, "state_parents", lambda: (parent,))
    layer = leftovers.kept_snapshots(parent) / "snapshot-1"
    layer.mkdir(parents=True)
    steps = tmp_path / "attempt" / "steps" / "round-1"
    steps.mkdir(parents=True)
    (steps / SNAPSHOT_FILE).write_text('"snapshot-1"')
    cache = {} if noted is None else {"cache": str(tmp_path / noted)}
    (layer / "owner.json").write_text(json.dumps({**asdict(dead), "keep_for": str(tmp_path / "attempt"), **cache}))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    with cleanup.leftovers(kept=True) as found:
        assert [each.of_other_cache for each in found if "snapshot-1" in each.what] == [others]


def test_sandboxes_of_another_user_are_no_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = tmp_path / "sandboxes"
    (parent / "session").mkdir(parents=True)
    monkeypatch.setattr(leftovers, "state_parents", lambda: (parent,))
    with as_somebody_else(parent):
        assert leftovers.find_sandbox_leftovers() == []
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)
    with as_somebody_else(parent / "session"):
        assert is_locked(parent / "session" / leftovers.LOCK)
    assert leftovers.find_sandbox_leftovers() == [parent / "session"]


def test_a_process_that_cannot_be_looked_at_counts_as_alive(monkeypatch: pytest.MonkeyPatch, dead: Owner) -> None:
    def hidden(pid: int) -> int:
        raise FileNotFoundError(pid)

    init = Owner.of(1)
    monkeypatch.setattr(owners, "_start_time", hidden)  # As on machines that hide the processes of other users.
    with without_root():
        assert init.is_alive()
    assert not dead.is_alive()


@pytest.mark.parametrize("label", ["", "host", "host/1", "host//2", "host/\u00b2/1", "host/1/\u0661", "host/a/1"])
def test_a_label_that_is_not_ours_has_no_owner(label: str) -> None:
    assert Owner.from_label(label) is None


def test_an_owner_comes_back_from_its_label() -> None:
    assert Owner.from_label(str(Owner.this())) == Owner.this()
