"""A container is paused while it is committed, also where the engine does not manage to at once."""

from __future__ import annotations

from typing import Any, cast

import pytest
from docker import APIClient
from docker.errors import APIError

from pytest_evocode.environments.docker import files

BUSY = "Cannot pause container c: OCI runtime pause failed: unable to freeze: unknown"


class Engine:
    """Answers as the engine does on a busy machine: the first ``failures`` are in vain."""

    def __init__(self, failures: int, why: str) -> None:
        self.calls: list[str] = []
        self._failures = failures
        self._why = why

    def pause(self, container: str) -> None:
        self.calls.append("pause")
        if len(self.calls) <= self._failures:
            raise APIError(self._why)

    def unpause(self, container: str) -> None:
        self.calls.append("unpause")


def committed(failures: int, why: str = BUSY) -> list[str]:
    engine = Engine(failures, why)
    with files.paused(cast(APIClient, cast(Any, engine)), "c"):
        engine.calls.append("commit")
    return engine.calls


def test_a_pause_that_fails_is_tried_again_before_the_commit() -> None:
    assert committed(3) == ["pause", "pause", "pause", "pause", "commit", "unpause"]


def test_what_cannot_be_paused_at_all_is_committed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PAUSING", 0.0)
    assert committed(10**9) == ["pause", "commit"]


def test_what_does_not_run_is_committed_without_a_pause() -> None:
    assert committed(1, "Container c is not running") == ["pause", "commit"]
