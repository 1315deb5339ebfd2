"""Containers and sandboxes that attempts run in: the protocols, and the choice of an engine."""

from __future__ import annotations

from pytest_evocode.environments.choice import choose_engine
from pytest_evocode.environments.engines import BuildWish, Engine, ExportedLayer, Installation
from pytest_evocode.environments.programs import Command, ExecResult, FileStatus, Program, ProgramResult, User
from pytest_evocode.environments.protocol import (
    Environment,
    FileContents,
    Files,
    Snapshot,
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
    "Files",
    "Installation",
    "Program",
    "ProgramResult",
    "Snapshot",
    "User",
    "choose_engine",
    "read_environment_file",
    "require_readable",
]
