"""Snapshots of sandboxes: copies of their top layers, which may outlive the session that made them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.owners import Owner, is_needed
from pytest_evocode.environments.sandbox.bubblewrap import Layers, host_below
from pytest_evocode.environments.sandbox.launcher_client import Launcher
from pytest_evocode.errors import EnvironmentFault

#: The file of a kept snapshot that tells who made it.
OWNER = "owner.json"
_BELOW = "below.json"
_AS_IT_IS = ("--numeric-owner", "--same-owner", "--same-permissions", "--sparse", "--xattrs", "--xattrs-include=*")


@dataclass(frozen=True, slots=True)
class SandboxSnapshot:
    """A copy of a sandbox's top layer."""

    launcher: Launcher
    layer: Path
    below: tuple[Path, ...] = ()
    """The layers of the image, the lowest first; none where they are not known."""

    @classmethod
    def find(cls, launcher: Launcher, layer: Path) -> SandboxSnapshot | None:
        """Return the snapshot that an earlier session kept in a directory; None if there is none."""
        below: tuple[Path, ...] = ()
        with contextlib.suppress(OSError, ValueError):
            below = tuple(map(Path, json.loads((layer / _BELOW).read_text())))
        return cls(launcher, layer, below if all(map(os.path.isdir, below)) else ()) if layer.is_dir() else None

    def keep(self) -> None:
        """Note down what a later session has to know."""
        (self.layer / _BELOW).write_text(json.dumps(list(map(str, self.below))))

    @property
    def reference(self) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`."""
        return self.layer.name

    def changed_paths(self, outside: Sequence[str] = ()) -> list[str]:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`."""
        request = {"operation": "list_changes", "outside": list(outside), **self.describe(self.below)}
        return sorted({*self.launcher.ask(request)["paths"]})

    def describe(self, image: Sequence[Path]) -> dict[str, Any]:
        """Return the layers of an image, given from the lowest, and of the snapshot above it for the launcher."""
        below = {
            path: [*(f"{layer}/{name}" for layer in reversed(image)), *own]
            for path, name, own in (("", "root", ()), ("/usr", "usr", host_below(image)))
        }
        above = {"": [f"{self.layer}/root", *below[""]], "/usr": [f"{self.layer}/usr", *below["/usr"]]}
        return {"image": below, "snapshot": above}

    def copy_into(self, top: Path) -> None:
        """Copy the files into the empty top layer of another sandbox."""
        self.launcher.host_command(_copy_command(self.layer, top))

    def carry_into(self, image: Sequence[Path], only: Sequence[str], exact: Sequence[str], top: Path) -> None:
        """Copy what there is at some paths into the empty top layer of another sandbox, without what gives rights.

        Programs can rename a directory in the top layer only: of one below it the kernel says that it is on another
        file system.

        Args:
            image: The layers of the image that the snapshot lies over, the lowest first.
            only: As for :meth:`~pytest_evocode.environments.protocol.Environment.fork`.
            exact: The same.
            top: The directory of the top layer.
        """
        request = {
            "operation": "carry_over",
            **self.describe(image),
            "layer": {"": f"{top}/root", "/usr": f"{top}/usr"},
            "only": only,
            "exact": exact,
        }
        self.launcher.ask(request)

    def discard(self) -> None:
        """Delete the copy; where that fails, it is left to the session's end."""
        with contextlib.suppress(EnvironmentFault):
            remove_tree(self.launcher, self.layer)


def copy_top_layer(
    launcher: Launcher, directory: Path, keep_for: Path | None, run: Callable[[list[str]], None], layers: Layers
) -> SandboxSnapshot:
    """Copy a sandbox's top layer to a new directory, record whose it is, and return the snapshot.

    Args:
        launcher: The session's launcher.
        directory: Where the new directory is made.
        keep_for: As for :meth:`~pytest_evocode.environments.protocol.Environment.snapshot`.
        run: Runs the command that copies.
        layers: Those of the sandbox.

    Raises:
        EnvironmentFault: The sandbox was stopped meanwhile, or the copy cannot be written.
    """
    layer = directory / f"snapshot-{uuid.uuid4().hex[:12]}"
    snapshot = SandboxSnapshot(launcher, layer, layers.below)
    with _whole_or_not_at_all(launcher, layer):
        layer.mkdir(parents=True, mode=0o700)
        if keep_for is not None:
            _write_owner(layer, keep_for)
            snapshot.keep()
        run(_copy_command(layers.top, layer))
    return snapshot


