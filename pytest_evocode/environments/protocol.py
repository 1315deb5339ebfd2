"""What an environment and an engine can do, as protocols; every implementation passes one test suite.

:class:`Environment` and :class:`Engine` are what an attempt needs. What only some features need is in protocols that an
implementation may leave out: :class:`InteractiveEnvironment`, :class:`GuardedEnvironment` and
:class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`.
:class:`~pytest_evocode.environments.command_environment.CommandEnvironment` is a base class with the part of ``exec``
that is the same everywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from pytest_evocode.environments.archive import Source
from pytest_evocode.environments.egress import EgressGate
from pytest_evocode.errors import UnreadableFile
from pytest_evocode.tasks import Network, Task

User = str | int

#: What :meth:`Environment.read_files` finds at a path: contents, a refusal, or nothing.
FileContents = bytes | UnreadableFile | None


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended."""

    exit_code: int | None
    """The shell's, 128 + n for signal n; None when the command was killed at its deadline."""
    output: str
    """Stdout and stderr as they came, decoded as UTF-8 with replacement characters.

    Of more than 16 MiB the first and the last 8 MiB are kept, and a line between them says how much was left out.
    """
    timed_out: bool
    seconds: float
    """Wall-clock time."""

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself with exit code 0."""
        return self.exit_code == 0

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the output, for messages, each cut after its first 2000 characters."""
        return "\n".join(line[:2000] for line in self.output.rstrip().splitlines()[-lines:])


@dataclass(frozen=True, slots=True)
class Installation:
    """Software that an agent needs on top of a task's image; installed once per content of image and script."""

    name: str
    """What is installed, for messages."""
    script: str
    """Run by ``bash -c`` as root, with a network and, in the usual variables, the machine's proxies and certificates.

    ``$EVOCODE_ENGINE`` is the engine's name, ``docker`` or ``sandbox``. In a sandbox the system is the host's.
    """
    ca: Path | None = None
    """File of certificates to trust while the script runs, beside those that this machine's variables name."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with the arguments of :meth:`Environment.exec`."""

    argv: tuple[str, ...]
    user: User | None = None
    """A name or uid; None for the image's user."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables in addition to those of the image and the task."""
    cwd: str | None = None
    """None for the environment's working directory."""
    input: bytes = b""
    """Its stdin, where it is run by :meth:`Environment.exec`."""


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Limits of one environment where its task sets none, the same for Docker and the sandbox."""

    processes: int = 4096
    """Processes and threads at once: far more than builds need, far fewer than a host has."""
    memory_share: float = 0.75
    """Of the machine's memory for an environment whose task has no ``memory_mb``; the rest is the session's."""
    free_disk: int = 2**30
    """Bytes to be left free on the file system that holds the sandboxes' files."""

    def memory(self, memory_mb: int | None, machine: int) -> int:
        """Return how many bytes of memory an environment may use on a machine with ``machine`` bytes.

        >>> ResourceLimits().memory(None, 8 * 2**30) == 6 * 2**30
        True
        >>> ResourceLimits().memory(512, 8 * 2**30) == 512 * 2**20
        True
        """
        return int(machine * self.memory_share) if memory_mb is None else memory_mb * 2**20


def require_readable(found: FileContents) -> bytes | None:
    """Return the contents of a file that was read, None where there is no such file.

    Raises:
        UnreadableFile: The file was refused.
    """
    if isinstance(found, UnreadableFile):
        raise found
    return found


def read_environment_file(environment: Environment, path: str, limit: int) -> bytes | None:
    """Return the contents of a file of at most ``limit`` bytes, None where there is no such file.

    Raises:
        UnreadableFile: There is something else, such as a symlink or a larger file.
    """
    return require_readable(environment.read_files({path: limit})[path])


@dataclass(frozen=True, slots=True)
class BuildWish:
    """How a build is asked for."""

    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the build is not wanted any more: it is ended, and whoever waits for it gets Cancelled."""
    ahead: bool = False
    """Whether nobody waits for the image yet: then the build waits while too many others run on this machine."""


@dataclass(frozen=True, slots=True)
class ExportedLayer:
    """A layer of a snapshot over the task's image."""

    name: str
    """Says what is in it, to this engine: layers of the same name are the same."""
    archive: Path | None
    """A tar of it, with deleted files as the engine notes them; None where it was not asked for."""


class Snapshot(Protocol):
    """The file system of an environment at a moment."""

    @property
    def reference(self) -> str:
        """The name by which :meth:`Engine.find_snapshot` of a later session finds it; empty if none can."""

    def changed_paths(self, outside: Sequence[str] = ()) -> list[str]:
        """Return all absolute paths at which the file system differs from the task's image, in order.

        They are those of files made, changed and deleted, and of directories deleted, made empty, or given another mode
        or owner; not of those in which files only came and went.

        Args:
            outside: Directories in which nothing is looked at; ``/`` has no effect.
        """

    def discard(self) -> None:
        """Free the disk space of the snapshot; forks made from it must have stopped."""


