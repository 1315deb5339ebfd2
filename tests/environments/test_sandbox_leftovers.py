"""What is removed of other sandbox sessions, and what never is because somebody uses it or is about to."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.environments.cache import is_locked
from pytest_evocode.environments.removals import Removals
from pytest_evocode.environments.sandbox import files, leftovers
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.environments.sandbox.launcher_client import Launcher, receive
from pytest_evocode.environments.sandbox.leftovers import kept_sandboxes, lock_kept
from tests.environments.conftest import start_engine
from tests.terminals import HANGS


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
    state, claimed = engine._settings.state, []

    def throwing(parent: Path, path: Path) -> None:
        claimed.append(is_locked(parent / "claim.lock"))
        throw_away(parent, path)

    throw_away = leftovers.throw_away
    monkeypatch.setattr(leftovers, "throw_away", throwing)
    engine.close()
    assert claimed == [True]
    assert not any(leftovers.trash(state.parent).iterdir())


def test_sessions_start_beside_one_another_and_beside_a_removal(
    parent: Path, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Removals, "patience", HANGS)
    state = parent / "dead"
    for number in range(50):
        (below := state / f"{number}/deeper").mkdir(parents=True)
        for name in map(str, range(100)):
            (below / name).touch()
    # A worker of a session that was killed goes on.
    removal = launcher.begin({"operation": "remove_tree", "paths": [str(state)]})
    with ThreadPoolExecutor(2) as pool:
        engines = [each.result() for each in [pool.submit(start_engine, "sandbox") for _ in range(2)]]
    for engine in engines:
        engine.close()
        assert engine.left_behind == []
    receive(removal)
    assert [path for path in parent.iterdir() if path.is_dir()] == []
    assert [*leftovers.trash(parent).iterdir()] == []


def test_a_removal_that_takes_long_stops_no_session_and_is_named(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Removals, "patience", 0.2)
    (parent / "dead").mkdir()
    has_begun, may_end = threading.Event(), threading.Event()

    def removing(*_: object) -> None:
        has_begun.set()
        may_end.wait()

    monkeypatch.setattr(leftovers, "remove_tree", removing)
    engine = start_engine("sandbox")
    assert has_begun.wait(HANGS)
    assert not (parent / "dead").exists()
    engine.close()
    assert engine.left_behind == [f"sandbox files {leftovers.trash(parent)}"]
    may_end.set()


@pytest.mark.parametrize("call", ["open", "scandir", "unlink", "rmdir"])
def test_a_tree_that_another_process_removes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    tree = tmp_path / "tree"
    real = getattr(os, call)
    for depth in range(4):
        with monkeypatch.context() as patch:
            (tree / "a/b/c").mkdir(parents=True)
            for directory in (tree, tree / "a", tree / "a/b", tree / "a/b/c"):
                (directory / "file").touch()
            calls = itertools.count()

            def late(*arguments: Any, calls: Iterator[int] = calls, depth: int = depth, **how: Any) -> Any:
                if next(calls) == depth:
                    subprocess.run(["rm", "-rf", tree], check=True)
                return real(*arguments, **how)

            patch.setattr(os, call, late)
            files.remove_path(str(tree))
        assert not tree.exists()


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
