"""Containers and sandboxes that attempts run in: the protocols, and the choice of an engine."""

from __future__ import annotations

from pytest_evocode.environments.building import BuildingEngine, BuildWish
from pytest_evocode.environments.choice import choose_engine
from pytest_evocode.environments.portable import ExportedLayer, PortableEngine
from pytest_evocode.environments.programs import FileStatus, Program, ProgramEnvironment, ProgramResult
from pytest_evocode.environments.protocol import (
    Command,
    Engine,
    Environment,
    ExecResult,
    FileContents,
    GuardedEnvironment,
    Installation,
    InteractiveEnvironment,
    MeasuredEngine,
    ReferenceKeepingEngine,
    Snapshot,
    User,
    read_environment_file,
    require_readable,
)

__all__ = [
    "BuildWish",
    "BuildingEngine",
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
    "MeasuredEngine",
    "PortableEngine",
    "Program",
    "ProgramEnvironment",
    "ProgramResult",
    "ReferenceKeepingEngine",
    "Snapshot",
    "User",
    "choose_engine",
    "read_environment_file",
    "require_readable",
]
