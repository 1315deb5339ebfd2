"""The launchers that sandboxes are started by: each in a cgroup of its own, or one for all without cgroups."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, replace

from pytest_evocode.environments.sandbox.cgroups import Cgroup, CgroupTree
from pytest_evocode.environments.sandbox.launcher_client import Launcher, receive
from pytest_evocode.errors import EnvironmentFault

LauncherLimits = tuple[int, int, float | None]  # processes, bytes of memory, cpus
_IDLE_LIMIT = 8  # launchers that are kept for other sandboxes


@dataclass(frozen=True, slots=True)
class PooledLauncher:
    """The launcher that starts one sandbox and its commands, and the cgroup that launcher is in."""

    launcher: Launcher
    cgroup: Cgroup | None = None
    limits: LauncherLimits | None = None
    """What its cgroup is limited to."""

    @property
    def closed(self) -> bool:
        """Whether its launcher has ended."""
        return self.launcher.closed

    def close(self) -> None:
        """End the launcher and remove its cgroup, if it has one of its own."""
        if self.cgroup is not None:
            self.launcher.close()
            with contextlib.suppress(OSError):  # It is tried again when this session ends, and by the next one.
                self.cgroup.remove()


class LauncherPool:
    """LauncherPool of a session.

    One is made in advance, and one that was left empty is taken again by who wants the same limits: to move a process
    into a new cgroup takes the kernel 10 ms.
    """

    def __init__(self, launcher: Launcher, tree: CgroupTree | None) -> None:
        """Start a spare launcher if there are cgroups.

        Raises:
            EnvironmentFault: No process can be moved into the tree's cgroups.
        """
        self._launcher = launcher
        self._tree = tree
        self._lock = threading.Lock()
        self._made = 0
        self._spare: tuple[PooledLauncher, int] | None = None
        self._used: list[PooledLauncher] = []
        self._idle: list[PooledLauncher] = []
        if tree is not None:
            self._spare = self._make(tree)

    @property
    def limited(self) -> bool:
        """Whether the kernel enforces limits here."""
        return self._tree is not None

    def _make(self, tree: CgroupTree) -> tuple[PooledLauncher, int]:
        self._made += 1
        try:
            cgroup = tree.make(f"sandbox-{self._made}")
        except OSError as error:
            raise EnvironmentFault(f"no cgroup can be made for a sandbox: {error}") from error
        launcher, reply = self._launcher.nest(cgroup.directories)
        return PooledLauncher(launcher, cgroup), reply

    def acquire(self, *, processes: int, memory: int, cpus: float | None) -> PooledLauncher:
        """Return a launcher for one sandbox; the kernel enforces the limits where there are cgroups.

        Args:
            processes: How many processes and threads there may be at once.
            memory: Bytes, swap included.
            cpus: How many CPUs may be used, None for all.

        Raises:
            EnvironmentFault: A cgroup cannot be made or does not take the limits.
        """
        with self._lock:
            if self._tree is None:
                return PooledLauncher(self._launcher)
            limits = (processes, memory, cpus)
            for pooled in self._idle:
                if pooled.limits == limits:
                    self._idle.remove(pooled)
                    return pooled
            pooled, reply = self._spare or self._make(self._tree)
            self._spare = None
            receive(reply)
            assert pooled.cgroup is not None
            try:
                pooled.cgroup.limit(processes=processes, memory=memory, cpus=cpus)
            except OSError as error:
                pooled.close()
                raise EnvironmentFault(f"a sandbox's cgroup does not take its limits: {error}") from error
            self._spare = self._make(self._tree)
            pooled = replace(pooled, limits=limits)
            self._used = [other for other in self._used if not other.closed] + [pooled]
            return pooled

    def release(self, pooled: PooledLauncher) -> None:
        """Keep a launcher for another sandbox if nothing else is left in its cgroup, else close it."""
        if pooled.cgroup is not None and pooled.cgroup.has_only_one_process():
            with self._lock:
                if self._tree is not None and len(self._idle) < _IDLE_LIMIT:
                    self._idle.append(pooled)
                    return
        pooled.close()

    def close(self) -> None:
        """End the spare launcher and those of sandboxes that were not stopped, with everything that runs there."""
        with self._lock, contextlib.suppress(EnvironmentFault):
            spare, self._spare, self._tree = self._spare, None, None
            if spare is not None:
                receive(spare[1])
                self._used.append(spare[0])
            for pooled in self._used:
                pooled.launcher.close()  # All first, because the kernel takes milliseconds for each to end.
            for pooled in self._used:
                pooled.close()
