"""What agents need in sandboxes, installed in layers of their own: they stay until somebody removes them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.environments.cache import cache_directory, is_locked
from pytest_evocode.environments.sandbox.kept import kept_sandboxes, layers_below
from pytest_evocode.environments.sandbox.launcher_client import Launcher
from pytest_evocode.environments.sandbox.leftovers import LOCK, claim, state_parents
from pytest_evocode.environments.sandbox.snapshots import bytes_of, remove_tree
from pytest_evocode.errors import EnvironmentFault

#: Below the cache directory.
IMAGES = "sandbox-images"
_RECORD = "installation.json"


@dataclass(frozen=True, slots=True)
class AgentLayer:
    """A directory with what an agent needs on top of a task's image."""

    path: Path
    installed: str
    """What is installed, such as a package with its version."""
    size: int
    """Bytes."""
    in_use: bool
    """Whether a session with sandboxes is running, or a kept sandbox is made of it."""

    def __str__(self) -> str:
        """Return its name, what is installed and its size."""
        return f"sandbox layer {self.path.name} with {self.installed}, {self.size / 1e6:,.0f} MB"


def note_installation(directory: Path, installed: str) -> None:
    """Note what is installed in a layer's directory."""
    (directory / _RECORD).write_text(json.dumps({"installed": installed}))


def agent_layers(launcher: Launcher) -> list[AgentLayer]:
    """Return the layers of agents on this machine, in order of what is installed."""
    found = []
    for path in sorted((cache_directory() / IMAGES).glob("*")):
        record = path / _RECORD
        if record.is_file():
            installed = str(json.loads(record.read_text())["installed"])
            size = bytes_of(launcher, path)
            with _no_session_begins():
                found.append(AgentLayer(path, installed, size, _is_used(path)))
    return sorted(found, key=lambda layer: (layer.installed, layer.path.name))


def remove_agent_layer(launcher: Launcher, layer: AgentLayer) -> None:
    """Remove a layer that is not in use; the next attempt of its agent installs it anew.

    Raises:
        EnvironmentFault: It is in use by now.
    """
    with _no_session_begins():
        if _is_used(layer.path):
            raise EnvironmentFault(f"the {layer} is in use by now")
        remove_tree(launcher, layer.path)


@contextlib.contextmanager
def _no_session_begins() -> Iterator[None]:
    """Keep sessions with sandboxes from beginning: one whose lock is looked at as it begins would be without it."""
    with contextlib.ExitStack() as stack:
        for parent in state_parents():
            with contextlib.suppress(PermissionError):  # Another user's, whose images are elsewhere.
                if parent.is_dir():
                    stack.enter_context(claim(parent))
        yield


def _is_used(path: Path) -> bool:
    """Whether a session may use a layer: sessions do not say which, so any that runs counts.

    To be called while :func:`_no_session_begins`.
    """
    for parent in state_parents():
        with contextlib.suppress(PermissionError):
            if parent.is_dir() and any(is_locked(each / LOCK) for each in parent.iterdir() if each.is_dir()):
                return True
        if any(path in layer.parents for layer in layers_below(kept_sandboxes(parent))):
            return True
    return False
