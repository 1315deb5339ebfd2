"""Where attempts live: the protocol and the way to an engine that implements it."""

from __future__ import annotations

from pytest_evocode.environments.choice import choose_engine
from pytest_evocode.environments.protocol import (
    Command,
    Engine,
    Environment,
    ExecResult,
    Installation,
    Snapshot,
    User,
    found_or_refused,
)

__all__ = [
    "Command",
    "Engine",
    "Environment",
    "ExecResult",
    "Installation",
    "Snapshot",
    "User",
    "choose_engine",
    "found_or_refused",
]
