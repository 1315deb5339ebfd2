"""Environments of every engine, and what an agent's actions change in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

import tests.property_tests  # noqa: F401 - the settings
from pytest_evocode.environments import Environment
from pytest_evocode.trajectories.workspace_changes import WorkspaceChanges
from tests.environments.conftest import (
    cache,
    engine,
    environment,
    make_environment,
    make_task,
    plain_task,
    sandbox_engine,
)

__all__ = ["cache", "engine", "environment", "make_environment", "make_task", "plain_task", "sandbox_engine"]

Act = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def workspace(environment: Environment) -> WorkspaceChanges:
    """The workspace of a fresh environment, looked at once."""
    workspace = WorkspaceChanges(environment)
    workspace.begin()
    return workspace


@pytest.fixture
def act(environment: Environment, workspace: WorkspaceChanges) -> Callable[[str], list[dict[str, Any]]]:
    """Run a script, which must not fail, and return what it changed."""

    def run(script: str) -> list[dict[str, Any]]:
        result = environment.exec(script)
        assert result.ok, result.output
        return workspace.changes()

    return run


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
