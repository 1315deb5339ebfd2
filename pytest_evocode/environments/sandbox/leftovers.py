"""What outlives a session's sandboxes on the disk: what it keeps on purpose, and what it left when it died.

``--evocode-keep`` leaves sandboxes to be looked at, with how to start them again. What agents need is installed in
layers of its own, which stay until somebody removes them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel

from pytest_evocode.environments.cache import cache_directory, is_locked, try_lock
from pytest_evocode.environments.owners import Owner
from pytest_evocode.environments.programs import User
from pytest_evocode.environments.sandbox.bubblewrap import Layers, SandboxSettings
from pytest_evocode.environments.sandbox.cgroups import remove_recorded
from pytest_evocode.environments.sandbox.launcher_client import Launcher
from pytest_evocode.environments.sandbox.snapshots import (
    OWNER,
    bytes_of,
    leftover_snapshots,
    link_layer,
    remove_tree,
)
from pytest_evocode.errors import EnvironmentFault, UsageError

logger = logging.getLogger(__name__)

_RECORD, _LOCK, _TOP = "sandbox.json", "lock", "top"


class KeptSandbox(BaseModel):
    """How to start a kept sandbox, the command to run in it on a terminal, and who has left it."""

    rootless: bool
    public_network: bool
    memory_mb: int | None
    user: User
    env: dict[str, str]
    cwd: str
    argv: tuple[str, ...]
    below: tuple[Path, ...] = ()
    """The layers of its image, and of the snapshot if it is of one, the lowest first."""
    hidden: tuple[Path, ...] = ()
    """The directories of the host that it may not see."""
    owner: Owner
    cache: str = ""
    """That of its session, of which earlier versions wrote none."""


def kept_sandboxes(parent: Path) -> Path:
    """Return where kept sandboxes are: beside the sessions' directories, which are removed with their sessions."""
    return parent.with_name(f"{parent.name}-kept")


def keep_files(settings: SandboxSettings, layers: Layers, name: str, sandbox: KeptSandbox) -> Path:
    """Move the files of a stopped sandbox to where no session removes them, and return that directory.

    Raises:
        EnvironmentFault: They cannot be moved.
    """
    building = settings.state / f"kept-{uuid.uuid4().hex[:12]}"
    kept = kept_sandboxes(settings.state.parent) / f"{name}-{uuid.uuid4().hex[:6]}"
    below: list[Path] = []
    try:
        building.mkdir(mode=0o700)
        os.rename(layers.top, building / _TOP)
        for number, layer in enumerate(layers.below):
            if layer.parent in (settings.state, settings.kept):  # A snapshot, which is discarded when its round ends.
                copy = building / f"below-{number}"
                link_layer(settings.launcher, layer, copy)
                below.append(kept / copy.name)
            else:
                below.append(layer)
        known = {"below": tuple(below), "hidden": settings.hidden, "cache": str(cache_directory())}
        (building / _RECORD).write_text(sandbox.model_copy(update=known).model_dump_json())
        kept.parent.mkdir(exist_ok=True, mode=0o700)
        logger.info("keeping the files of a sandbox in %s", kept)
        os.rename(building, kept)  # In one step: until now the session removes it.
    except OSError as error:
        raise EnvironmentFault(f"a sandbox's files could not be kept at {kept}: {error}") from error
    return kept


def enter_line(directory: Path) -> str:
    """Return the command line that opens a kept sandbox."""
    beside = Path(sys.executable).with_name("evocode")
    program = "evocode" if shutil.which("evocode") == str(beside) or not beside.exists() else str(beside)
    return shlex.join([program, "enter", str(directory)])