class Environment(Protocol):
    """One container or sandbox.

    All methods may be called from any thread. Each raises :class:`~pytest_evocode.errors.EnvironmentFault` when the
    engine fails or the environment is gone; what commands inside do is never an exception.
    """

    workdir: str
    """Absolute path of the directory that commands start in."""

    def start(self) -> None:
        """Make the environment ready for commands, with empty directories ``/logs/agent`` and ``/logs/artifacts``."""

    def exec(
        self,
        command: str | Sequence[str],
        *,
        user: User | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
        stdout: BinaryIO | None = None,
    ) -> ExecResult:
        """Run a command and wait for it to end.

        A command that ends by itself leaves its background processes running. One that cannot be started is a failing
        result whose output says why, with exit code 127 where there is no such program and 126 where there is no such
        user or directory or no permission, because an agent may have removed any of them.

        Args:
            command: An argv, or a script for ``bash -c`` of any length given as one string.
            user: A name or uid; by default the image's user.
            env: Variables in addition to those of the image and the task.
            cwd: The directory to start in, by default :attr:`workdir`.
            timeout: Seconds after which *every* process but PID 1 is killed, so that nothing that the command started
                in the background survives its deadline; None for no limit.
            stdout: A file that gets the whole output, byte for byte, however long it is.
        """

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool = False) -> None:
        """Copy the contents of directories of the host into a directory, which is made when missing.

        Files belong to root and keep their mode. Directories that exist keep owner and mode, and symlinks to
        directories are followed; whatever else stands where a file or directory is to be is replaced.

        Args:
            sources: Directories of the host, of which later ones win. A pair of a directory and a relative path puts
                its contents there below ``target``.
            target: Absolute path of a directory.
            writable: Let every user write the files and the directories they are in.
        """

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """Copy a file or directory tree to the host, to be ``target`` there.

        Only regular files and directories are copied. A missing ``source`` and an empty directory copy nothing.

        Args:
            source: Absolute path in the environment.
            target: The path of the copy on the host.
            exclude: ``fnmatch`` patterns for names and for paths relative to ``source``.

        Returns:
            What was left out for another reason than ``exclude``, each with the reason.
        """

    def read_files(self, limits: Mapping[str, int]) -> dict[str, FileContents]:
        """Read several regular files, given as their paths with the size limit of each in bytes.

        Returns:
            For each path the contents, None where there is no such file, or
            :class:`~pytest_evocode.errors.UnreadableFile` with the reason for anything else: a symlink, which is not
            followed, a directory, a FIFO, a file above its limit.
        """

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files and directory trees, and check that they are gone."""

    def make_directories(self, paths: Sequence[str]) -> None:
        """Make directories that every user can write; what is no directory at or above a path is replaced."""

    def kill_processes(self) -> None:
        """Kill every process but PID 1."""

    def snapshot(self, *, keep_for: Path | None = None) -> Snapshot:
        """Record the file system, with all processes paused meanwhile.

        Args:
            keep_for: The directory of an attempt. The snapshot then outlives the session for as long as the attempt's
                files mention its reference.
        """

    def fork(
        self,
        snapshot: Snapshot,
        *,
        network: Network | None,
        only: Sequence[str] | None = None,
        exact: Sequence[str] = (),
    ) -> Environment:
        """Return a new environment, not started, with a snapshot's files and none of its processes.

        Args:
            snapshot: Taken of this environment.
            network: As in ``task.toml``; None for the engine's default.
            only: Absolute paths of files and directories. The fork then has the files of the image as it was built,
                and in place of what the image has at these paths, what the snapshot has there: regular files,
                directories, and the links in them as they are, with the owners' numbers. Set-id bits, file
                capabilities, devices, FIFOs and sockets are left out. Links that lead to a path are followed as the
                image has them; where the snapshot has something else than a file or directory at a path or above it,
                the fork has nothing. None for all files of the snapshot as they are.
            exact: With ``only``, absolute paths in which no link is followed, as :meth:`Snapshot.changed_paths` lists
                them. The fork has what the snapshot has there as well, each path by itself: a regular file, a link as
                it is, a directory without what is in it, or nothing, as after a deletion. What is left out of trees is
                left out here, too. Directories above them that the image lacks are those of the snapshot. What is in a
                VOLUME of the image comes with ``only``; in Docker it is no change that a snapshot lists.
        """

    def stop(self) -> None:
        """Kill everything and remove every trace, without a grace period; a second call does nothing."""


@runtime_checkable
class InteractiveEnvironment(Environment, Protocol):
    """An environment that a person can enter, with ``--evocode-shell``, ``--pdb`` and ``--evocode-keep``."""

    def interact(self, command: Command, terminal: int) -> int:
        """Run a command on a terminal until it ends, and return its exit code (128 + n for signal n).

        The command gets a terminal of its own, of the same size and with job control, and what is typed and printed is
        passed on between the two: every key is the command's, and nothing inside ever holds the person's terminal. When
        that is closed, every process but PID 1 is killed.

        Args:
            command: What to run.
            terminal: An open file descriptor of the person's terminal.
        """

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """Kill everything and leave the files on the machine until somebody runs ``evocode clean --kept``.

        For this session the environment has been stopped.

        Args:
            name: The beginning of the name of what is left; letters, digits, ``._-``.
            command: What the returned command line runs.
            conceal: Takes secrets out of the values of variables before they are written down.

        Returns:
            A command line that runs ``command`` there on the terminal it is typed at. Changes made that way stay.
        """


@runtime_checkable
class GuardedEnvironment(Environment, Protocol):
    """An environment that may have one way to the network, through a proxy that asks a gate each time."""

    @property
    def egress(self) -> EgressGate | None:
        """The gate of an environment made with an :class:`~pytest_evocode.tasks.Allowlist`; None for any other."""


class Engine(Protocol):
    """A maker of environments of one kind."""

    name: str
    """``docker`` or ``sandbox``."""

    description: str
    """What the engine is on this machine, for the header."""

    memory: int
    """Bytes of the machine that environments run on, which they share."""

    without_effect: tuple[str, ...]
    """Keys below ``[environment]`` of ``task.toml`` that have no effect here."""

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of what the engine is made of, by name, for the record of a run."""

    def create(
        self,
        task: Task,
        *,
        env: Mapping[str, str],
        network: Network | None,
        snapshot: Snapshot | None = None,
        installation: Installation | None = None,
    ) -> Environment:
        """Return a new environment of a task, not started; its image is built first unless one of its content exists.

        Args:
            task: The task.
            env: The task's variables, with everything resolved.
            network: As in ``task.toml``; None for the engine's default.
            snapshot: Its files are there in place of the image's; taken of an environment of the same task and
                installation.
            installation: Software to be on top of the image.

        Raises:
            BuildError: The image or the installation cannot be built; the message has the last lines of the build.
        """

    def find_snapshot(self, reference: str) -> Snapshot | None:
        """Return a snapshot that this session or an earlier one has kept, None where it is gone."""

    def image_key(self, task: Task) -> str:
        """Return a key of the contents of the task's image, which is built first when there is none.

        Raises:
            BuildError: It cannot be built.
        """

    def build_seconds(self, task: Task) -> float | None:
        """Return how long it took to build the task's image, which is built first when there is none.

        None is for a task that names a finished image.

        Raises:
            BuildError: It cannot be built.
        """

    def export_snapshot(self, snapshot: Snapshot, known: Collection[str], target: Path) -> list[ExportedLayer]:
        """Write what a snapshot has on top of its image to files, and return the layers, the lowest first.

        Args:
            snapshot: One that has a reference and is made.
            known: Names of layers that are not wanted, because somebody has them.
            target: An empty directory for the files.

        Raises:
            EnvironmentFault: The engine failed, or the snapshot is gone.
        """

    def import_snapshot(
        self,
        task: Task,
        installation: Installation | None,
        reference: str,
        layers: Sequence[ExportedLayer],
        keep_for: Path,
    ) -> None:
        """Have :meth:`find_snapshot` find a snapshot that another machine exported.

        Args:
            task: The task, whose image is built first unless one of its content exists.
            installation: What is on top of the image.
            reference: The snapshot's, on both machines.
            layers: What was exported, the lowest layer first, all with their archives.
            keep_for: As for :meth:`Environment.snapshot`.

        Raises:
            BuildError: The image cannot be built.
            EnvironmentFault: The engine failed.
        """

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
        """Build what :meth:`create` starts from, unless it is there; return whether it was built now.

        Raises:
            BuildError: It cannot be built; the message has the last lines of the build.
            Cancelled: It is not wanted any more.
        """

    def image_size(self, task: Task, installation: Installation | None) -> int:
        """Return the bytes of an image, which is built first when there is none; raises BuildError.

        In Docker all that it is built on counts; in a sandbox, where that is the host's system, it does not.
        """

    def keep_reference_state(self, key: str, snapshot: Snapshot) -> int:
        """Keep a copy of a snapshot beyond the session under a name, and return how many bytes it takes."""

    def find_reference_state(self, key: str) -> Snapshot | None:
        """Return the copy of that name, for :meth:`create`; None where there is none."""

    def drop_reference_state(self, key: str) -> None:
        """Remove the copy of that name, if there is one."""

    def close(self) -> None:
        """Stop every environment that still runs, and remove what no attempt needs any more."""

    @property
    def left_behind(self) -> Sequence[str]:
        """What could not be removed so far, of this session and of dead ones."""
