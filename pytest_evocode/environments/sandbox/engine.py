"""The sandbox as an engine: one launcher and one directory of state for all sandboxes of a session."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from filelock import FileLock

from pytest_evocode.environments.builds import Builds
from pytest_evocode.environments.cache import cache_directory, try_lock
from pytest_evocode.environments.engines import (
    BuildWish,
    ExportedLayer,
    Installation,
)
from pytest_evocode.environments.entry_points import EntryPoint
from pytest_evocode.environments.limits import ResourceLimits
from pytest_evocode.environments.programs import Command
from pytest_evocode.environments.protocol import Snapshot
from pytest_evocode.environments.removals import Removals
from pytest_evocode.environments.sandbox import leftovers
from pytest_evocode.environments.sandbox.base_system import host_system, lay_least
from pytest_evocode.environments.sandbox.bubblewrap import SandboxSettings, bubblewrap_version, find_bubblewrap
from pytest_evocode.environments.sandbox.cgroups import CgroupTree, memory_limits
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.environments.sandbox.given_images import read_images
from pytest_evocode.environments.sandbox.images import SandboxImages
from pytest_evocode.environments.sandbox.launcher_client import Launcher, LauncherPool
from pytest_evocode.environments.sandbox.leftovers import lock_kept, read_kept
from pytest_evocode.environments.sandbox.snapshots import (
    SandboxSnapshot,
    keep_copy,
    leftover_snapshots,
    pack_layer,
    remove_tree,
    unpack_layer,
)
from pytest_evocode.errors import EnvironmentFault, EnvironmentUnavailable, UsageError
from pytest_evocode.tasks import Network, Task

if TYPE_CHECKING:
    from pytest_evocode.environments.egress.proxy import EgressProxy

logger = logging.getLogger(__name__)

_SMALL_DISK = 8 * 2**30  # bytes
#: What `evocode new` makes tasks of, with their solutions and tests, which an installation below /usr would show.
_TEMPLATES = Path(__file__).parents[2] / "cli" / "new_task" / "templates"


class SandboxEngine:
    """An :class:`~pytest_evocode.environments.engines.Engine` of sandboxes.

    Args:
        hidden: Directories of the host that no sandbox may show; they matter where they are below ``/usr``.
        rootless: Whether to use a user namespace for what root could do without one; None tries root's way first.
        cgroups: Whether the kernel is to enforce the limits where it can; None for yes unless ``rootless``.
        limits: The limits of a sandbox whose task sets none.
        failed_builds: A directory for builds that failed, which are not begun again by whoever shares it.
        images: Where images are that take the place of the host's system, by the names that they have in FROM.

    Raises:
        EnvironmentUnavailable: No sandbox can be started here.
        UsageError: One of the images cannot be used.
    """

    name = "sandbox"
    without_effect: tuple[str, ...]

    def __init__(
        self,
        hidden: Sequence[Path] = (),
        *,
        rootless: bool | None = None,
        cgroups: bool | None = None,
        limits: ResourceLimits = ResourceLimits(),  # noqa: B008 - frozen
        failed_builds: Path | None = None,
        images: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self._given = read_images(images)
        bwrap = find_bubblewrap()
        self._cache = cache_directory()
        self._launcher = Launcher()
        self._running: weakref.WeakSet[SandboxEnvironment] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._state_lock: FileLock | None = None
        self._proxy: EgressProxy | None = None
        self._removals = Removals()
        private = {*(path.resolve() for path in hidden), self._cache, _TEMPLATES.resolve()}
        below_usr = tuple(path for path in private if path.is_dir() and Path("/usr") in path.parents)
        self.memory = machine = memory_of_session()
        reasons: list[str] = []
        ways = ((False, True) if os.getuid() == 0 else (True,)) if rootless is None else (rootless,)
        # Root needs no user namespace and can then write the host's /usr through the overlay; where it may not mount
        # (in a container), it does as other users do. A tmpfs serves where the cache lies on an overlay file system.
        for parent in leftovers.state_parents():
            for without_root in ways:
                state = self._claim_state(parent)
                self._settings = SandboxSettings(
                    bwrap=bwrap,
                    rootless=without_root,
                    state=state,
                    state_lock=self._state_lock,
                    kept=leftovers.kept_snapshots(parent),
                    hidden=below_usr,
                    launcher=self._launcher,
                    launchers=LauncherPool(self._launcher),
                    limits=_fitting(limits, state),
                    machine=machine,
                    proxy=self.egress_proxy,
                )
                try:
                    self._settings = self._with_cgroups(self._settings, not rootless if cgroups is None else cgroups)
                    _probe(self._settings)
                except EnvironmentUnavailable as error:
                    logger.info("no sandbox with its files in %s, rootless=%s: %s", parent, without_root, error)
                    reasons.append(str(error))
                    self._release_state()
                    continue
                self._empty_trash(wait=0)
                tree = self._settings.launchers.tree
                no_cpu = tree is None or not tree.has_cpu
                self.without_effect = (*(("cpus",) if no_cpu else ()), "storage_mb", "storage")
                self.description = _describe(len(images), without_root, self._settings.shortage)
                self._images = SandboxImages(self._settings, self._cache, Builds(failed_builds), self._given)
                logger.info("sandboxes in %s, rootless=%s, cgroups=%s", state, without_root, bool(tree))
                return
        self._launcher.close()
        raise _no_sandbox(reasons[-1])

    @property
    def versions(self) -> Mapping[str, str]:
        """See :class:`~pytest_evocode.environments.engines.Engine`; of the host, what sandboxes are made of."""
        return {
            "bubblewrap": bubblewrap_version(self._settings.bwrap),
            "kernel": os.uname().release,
            "host's system": host_system(),
            **{f"image {image.name}": image.digest for image in self._given.values()},
        }

    def _with_cgroups(self, settings: SandboxSettings, wanted: bool) -> SandboxSettings:
        """Return the settings with cgroups for sandboxes, where this process may make some and move processes there."""
        if not wanted:
            return settings
        memory = settings.limits.memory(None, settings.machine)
        tree = None
        try:
            tree = CgroupTree(settings.state.name, settings.state / leftovers.CGROUPS, memory)
            launchers = LauncherPool(self._launcher, tree)
            launchers.release(launchers.acquire(processes=settings.limits.processes, memory=memory, cpus=None))
        except (OSError, EnvironmentFault) as error:
            logger.info("sandboxes are not in cgroups: %s", error)
            if tree is not None:
                tree.remove()
            return settings
        return replace(settings, launchers=launchers)

    def _claim_state(self, parent: Path) -> Path:
        """Throw away what dead sessions left, and return a new directory, locked while this process lives."""
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with leftovers.claim(parent):
            state = Path(tempfile.mkdtemp(dir=parent))
            self._state_lock = try_lock(state / leftovers.LOCK)
            for other in parent.iterdir():
                if other != state and other.is_dir():
                    self._removals.attempt(f"sandbox files {other}", partial(leftovers.throw_away_state, other))
        for layer in leftover_snapshots(leftovers.kept_snapshots(parent)):
            self._removals.attempt(f"sandbox files {layer}", partial(leftovers.throw_away, parent, layer))
        return state

    def _release_state(self) -> None:
        self._settings.launchers.close()
        state = self._settings.state
        with leftovers.claim(state.parent):
            if self._state_lock is not None:
                self._state_lock.release()
                self._state_lock = None
            self._removals.attempt(f"sandbox files {state}", partial(leftovers.throw_away_state, state))
        self._removals.wait_again()
        self._empty_trash()

    def _empty_trash(self, wait: float | None = None) -> None:
        trash = leftovers.trash(self._settings.state.parent)
        empty = partial(leftovers.empty_trash, self._launcher, trash)
        self._removals.background(partial(self._removals.attempt, f"sandbox files {trash}", empty), wait=wait)

    @property
    def left_behind(self) -> Sequence[str]:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return sorted(self._removals.left)

    def create(
        self,
        task: Task,
        *,
        env: Mapping[str, str],
        network: Network | None,
        snapshot: Snapshot | None = None,
        installation: Installation | None = None,
    ) -> SandboxEnvironment:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        image = self._images.ensure(task, installation)
        config = image.config
        assert snapshot is None or isinstance(snapshot, SandboxSnapshot)
        environment = SandboxEnvironment(
            self._settings,
            image.layers,
            workdir=task.config.environment.workdir or config.workdir,
            user=config.user,
            env={**config.env, **env},
            network=network,
            # Copied and not used as a layer below, or later snapshots would depend on this one.
            fill=None if snapshot is None else snapshot.copy_into,
            cpus=task.config.environment.cpus,
            memory_mb=task.config.environment.memory_mb,
        )
        environment.entry_point = EntryPoint(config.entry_point, config.workdir) if config.entry_point else None
        environment.healthcheck = config.healthcheck
        with self._lock:
            self._running.add(environment)
        return environment

    def egress_proxy(self) -> EgressProxy:
        """Return the proxy of all sandboxes with an allowlist, which is made when it is first needed."""
        from pytest_evocode.environments.egress.proxy import EgressProxy

        with self._lock:
            self._proxy = self._proxy or EgressProxy()
            return self._proxy

    def find_snapshot(self, reference: str) -> SandboxSnapshot | None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return SandboxSnapshot.find(self._launcher, self._settings.kept / reference) if reference else None

    def export_snapshot(self, snapshot: Snapshot, known: Collection[str], target: Path) -> list[ExportedLayer]:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        assert isinstance(snapshot, SandboxSnapshot)
        name = f"{snapshot.reference} {self._way}"
        path = None if name in known else target / "layer.tar"
        if path is not None:
            pack_layer(self._launcher, snapshot.layer, path)
        return [ExportedLayer(name, path)]

    def import_snapshot(
        self,
        task: Task,
        installation: Installation | None,
        reference: str,
        layers: Sequence[ExportedLayer],
        keep_for: Path,
    ) -> None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        self._images.ensure(task, installation)
        (layer,) = layers
        assert layer.archive is not None
        way = layer.name.partition(" ")[2]
        if way != self._way:
            raise EnvironmentFault(
                f"the attempt was begun in a sandbox {way}, and sandboxes here are made {self._way}; continue it on "
                "such a machine"
            )
        unpack_layer(self._launcher, layer.archive, self._settings.kept / reference, keep_for)

    @property
    def _way(self) -> str:
        """How layers note owners and deleted directories."""
        return "without root" if self._settings.rootless else "by root"

    @property
    def storage(self) -> Path:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return cache_directory()

    @property
    def image_tags(self) -> frozenset[str]:
        """See :class:`~pytest_evocode.environments.engines.Engine`; here images have no names."""
        return frozenset()

    def image_key(self, task: Task) -> str:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return self._images.ensure(task).key

    def build_seconds(self, task: Task) -> float | None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return self._images.ensure(task).seconds

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return self._images.build(task, installation, wish)[1]

    def image_size(self, task: Task, installation: Installation | None) -> int:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return self._images.size(task, installation)

    def keep_reference_state(self, key: str, snapshot: Snapshot) -> int:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        assert isinstance(snapshot, SandboxSnapshot)
        if self._settings.shortage:
            raise EnvironmentFault("there is no room for states that outlive their attempts")
        return keep_copy(snapshot, self._references / key)

    def find_reference_state(self, key: str) -> SandboxSnapshot | None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        return SandboxSnapshot.find(self._launcher, self._references / key)

    def drop_reference_state(self, key: str) -> None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        remove_tree(self._launcher, self._references / key)

    @property
    def _references(self) -> Path:
        return leftovers.reference_states(self._settings.state.parent)

    def close(self) -> None:
        """See :class:`~pytest_evocode.environments.engines.Engine`."""
        with self._lock:
            running = list(self._running)
        for environment in running:
            environment.stop()
        if self._proxy is not None:
            self._proxy.close()
        if self._state_lock is not None:
            self._release_state()
        self._launcher.close()


def _no_sandbox(why: str) -> EnvironmentUnavailable:
    """Return the error for a machine on which none can be made, with what a container needs where this is one.

    Args:
        why: Why the last way failed, which needs least of the machine; for the others that is in the log.
    """
    message = f"bubblewrap cannot make a sandbox here: {why.rstrip('.')}"
    if any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))):
        options = " ".join(f"--security-opt {what}=unconfined" for what in ("seccomp", "apparmor", "systempaths"))
        message += f". This is a container, which for sandboxes has to be started with {options}"
    return EnvironmentUnavailable(message)


def _fitting(limits: ResourceLimits, state: Path) -> ResourceLimits:
    """Return limits that leave room for sandboxes on a small file system, such as a container's ``/dev/shm``."""
    room = shutil.disk_usage(state).total
    return replace(limits, free_disk=min(limits.free_disk, room // 8)) if room < _SMALL_DISK else limits


def _describe(given: int, rootless: bool, shortage: str) -> str:
    """Return what sandboxes are made of, for the header."""
    images = {0: "", 1: "1 image is given, and "}.get(given, f"{given} images are given, and ")
    which = "every other" if given else "every"
    one_user = "; without root all users are one" if rootless else ""
    in_short = f"; {shortage}" if shortage else ""
    return f"{images}the host's {host_system()} stands in for {which} FROM image{one_user}{in_short}"


def memory_of_session() -> int:
    """Return the bytes of memory of the machine, or of what the cgroup of this process allows."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *memory_limits()])


def _probe(settings: SandboxSettings) -> None:
    """Start and stop one sandbox, to see whether that works here.

    Raises:
        EnvironmentUnavailable: It does not work; the message is bubblewrap's.
    """
    with tempfile.TemporaryDirectory(dir=settings.state) as scratch:
        base = Path(scratch, "base")
        lay_least(base)
        environment = SandboxEnvironment(settings, [base], workdir="/", user="0", env={}, network=None)
        try:
            environment.start()
            result = environment.exec(["true"], timeout=10)
        except EnvironmentFault as error:
            raise EnvironmentUnavailable(re.sub(r"^bubblewrap did not start a sandbox: ", "", str(error))) from None
        finally:
            environment.stop()
    if not result.ok:
        raise EnvironmentUnavailable(f"a probe in the sandbox failed: {result.output.strip()}")


def enter_kept_sandbox(directory: Path, terminal: int) -> int:
    """Run the command that a sandbox was kept for on a terminal, and return its exit code; changes to files stay.

    Raises:
        UsageError: There is no kept sandbox in the directory, or somebody else is in it.
        EnvironmentFault: It does not start.
    """
    directory = directory.resolve()
    kept, layers = read_kept(directory)
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
            hidden=kept.hidden,
            launcher=launcher,
            launchers=LauncherPool(launcher),
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
            return environment.interact(Command(kept.argv), terminal)
        finally:
            environment.stop()
            lock.release()
