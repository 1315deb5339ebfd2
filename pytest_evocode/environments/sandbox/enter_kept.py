"""``evocode enter``: start a kept sandbox once more for somebody at a terminal."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pytest_evocode.environments.protocol import Command, ResourceLimits
from pytest_evocode.environments.sandbox.bubblewrap import SandboxSettings, find_bubblewrap
from pytest_evocode.environments.sandbox.engine import memory_of_session
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.environments.sandbox.kept import lock_kept, read_kept
from pytest_evocode.environments.sandbox.launcher_client import Launcher, LauncherPool
from pytest_evocode.errors import UsageError


def enter_kept_sandbox(directory: Path, terminal: int) -> int:
    """Run the command that a sandbox was kept for on a terminal, and return its exit code; changes to files stay.

    Raises:
        UsageError: There is no kept sandbox in the directory, or somebody else is in it.
        EnvironmentFault: It does not start.
    """
    directory = directory.resolve()
    kept, layers, hidden = read_kept(directory)
    lock = lock_kept(directory)
    if lock is None:
        raise UsageError(f"{directory} is open in another terminal")
    with contextlib.closing(Launcher()) as launcher:
        settings = SandboxSettings(
            bwrap=find_bubblewrap(),
            rootless=kept.rootless,
            state=directory,
            state_lock=lock,
            kept=directory,
            hidden=hidden,
            launcher=launcher,
            launchers=LauncherPool(launcher, None),
            limits=ResourceLimits(),
            machine=memory_of_session(),
        )
        environment = SandboxEnvironment(
            settings,
            layers.below,
            top=layers.top,
            workdir=kept.cwd,
            user=kept.user,
            env=kept.env,
            network="public" if kept.public_network else "no-network",
            memory_mb=kept.memory_mb,
        )
        try:
            environment.start()
            return environment.interact(Command(tuple(kept.argv)), terminal)
        finally:
            environment.stop()
            lock.release()
