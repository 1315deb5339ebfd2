"""Settings that all sandboxes of a session share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.limits import ResourceLimits
from pytest_evocode.environments.sandbox.launcher_client import Launcher
from pytest_evocode.environments.sandbox.launcher_pool import LauncherPool


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """What all sandboxes of a session share."""

    bwrap: str
    rootless: bool
    state: Path
    """A directory for the sandboxes' layers, on a file system that can carry overlays."""
    state_lock: FileLock | None
    """Keeps other sessions from removing that directory; it is held while anything refers to it."""
    kept: Path
    """A directory on the same file system for snapshots that outlive the session."""
    hidden: tuple[Path, ...]
    """Directories of the host below /usr that no sandbox may see."""
    launcher: Launcher
    launchers: LauncherPool
    limits: ResourceLimits
    machine: int
    """Bytes of memory that the session may use."""
