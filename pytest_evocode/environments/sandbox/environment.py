"""One sandbox as an environment: bubblewrap namespaces over layers of files, entered through the launcher."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from pytest_evocode.environments.archive import Source, lay_over, pack, unpack
from pytest_evocode.environments.programs import Command, FileStatus, User
from pytest_evocode.environments.protocol import Environment, FileContents, Snapshot
from pytest_evocode.environments.sandbox.bubblewrap import Layers, SandboxSettings, host_below
from pytest_evocode.environments.sandbox.launcher_client import feed, receive
from pytest_evocode.environments.sandbox.leftovers import KeptSandbox, enter_line, keep_files
from pytest_evocode.environments.sandbox.programs import SandboxPrograms
from pytest_evocode.environments.sandbox.snapshots import SandboxSnapshot, copy_top_layer, remove_tree
from pytest_evocode.environments.tree_archives import (
    CHUNK,
    END,
    DirectoryAbove,
    filter_tar,
)
from pytest_evocode.errors import EnvironmentFault, SnapshotGone, UnreadableFile
from pytest_evocode.tasks import Network

logger = logging.getLogger(__name__)

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FILES = 120.0  # seconds that reading or writing files may take


class SandboxEnvironment(SandboxPrograms):
    """An :class:`~pytest_evocode.environments.protocol.Environment` that needs neither Docker nor root."""

    _start_failures = re.compile(r"\[Errno \d+\] |no user 'root'|bash: error while loading shared ")

    def __init__(
        self,
        settings: SandboxSettings,
        below: Sequence[Path],
        *,
        workdir: str,
        user: User,
        env: Mapping[str, str],
        network: Network | None,
        fill: Callable[[Path], object] | None = None,
        cpus: float | None = None,
        memory_mb: int | None = None,
        top: Path | None = None,
        is_build: bool = False,
    ) -> None:
        """Make a sandbox, not started.

        Args:
            settings: What all sandboxes of the session share.
            below: The layers of its image and snapshot, the lowest first.
            workdir: The directory that commands start in.
            user: The user of commands that name none.
            env: The variables of image and task.
            network: As in ``task.toml``; None for none.
            fill: Puts files into the top layer, which is empty, before it starts.
            cpus: How many CPUs it may use, None for all.
            memory_mb: MiB of memory that it may use, None for the session's default.
            top: The top layer of an earlier sandbox, to continue with and to leave behind again.
            is_build: An image is made in it, so that files may be given to users who are not there.
        """
        layers = Layers(tuple(below), top or settings.state / f"sandbox-{uuid.uuid4().hex[:12]}")
        super().__init__(settings, layers, network, cpus, memory_mb)
        self.workdir = workdir
        self._user = user
        # An image that has a system of its own says what it is to have, as in Docker.
        self._env = {"PATH": PATH, **({"LANG": "C.UTF-8"} if host_below(below) else {}), **env}
        self._fill = fill
        self._stays = top is not None
        self._pretends_owners = is_build and settings.rootless
        if is_build:  # In which bash may be installed.
            self._first_shell = "sh"

    def start(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        for name in ("root", "root-work", "usr", "usr-work"):
            (self.layers.top / name).mkdir(parents=True, exist_ok=self._stays)
            if not self._stays:
                (self.layers.top / name).chmod(0o755)  # Whatever the session's umask is.
        try:
            if self._fill is not None:
                self._fill(self.layers.top)
            self._launcher = self._settings.launchers.acquire(
                processes=self._settings.limits.processes, memory=self._memory, cpus=self._cpus
            )
            self._notes.open(self._launcher.cgroup)
            self._pidfd = self._launch()
            logger.debug("started a sandbox with its files in %s", self.layers.top)
        except EnvironmentFault:
            self._release_launcher()
            if not self._stays:
                self._remove_files()
            raise
        self._serve_proxy()
        self.make_directories(["/logs/agent", "/logs/artifacts"])

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.put(lay_over(sources), target, writable=writable)

    def put(self, members: Mapping[str, Path], target: str, *, writable: bool = False) -> None:
        """Do as :meth:`upload` with files and directories of the host, by their paths in the target."""
        self._unpack(lambda stream: pack(members, target, stream, writable=writable), writable=writable)

    def _unpack(self, write: Callable[[BinaryIO], object], *, writable: bool = False) -> None:
        """Have a worker unpack a tar, which is written into a pipe; with ``writable``, open its directories to all."""
        feed(lambda pipe: self._begin("unpack", [pipe], writable=writable), write)

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        with self._packed(source) as stream:
            return unpack(stream, target, exclude=exclude)

    @contextlib.contextmanager
    def _packed(self, path: str) -> Iterator[BinaryIO]:
        """Have a worker pack a file or a tree, and yield the tar, which need not be read to its end."""
        read, write = os.pipe()
        with os.fdopen(read, "rb") as stream:
            try:
                reply = self._begin("pack", [write], path=path)
            finally:
                os.close(write)
            with reply:
                yield stream
                if not stream.read(1):
                    receive(reply)

    def read_files(self, limits: Mapping[str, int]) -> dict[str, FileContents]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        found: dict[str, FileContents] = {}
        with open(os.memfd_create("contents"), "w+b") as contents:
            answer = self._ask("read", [contents.fileno()], files=list(limits.items()))
            contents.seek(0)
            for path, file in zip(limits, answer["files"], strict=True):
                if isinstance(file, str):
                    found[path] = UnreadableFile(f"{path} is {file}")
                else:
                    found[path] = None if file is None else contents.read(file)
        return found

    def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        left = self._ask("remove", paths=list(paths))["left"]
        if left:
            raise EnvironmentFault(f"could not be removed from the sandbox: {', '.join(left)}")

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._ask("make_directories", paths=list(paths))

    def write_files(self, directory: str, files: Mapping[str, bytes], *, user: User | None = None) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        for path in files:
            if {"", ".", ".."} & {*path.split("/")} or not directory.startswith("/"):
                raise ValueError(f"no path of a file to be written: {path!r} below {directory!r}")
        with open(os.memfd_create("contents"), "w+b", buffering=0) as contents:
            contents.writelines(files.values())
            answer = self._ask(
                "write",
                [contents.fileno()],
                timeout=_FILES,
                directory=directory,
                files=[(path, len(content)) for path, content in files.items()],
                user=self._user if user is None else user,
            )
        if "errno" in answer:
            raise OSError(answer["errno"], answer["why"], answer["path"])

    def file_status(self, path: str) -> FileStatus | None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        answer = self._ask("status", timeout=_FILES, path=path)
        return FileStatus(**answer["status"]) if answer else None

    def list_directory(self, path: str, limit: int = 100_000) -> list[str]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        answer = self._ask("list", timeout=_FILES, path=path, limit=limit)
        if "missing" in answer:
            raise NotADirectoryError(f"there is no directory at {path}")
        if "more" in answer:
            raise OverflowError(f"{path} has more than {limit} names")
        return sorted(answer["names"])

    def pack_trees(self, paths: Sequence[str], archive: BinaryIO, *, files: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        for path in paths:
            if self._kind(path) not in (("directory", "file") if files else ("directory",)):
                continue
            with self._packed(path) as stream:
                archive.writelines(filter_tar(stream, posixpath.dirname(path)))
        archive.write(END)

    def put_trees(self, paths: Sequence[str], above: Sequence[DirectoryAbove], archive: BinaryIO) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.remove([each.path for each in above if self._kind(each.path) == "link"])
        self.remove(paths)

        def write(stream: BinaryIO) -> None:
            stream.writelines(directory.entry() for directory in above)
            shutil.copyfileobj(archive, stream, CHUNK)

        self._unpack(write)

    def _kind(self, path: str) -> object:
        """Return what stands at a path, a link not followed; None where there is nothing."""
        return self._ask("status", path=path).get("status", {}).get("kind")

    def snapshot(self, *, keep_for: Path | None = None) -> Snapshot:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        directory = self._settings.state if keep_for is None else self._settings.kept
        snapshot = copy_top_layer(self._settings.launcher, directory, keep_for, self._run_stopped, self.layers)
        logger.debug("copied the files of the sandbox in %s to %s", self.layers.top, snapshot.layer)
        return snapshot

    def fork(
        self,
        snapshot: Snapshot,
        *,
        network: Network | None,
        only: Sequence[str] | None = None,
        exact: Sequence[str] = (),
    ) -> Environment:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        assert isinstance(snapshot, SandboxSnapshot)
        if not snapshot.layer.is_dir():
            raise SnapshotGone(f"the snapshot {snapshot.layer} is gone")
        image = self.layers.below
        fork = SandboxEnvironment(
            self._settings,
            [*image, snapshot.layer] if only is None else image,
            workdir=self.workdir,
            user=self._user,
            env=self._env,
            network=network,
            fill=None if only is None else partial(snapshot.carry_into, image, list(only), list(exact)),
            cpus=self._cpus,
            memory_mb=self._memory_mb,
        )
        fork.entry_point, fork.healthcheck = self.entry_point, self.healthcheck
        return fork

    def _as_built(self) -> Environment:
        """Return a sandbox with the system that is below the image, and nothing else."""
        below = self.layers.below[:1]
        return SandboxEnvironment(self._settings, below, workdir="/", user="0", env={}, network=None)

    def stop(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.end(keep_files=self._stays)

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        if self._pidfd < 0:
            raise EnvironmentFault("the sandbox is not running")
        self.end(keep_files=True)
        sandbox = KeptSandbox(
            rootless=self._settings.rootless,
            public_network=self._shares_network,
            memory_mb=self._memory_mb,
            user=self._user if command.user is None else command.user,
            env={name: conceal(value) for name, value in {**self._env, **command.env}.items()},
            cwd=command.cwd or self.workdir,
            argv=command.argv,
        )
        line = enter_line(keep_files(self._settings, self.layers, name, sandbox))
        self._remove_files()
        return line

    def end(self, *, keep_files: bool) -> None:
        """Stop, and leave the top layer behind if ``keep_files``, for an image to be made of it."""
        if self._end() and not keep_files:
            self._remove_files()

    def _remove_files(self) -> None:
        with contextlib.suppress(EnvironmentFault):  # They go with the session's directory.
            remove_tree(self._settings.launcher, self.layers.top)
