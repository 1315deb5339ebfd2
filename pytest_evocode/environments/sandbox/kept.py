"""Sandboxes that ``--evocode-keep`` leaves for somebody to look at: their files, and how to start them again."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from pytest_evocode.environments.cache import is_locked, try_lock
from pytest_evocode.environments.owners import Owner
from pytest_evocode.environments.protocol import User
from pytest_evocode.environments.sandbox.bubblewrap import Layers, SandboxSettings
from pytest_evocode.environments.sandbox.snapshots import link_layer
from pytest_evocode.errors import EnvironmentFault, UsageError

logger = logging.getLogger(__name__)

_RECORD, _LOCK, _TOP = "sandbox.json", "lock", "top"


@dataclass(frozen=True, slots=True)
class KeptSandbox:
    """How to start a kept sandbox, and the command to run in it on a terminal."""

    rootless: bool
    public_network: bool
    memory_mb: int | None
    user: User
    env: Mapping[str, str]
    cwd: str
    argv: tuple[str, ...]


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
    below: list[str] = []
    try:
        building.mkdir(mode=0o700)
        os.rename(layers.top, building / _TOP)
        for number, layer in enumerate(layers.below):
            if layer.parent in (settings.state, settings.kept):  # A snapshot, which is discarded when its round ends.
                copy = building / f"below-{number}"
                link_layer(settings.launcher, layer, copy)
                below.append(str(kept / copy.name))
            else:
                below.append(str(layer))
        hidden = [str(path) for path in settings.hidden]
        record = {**asdict(sandbox), "owner": asdict(Owner.this()), "below": below, "hidden": hidden}
        (building / _RECORD).write_text(json.dumps(record))
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


def read_kept(directory: Path) -> tuple[KeptSandbox, Layers, tuple[Path, ...]]:
    """Return a kept sandbox, its layers, and the directories of the host that it may not see.

    Raises:
        UsageError: There is none in the directory, or its image is gone.
    """
    try:
        record = json.loads((directory / _RECORD).read_text())
        del record["owner"]
        below = tuple(map(Path, record.pop("below")))
        hidden = tuple(map(Path, record.pop("hidden")))
        sandbox = KeptSandbox(**record)
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{directory} is not a sandbox that --evocode-keep left") from None
    if gone := [str(layer) for layer in below if not layer.is_dir()]:
        raise UsageError(f"{directory} cannot be entered any more, because its image is gone: {', '.join(gone)}")
    return sandbox, Layers(below, directory / _TOP), hidden


def lock_kept(directory: Path) -> FileLock | None:
    """Lock a kept sandbox, which two cannot be in at once; None when somebody is in it."""
    return try_lock(directory / _LOCK)


def _records(parent: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Find kept sandboxes, and what is written down about each."""
    for record in sorted(parent.glob(f"*/{_RECORD}")):
        with contextlib.suppress(OSError, ValueError):
            yield record.parent, json.loads(record.read_text())


def layers_below(parent: Path) -> set[Path]:
    """Return all layers of images that kept sandboxes are made of."""
    return {Path(layer) for _, record in _records(parent) for layer in record["below"]}


def ended_kept(parent: Path) -> list[Path]:
    """Find kept sandboxes whose session is over and that nobody is in."""
    found = _records(parent)
    return [path for path, each in found if not (Owner(**each["owner"]).is_alive() or is_locked(path / _LOCK))]
