"""What is removed of other sandbox sessions, and what never is because somebody uses it or is about to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.environments.cache import is_locked
from pytest_evocode.environments.sandbox import engine as engine_module
from pytest_evocode.environments.sandbox import leftovers
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.environments.sandbox.kept import kept_sandboxes, lock_kept
from pytest_evocode.environments.sandbox.launcher_client import Launcher
from pytest_evocode.environments.sandbox.snapshots import remove_tree
from tests.environments.conftest import start_engine


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the sessions of this test have their directories: in a cache of its own."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    found = leftovers.state_parents()[0]
    assert tmp_path in found.parents
    found.mkdir(parents=True, exist_ok=True)
    return found


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with contextlib.closing(Launcher()) as launcher:
        yield launcher


def test_a_directory_that_a_session_is_about_to_lock_is_not_touched(
    parent: Path, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = parent / "dead"
    state.mkdir()
    while_claimed = []

    def looking(path: Path) -> bool:
        while_claimed.append(is_locked(path.parent.parent / "claim.lock"))
        return is_locked(path)

    monkeypatch.setattr(leftovers, "is_locked", looking)
    assert state in leftovers.find_sandbox_leftovers()
    assert while_claimed
    assert all(while_claimed)
    leftovers.remove_sandbox_leftover(launcher, state)
    assert not state.exists()
    leftovers.remove_sandbox_leftover(launcher, state)  # Another session was quicker.


def test_a_session_removes_its_directory_while_no_other_can_lock_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start_engine("sandbox")
    assert isinstance(engine, SandboxEngine)
    claimed = []

    def removing(launcher: Launcher, path: Path) -> None:
        claimed.append(is_locked(path.parent / "claim.lock"))
        remove_tree(launcher, path)

    monkeypatch.setattr(engine_module, "remove_tree", removing)
    engine.close()
    assert claimed == [True]


def test_a_kept_sandbox_that_somebody_has_entered_meanwhile_is_not_removed(parent: Path, launcher: Launcher) -> None:
    kept = kept_sandboxes(parent) / "kept"
    kept.mkdir(parents=True)
    lock = lock_kept(kept)
    assert lock is not None
    leftovers.remove_sandbox_leftover(launcher, kept)
    assert kept.is_dir()
    lock.release()
    leftovers.remove_sandbox_leftover(launcher, kept)
    assert not kept.exists()
