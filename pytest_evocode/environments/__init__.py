"""Containers and sandboxes that attempts run in: the protocols, and the choice of an engine."""

from __future__ import annotations

from pytest_evocode.environments.choice import choose_engine
from pytest_evocode.environments.programs import FileStatus, Program, ProgramEnvironment, ProgramResult
from pytest_evocode.environments.protocol import (
    BuildWish,
    Command,
    Engine,
    Environment,
    ExecResult,
    ExportedLayer,
    FileContents,
    GuardedEnvironment,
    Installation,
    InteractiveEnvironment,
    Snapshot,
    User,
    read_environment_file,
    require_readable,
)

__all__ = [
    "BuildWish",
    "Command",
    "Engine",
    "Environment",
    "ExecResult",
    "ExportedLayer",
    "FileContents",
    "FileStatus",
    "GuardedEnvironment",
    "Installation",
    "InteractiveEnvironment",
    "Program",
    "ProgramEnvironment",
    "ProgramResult",
    "Snapshot",
    "User",
    "choose_engine",
    "read_environment_file",
    "require_readable",
]