def read_kept(directory: Path) -> tuple[KeptSandbox, Layers]:
    """Return a kept sandbox and its layers.

    Raises:
        UsageError: There is none in the directory, or its image is gone.
    """
    try:
        kept = KeptSandbox.model_validate_json((directory / _RECORD).read_text())
    except (OSError, ValueError):
        raise UsageError(f"{directory} is not a sandbox that --evocode-keep left") from None
    if gone := [str(layer) for layer in kept.below if not layer.is_dir()]:
        raise UsageError(f"{directory} cannot be entered any more, because its image is gone: {', '.join(gone)}")
    return kept, Layers(kept.below, directory / _TOP)


def lock_kept(directory: Path) -> FileLock | None:
    """Lock a kept sandbox, which two cannot be in at once; None when somebody is in it."""
    return try_lock(directory / _LOCK)


def _records(parent: Path) -> Iterator[tuple[Path, KeptSandbox]]:
    """Find kept sandboxes, and what is written down about each."""
    for record in sorted(parent.glob(f"*/{_RECORD}")):
        with contextlib.suppress(OSError, ValueError):
            yield record.parent, KeptSandbox.model_validate_json(record.read_text())


def layers_below(parent: Path) -> set[Path]:
    """Return all layers of images that kept sandboxes are made of."""
    return {layer for _, record in _records(parent) for layer in record.below}


def ended_kept(parent: Path) -> list[Path]:
    """Find kept sandboxes whose session is over and that nobody is in."""
    found = _records(parent)
    return [path for path, each in found if not (each.owner.is_alive() or is_locked(path / _LOCK))]


#: The file in a session's directory that lists its cgroups.
CGROUPS = "cgroups"
#: The file in a session's directory that the session has locked for as long as it lives.
LOCK = "lock"


def state_parents() -> tuple[Path, ...]:
    """Return where sandboxes are kept: the cache, or memory where the cache's disk carries no overlay."""
    return cache_directory() / "sandboxes", Path(f"/dev/shm/pytest-evocode-{os.getuid()}")


def kept_snapshots(parent: Path) -> Path:
    """Return where kept snapshots are: beside the sessions' directories, which are removed with their sessions."""
    return parent.with_name(f"{parent.name}-snapshots")


def reference_states(parent: Path) -> Path:
    """Return where states of reference solutions are, which outlive attempts, too."""
    return parent.with_name(f"{parent.name}-references")


def trash(parent: Path) -> Path:
    """Return where things wait to be removed: nobody looks into it, so whatever is in it can be removed at any time."""
    return parent.with_name(f"{parent.name}-trash")


def throw_away(parent: Path, path: Path) -> None:
    """Put a directory into the trash at once, if it is still there."""
    trash(parent).mkdir(exist_ok=True, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, trash(parent) / f"{path.name}-{uuid.uuid4().hex[:8]}")


def empty_trash(launcher: Launcher, trash: Path) -> None:
    """Delete what is in the trash; another session may be doing the same."""
    with contextlib.suppress(FileNotFoundError):
        remove_tree(launcher, *trash.iterdir())


def find_sandbox_leftovers(*, needed_too: bool = False) -> list[Path]:
    """Find the directories of dead sessions, the snapshots they kept, and trash that was not removed to the end.

    With ``needed_too``, snapshots that an attempt needs and kept sandboxes are included.
    """
    found = []
    for parent in state_parents():
        with contextlib.suppress(PermissionError):  # What cannot be read is another user's, who removes it.
            if parent.is_dir():
                with claim(parent):
                    found += [path for path in sorted(parent.iterdir()) if path.is_dir() and not is_locked(path / LOCK)]
                found += [trash(parent)] if os.path.isdir(trash(parent)) and os.listdir(trash(parent)) else []
        found += leftover_snapshots(kept_snapshots(parent), needed_too=needed_too)
        found += ended_kept(kept_sandboxes(parent)) if needed_too else []
    return found


def is_of_other_cache(path: Path) -> bool:
    """Tell whether a session with another cache has kept a sandbox or snapshot, or one whose cache is not known.

    In memory are those of all caches.
    """
    cache = cache_directory()
    if path.is_relative_to(cache):
        return False
    for record in (path / _RECORD, path / OWNER):
        with contextlib.suppress(OSError, ValueError):
            return bool(json.loads(record.read_text()).get("cache") != str(cache))
    return True