@contextlib.contextmanager
def _whole_or_not_at_all(launcher: Launcher, layer: Path) -> Iterator[None]:
    """Remove a layer that could not be made, as where the sandbox was stopped meanwhile or the disk is full."""
    try:
        yield
    except (EnvironmentFault, OSError) as error:
        remove_tree(launcher, layer)
        if isinstance(error, OSError):
            raise EnvironmentFault(f"a snapshot could not be written to {layer}: {error.strerror}") from error
        raise


def pack_layer(launcher: Launcher, layer: Path, archive: Path) -> None:
    """Write a layer to a tar, the same bytes for the same files; raises EnvironmentFault."""
    how = ("--format=posix", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", "--sort=name")
    launcher.host_command(
        ["tar", "--create", f"--file={archive}", *how, *_AS_IT_IS, f"--directory={layer}", "root", "usr"]
    )


def unpack_layer(launcher: Launcher, archive: Path, layer: Path, keep_for: Path) -> None:
    """Make a kept snapshot of what :func:`pack_layer` wrote; raises EnvironmentFault, and leaves nothing then."""
    building = layer.with_name(f"part-{uuid.uuid4().hex[:12]}")
    with _whole_or_not_at_all(launcher, building):
        building.mkdir(parents=True, mode=0o700)
        _write_owner(building, keep_for)  # First, so that what a killed session leaves of it is removed.
        launcher.host_command(["tar", "--extract", f"--file={archive}", *_AS_IT_IS, f"--directory={building}"])
        os.rename(building, layer)


def _write_owner(layer: Path, keep_for: Path) -> None:
    owner = {**asdict(Owner.this()), "keep_for": str(keep_for), "cache": str(cache_directory())}
    (layer / OWNER).write_text(json.dumps(owner))


def keep_copy(snapshot: SandboxSnapshot, target: Path) -> int:
    """Keep a snapshot's files in another directory.

    Returns:
        The bytes that they take.
    """
    launcher = snapshot.launcher
    with _whole_or_not_at_all(launcher, target):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        link_layer(launcher, snapshot.layer, target)
        replace(snapshot, layer=target).keep()
        return bytes_of(launcher, target)


def leftover_snapshots(directory: Path, *, needed_too: bool = False) -> list[Path]:
    """Find kept snapshots whose session is dead and that no attempt needs.

    With ``needed_too``, those that an attempt needs are included.
    """
    found = []
    with contextlib.suppress(FileNotFoundError, PermissionError):
        for layer in sorted(directory.iterdir()):
            try:
                record = json.loads((layer / OWNER).read_text())
                keep_for, alive = Path(record["keep_for"]), Owner.from_record(record).is_alive()
            except (OSError, ValueError, TypeError, KeyError):
                continue  # Another session is just making or removing it.
            if not alive and (needed_too or not is_needed(layer.name, keep_for)):
                found.append(layer)
    return found


def bytes_of(launcher: Launcher, *layers: Path) -> int:
    """Return how many bytes layers take."""
    sizes = launcher.host_command(["du", "-s", "-B1", "--", *map(str, layers)])
    return sum(int(line.split()[0]) for line in sizes.splitlines())


def move_layer(launcher: Launcher, source: Path, target: Path) -> None:
    """Move a layer to a new directory, which may be on another file system."""
    target.mkdir()
    written = [str(source / name) for name in ("root", "usr")]
    if source.stat().st_dev != target.stat().st_dev and _linux() >= (6, 8):
        launcher.ask({"operation": "rewrite_whiteouts", "layers": written})
    launcher.host_command(["mv", "--", *written, str(target)])
    remove_tree(launcher, source)


def _linux() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def link_layer(launcher: Launcher, source: Path, target: Path) -> None:
    """Copy a layer to a new directory as hard links, because nobody writes to lower layers."""
    target.mkdir(mode=0o700)
    launcher.host_command(["cp", "-al", "--", str(source / "root"), str(source / "usr"), str(target)])


def _copy_command(source: Path, target: Path) -> list[str]:
    """Return the command that copies a top layer, with deleted files and attributes, and shared blocks if possible."""
    layers = [str(source / name) for name in ("root", "usr")]
    return ["cp", "-a", "--reflink=auto", "--sparse=always", "--", *layers, str(target)]


def remove_tree(launcher: Launcher, *paths: Path) -> None:
    """Delete directories of sandbox files, whatever mode bits an agent left in them."""
    if there := [str(path) for path in paths if os.path.lexists(path)]:
        launcher.ask({"operation": "remove_tree", "paths": there})
