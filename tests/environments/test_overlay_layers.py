"""What the upper layer of an overlay tells of its changes, and what of it is carried over into an empty layer.

The overlays are real ones of the kernel's, which only root can mount; the operations are any that a program may do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_evocode.environments.overlay import LayeredFiles, NewLayer, list_changes

Operation = tuple[str, str, str]

NAMES = ("a", "b", "d")
PATHS = [*NAMES, *(f"{above}/{name}" for above in NAMES for name in NAMES), "d/a/b", "d/b/a", "d/d/d", "a/b/d"]
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")  # cap_net_bind_service


class Overlay:
    """An overlay on an image with some files, as a container has it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.image, self.upper, self.merged = (directory / name for name in ("image", "upper", "merged"))
        for path in (self.image, self.upper, self.merged, directory / "work"):
            path.mkdir()
        for name in ("a/a", "a/b/d", "b", "d/a/a", "d/a/b", "d/b"):
            path = self.image / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"image's {name}")
        (self.image / "d/d").symlink_to("a")
        mount(f"lowerdir={self.image},upperdir={self.upper},workdir={directory}/work", self.merged)

    def snapshot(self) -> Path:
        """Copy the upper layer."""
        target = Path(tempfile.mkdtemp(dir=self.directory))
        subprocess.run(["cp", "-aT", self.upper, target], check=True)
        return target

    def files(self, layers: Sequence[Path]) -> LayeredFiles:
        """The image's files below layers of which the highest comes first."""
        return LayeredFiles({"": [*map(str, layers), str(self.image)]}, "trusted.overlay.opaque")

    @contextlib.contextmanager
    def fork(self, layer: Path) -> Iterator[Path]:
        """Mount what a fork with a layer over the image has."""
        fork = self.directory / "fork"
        fork.mkdir(exist_ok=True)
        mount(f"lowerdir={layer}:{self.image}", fork)
        try:
            yield fork
        finally:
            subprocess.run(["umount", fork], check=True)


def mount(options: str, target: Path) -> None:
    """Mount an overlay, or skip the test where that is not possible."""
    done = subprocess.run(
        ["mount", "-t", "overlay", "-o", options, "overlay", target], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no overlay can be mounted here: {done.stderr.strip()}")


@contextlib.contextmanager
def overlay() -> Iterator[Overlay]:
    """An overlay in a directory of its own."""
    if os.getuid() != 0:
        pytest.skip("only root can mount overlays")
    directory = Path(tempfile.mkdtemp(prefix="evocode-overlay-"))
    made = None
    try:
        made = Overlay(directory)
        yield made
    finally:
        if made is not None:
            subprocess.run(["umount", made.merged], check=True)
        shutil.rmtree(directory)


def contents(top: Path) -> dict[str, object]:
    """What a tree holds, with all that a tar of it would tell, and which names are links to one another."""
    found: dict[str, object] = {}
    names: dict[int, list[str]] = {}
    for path in [top, *top.rglob("*")]:
        status, name = path.lstat(), str(path.relative_to(top))
        data: object = None
        if stat.S_ISREG(status.st_mode):
            data = path.read_bytes()
            names.setdefault(status.st_ino, []).append(name)
        elif stat.S_ISLNK(status.st_mode):
            data = os.readlink(path)
        capability = None
        with contextlib.suppress(OSError):
            capability = os.getxattr(path, "security.capability", follow_symlinks=False)
        found[name] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, data, capability)
    found["links"] = sorted(sorted(each) for each in names.values() if len(each) > 1)
    return found


def differing(one: Path, other: Path) -> list[str]:
    """The paths at which two trees differ, in more than times and attributes."""
    found = [
        {path: (*status[:3], status[4]) for path, status in contents(each).items() if isinstance(status, tuple)}
        for each in (one, other)
    ]
    return [path for path in found[0].keys() | found[1].keys() if found[0].get(path) != found[1].get(path)]


def carried(top: Path) -> dict[str, object]:
    """What of a tree is to be carried over: no times, and nothing that gives rights."""
    found = {path: status for path, status in contents(top).items() if isinstance(status, tuple)}
    kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return {
        path: (status[0] & ~0o6000, *status[1:3], status[4])
        for path, status in found.items()
        if any(is_kind(status[0]) for is_kind in kinds)
    }