def claim(parent: Path) -> FileLock:
    """Return the lock under which sessions' directories are made and removed, each with a lock file in it.

    Without it, another session could lock a directory that is not locked yet, or whose lock file was just deleted.
    """
    return FileLock(parent / "claim.lock")


def throw_away_state(state: Path) -> None:
    """Put a session's directory into the trash and remove its cgroups, unless it is locked; hold :func:`claim`."""
    lock = try_lock(state / LOCK) if state.is_dir() else None
    if lock is not None:
        try:
            logger.info("removing the files of a session in %s", state)
            if remove_recorded(state / CGROUPS):
                throw_away(state.parent, state)
        finally:
            lock.release()


def remove_sandbox_leftover(launcher: Launcher, path: Path) -> None:
    """Delete what :func:`find_sandbox_leftovers` found, unless somebody uses it by now."""
    parent = path.parent
    if parent in state_parents():
        with claim(parent):
            throw_away_state(path)
        path = trash(parent)
    if path in map(trash, state_parents()):
        empty_trash(launcher, path)
        return
    is_kept = path.is_dir() and path.parent in map(kept_sandboxes, state_parents())
    lock = lock_kept(path) if is_kept else None
    if lock is None and is_kept:  # Somebody has entered it meanwhile.
        return
    logger.info("removing %s", path)
    remove_tree(launcher, path)
    if lock is not None:
        lock.release()


#: Below the cache directory.
IMAGES = "sandbox-images"
#: How directories there begin that several images share: of images that the user gave, and of the host's ``/usr``.
GIVEN, DIRECTORIES = "image-", "directories-"
#: The file in a directory of an image that tells what it is made of.
IMAGE_RECORD = "image.json"
_INSTALLED = "installation.json"


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
    (directory / _INSTALLED).write_text(json.dumps({"installed": installed}))


def agent_layers(launcher: Launcher) -> list[AgentLayer]:
    """Return the layers of agents on this machine, in order of what is installed."""
    found = []
    for path in sorted((cache_directory() / IMAGES).glob("*")):
        record = path / _INSTALLED
        if record.is_file():
            installed = str(json.loads(record.read_text())["installed"])
            size = bytes_of(launcher, path)
            with _no_session_begins():
                found.append(AgentLayer(path, installed, size, _is_used(path)))
    return sorted(found, key=lambda layer: (layer.installed, layer.path.name))


def remove_layer(launcher: Launcher, path: Path, what: str) -> None:
    """Remove a directory with layers that is not in use; whoever needs it makes it anew.

    Raises:
        EnvironmentFault: It is in use by now; the message says ``what``.
    """
    with _no_session_begins():
        if _is_used(path):
            raise EnvironmentFault(f"the {what} is in use by now")
        remove_tree(launcher, path)


def unneeded_layers(packages: str) -> list[Path]:
    """Find images that were unpacked, what is of another state of this machine's packages, and what killed builds left.

    What a session may use, or a kept sandbox is made of, is not among it.

    Args:
        packages: Stands for those packages as they are now.
    """
    found = []
    for path in sorted((cache_directory() / IMAGES).glob("*/")):
        record = path / IMAGE_RECORD
        of_packages = None
        if path.name.startswith(DIRECTORIES):
            of_packages = path.name.removeprefix(DIRECTORIES)
        elif record.is_file():
            with contextlib.suppress(OSError, ValueError):
                of_packages = str(json.loads(record.read_text()).get("packages"))
        is_old = of_packages is not None and not (of_packages and packages.startswith(of_packages))
        if is_old or path.name.startswith(GIVEN) or "." in path.name:
            found.append(path)
    with _no_session_begins():
        return [path for path in found if not _is_used(path)]


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
        if any(path in (layer, *layer.parents) for layer in layers_below(kept_sandboxes(parent))):
            return True
    return False