def is_told(path: str, changed: Sequence[str]) -> bool:
    """Whether a path is listed, or a directory above it that was deleted, or what is in it where it is new."""
    return any(f"{each}/".startswith(f"/{path}/") or f"/{path}/".startswith(f"{each}/") for each in changed)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _replace_with(make: Callable[[Path], object]) -> Callable[[Path, Path, str], object]:
    def replace(path: Path, other: Path, text: str) -> object:
        if os.path.lexists(path):
            _remove(path)
        return make(path)

    return replace


def _rewrite_in_silence(path: Path, other: Path, text: str) -> None:
    status = path.lstat()
    with path.open("r+b") as file:
        file.write(text.encode()[: status.st_size])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _leave_a_hole(path: Path, other: Path, text: str) -> None:
    with path.open("r+b") as file:
        file.seek(70_000)
        file.write(text.encode())
        file.truncate(200_000)


def _append(path: Path, other: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


OPERATIONS: dict[str, Callable[[Path, Path, str], object]] = {
    "write": lambda path, other, text: path.write_text(text),
    "append": _append,
    "rewrite": _rewrite_in_silence,
    "truncate": lambda path, other, text: os.truncate(path, 3),
    "hole": _leave_a_hole,
    "remove": lambda path, other, text: _remove(path),
    "directory": lambda path, other, text: path.mkdir(parents=True),
    "renew": _replace_with(lambda path: path.mkdir()),
    "to file": _replace_with(lambda path: path.write_text("in place of it")),
    "to link": _replace_with(lambda path: path.symlink_to("a")),
    "to fifo": _replace_with(os.mkfifo),
    "to device": _replace_with(lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))),
    "rename": lambda path, other, text: path.rename(other),
    "move": lambda path, other, text: shutil.move(path, other),
    "link": lambda path, other, text: os.link(path, other, follow_symlinks=False),
    "mode": lambda path, other, text: path.chmod(0o4711),
    "owner": lambda path, other, text: os.chown(path, 7, 8, follow_symlinks=False),
    "capability": lambda path, other, text: os.setxattr(path, "security.capability", CAPABILITY),
}


WRITING = ("write", "append", "rewrite", "truncate", "hole")


def apply(operation: Operation, merged: Path) -> None:
    """Do one operation as a program in the container would; many of them are not possible, which is fine."""
    what, path, other = operation
    with contextlib.suppress(OSError, shutil.Error):
        if os.path.lexists(merged / path) and what in WRITING and not (merged / path).is_file():
            return  # Whoever opens a FIFO waits.
        OPERATIONS[what](merged / path, merged / other, f"{what} {path} {other}")


programs = st.lists(
    st.tuples(st.sampled_from(sorted(OPERATIONS)), st.sampled_from(PATHS), st.sampled_from(PATHS)), max_size=40
)


@settings(
    max_examples=int(os.environ.get("EVOCODE_LAYER_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(programs)
@example([("write", "a/d", "a"), ("remove", "a/d", "a"), ("directory", "a/d", "a")])
@example([("link", "b", "d/d/d"), ("write", "b", "a"), ("rename", "d", "a/d"), ("write", "b", "a")])
@example([("directory", "a/d/a", "a"), ("rename", "a/d/a", "d/a"), ("remove", "a/d", "b"), ("renew", "d/a", "b")])
@example([("renew", "d", "a"), ("write", "d/a", "a"), ("renew", "d", "a"), ("directory", "d/a", "a")])
@example([("renew", "a/b", "a"), ("renew", "d", "a"), ("directory", "d/a", "a"), ("to fifo", "a/a", "a")])
def test_changes_are_listed_and_carried_over_as_trees_and_one_by_one(operations: Sequence[Operation]) -> None:
    with overlay() as container:
        for operation in operations:
            apply(operation, container.merged)
        layer = container.snapshot()
        with container.fork(layer) as fork:
            assert contents(fork) == contents(container.merged)
        snapshot, image = container.files([layer]), container.files([])
        changed = list_changes(snapshot, image)
        assert [path for path in differing(container.image, container.merged) if not is_told(path, changed)] == []
        wanted = carried(container.merged)
        links = {name for name in NAMES if (container.merged / name).is_symlink()}
        for number, (trees, exact) in enumerate(((NAMES, ()), ((), changed))):
            new = container.directory / f"new{number}"
            new.mkdir()
            NewLayer(snapshot, image, {"": str(new)}).carry([f"/{name}" for name in trees], exact)
            with container.fork(new) as fork:
                assert carried(fork) == {path: each for path, each in wanted.items() if exact or path not in links}
