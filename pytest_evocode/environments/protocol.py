"""What an environment can do: one contract, which the test suite of environments holds every implementation to.

All that comes out of an environment is data that an agent's program may have made; nothing here parses it, and all of
it is bounded. :class:`~pytest_evocode.environments.command_environment.CommandEnvironment` is a base class with the
part of ``exec`` that is the same everywhere.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from pytest_evocode.environments.archive import Source
from pytest_evocode.environments.egress import EgressGate
from pytest_evocode.environments.entry_points import EnteredProgram, EntryPoint
from pytest_evocode.environments.programs import (
    Command,
    ExecResult,
    FileStatus,
    Program,
    ProgramResult,
    TakeOutput,
    User,
)
from pytest_evocode.environments.tree_archives import DirectoryAbove
from pytest_evocode.errors import EnvironmentFault, UnreadableFile
from pytest_evocode.results.records import DeniedConnection
from pytest_evocode.tasks import Healthcheck, Network
from pytest_evocode.tasks.compose_file import MAIN

#: What :meth:`Environment.read_files` finds at a path: contents, a refusal, or nothing.
FileContents = bytes | UnreadableFile | None


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


def _lacking(what: str) -> EnvironmentFault:
    return EnvironmentFault(f"this kind of environment has no {what}")


class Files(Protocol):
    """The files of an environment, or of one of its services."""

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

    def pack_trees(self, paths: Sequence[str], archive: BinaryIO, *, files: bool = False) -> None:
        """Write directories to a tar, each entry named by its absolute path without the first slash.

        It has directories, regular files, and symbolic and hard links, with the numbers of owners, modes and times.
        What is no directory, or not there, is passed over; with ``files`` a path may be a regular file, too.
        """
        raise _lacking("archives of trees")

    def file_status(self, path: str) -> FileStatus | None:
        """Return what stands at an absolute path, None where there is nothing; a link there is not followed."""
        raise _lacking("look at single files")


class Environment(Files, Protocol):
    """One container or sandbox.

    All methods may be called from any thread. Each raises :class:`~pytest_evocode.errors.EnvironmentFault` when the
    engine fails or the environment is gone; what commands inside do is never an exception.

    An implementation inherits from it and has to have what an attempt needs, up to :meth:`stop`. What follows is what
    only some features need: what it lacks of that is an EnvironmentFault where somebody asks for it.
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

    # The network, and what an image starts by itself.

    egress: EgressGate | None = None
    """The gate of an environment made with an :class:`~pytest_evocode.tasks.Allowlist`, through whose proxy the one way
    to the network is; None for any other."""

    entry_point: EntryPoint | None = None
    """The ENTRYPOINT of the image; None where it has none."""

    healthcheck: Healthcheck | None = None
    """The HEALTHCHECK of the image, which no engine runs by itself; None where it has none."""

    entered: EnteredProgram | None = None
    """The ENTRYPOINT that was started here, running or not."""

    def allow_network(self, network: Network | None) -> None:
        """Let it reach from now on what a phase may; an environment without a gate has its network for good."""
        if self.egress is not None:
            self.egress.allow(network)

    def take_denied(self, phase: Literal["agent", "verifier"]) -> tuple[DeniedConnection, ...] | None:
        """Return what it was denied since the last call; None where it has no gate."""
        return None if self.egress is None else self.egress.take_denied(phase)

    def enter(self, *, killed: bool = False) -> EnteredProgram | None:
        """Start the image's ENTRYPOINT unless that was done, and return it; None where the image has none.

        From then on it is started again when a command's deadline has killed it. What it starts counts as a program
        that is opened: :meth:`run_program` spares it.

        Args:
            killed: Every process has just been killed, so it is started again if it was started before.
        """
        return None

    def entry_point_settled(self) -> None:
        """Take all that runs now for what the ENTRYPOINT has started, also what has left its session."""
        return None

    def mendable(self) -> AbstractContextManager[None]:
        """Bring a shell meanwhile for commands that cannot be started, and begin in ``/`` where the workdir is gone.

        A command that names a directory begins there or not at all. An environment that is started meanwhile, from what
        an agent left, needs no bash of the agent's.
        """
        return contextlib.nullcontext()

    def serve(self, path: Path) -> AbstractContextManager[str]:
        """Let programs inside reach the HTTP server behind a Unix socket of this machine while the context lasts.

        They find it on their loopback, whatever network they have, at the URL that the context gives; that is the same
        each time, for a program that goes on running. Out of the context, and for good in forks, nothing is reached.
        """
        raise _lacking("way to a server of the session")

    # The services beside the container in which the agent works: those of a task's compose file.

    def files_of(self, service: str | None) -> Files:
        """Return the files of a service; those of the environment itself for ``main`` and None.

        Raises :class:`~pytest_evocode.errors.EnvironmentFault` where the environment has no such service.
        """
        if service in (None, MAIN):
            return self
        raise EnvironmentFault(f"there is no service {service} here")

    def exec_in(self, service: str, command: str, *, user: User | None = None, timeout: float) -> ExecResult:
        """Run a line for ``sh`` in a service.

        When its time is up, the service is started again, which ends all that runs there.
        """
        raise EnvironmentFault(f"there is no service {service} here")

    def service_states(self) -> Mapping[str, Mapping[str, Any]]:
        """Return how the services are at the moment, by name, as the engine says; nothing where there are none."""
        return {}

    def service_log(self, service: str) -> bytes:
        """Return the last that a service printed."""
        raise EnvironmentFault(f"there is no service {service} here")

    # Trees as they are, for suites that have an environment for themselves.

    def put_trees(self, paths: Sequence[str], above: Sequence[DirectoryAbove], archive: BinaryIO) -> None:
        """Put directories in place of whatever is at their paths, and files in place of what is at theirs.

        Without ``paths`` and ``above`` nothing that runs inside takes part in it, and no entry may be below a link.

        Args:
            paths: The paths, which are empty afterwards but for what the archive has there.
            above: Directories above them, the highest first. They are made where there is something else, such as a
                link that leads elsewhere; one that is there keeps owner and mode.
            archive: A tar as of :meth:`pack_trees`, read to its end; it may have entries elsewhere, but none of a
                directory that exists. Owners that the environment cannot have are left out.
        """
        raise _lacking("trees that are put into it")

    # Programs beside one another, each with its three streams, for suites that run apart.

    def run_program(
        self,
        command: Command,
        *,
        input: bytes = b"",
        timeout: float | None = None,
        limit: int = 2**20,
        alongside: Sequence[Program] = (),
    ) -> ProgramResult:
        """Run a program to its end, or to its timeout, and kill whatever it has started.

        When this returns, no process is alive but PID 1, the programs ``alongside``, other programs that run by this
        method at the same time, programs that were opened meanwhile, and descendants of these. A program that cannot be
        started is a result with exit code 127 or 126 whose stderr says why, as for :meth:`Environment.exec`.

        Args:
            command: What to run.
            input: Its stdin.
            timeout: Seconds until it is killed; None for no limit.
            limit: Bytes kept of each stream: half of its beginning and half of its end.
            alongside: Programs of :meth:`open_program` that live on.
        """
        raise _lacking("programs with their streams apart")

    def open_program(self, command: Command, take: TakeOutput) -> Program:
        """Start a program and return it running; ``take`` gets what it prints.

        One that cannot be started ends with exit code 127 or 126, and stderr says why.
        """
        raise _lacking("programs with their streams apart")

    def end_programs(self, alongside: Sequence[Program] = ()) -> None:
        """Kill every process but PID 1, the programs ``alongside`` and their descendants."""
        raise _lacking("programs with their streams apart")

    def connect(self, port: int, timeout: float) -> socket.socket:
        """Return a stream socket whose other end is connected to a TCP port of the environment's loopback.

        Raises:
            ConnectionRefusedError: Nobody listens there.
            TimeoutError: The connection was not made within ``timeout`` seconds.
        """
        raise _lacking("programs with their streams apart")

    def write_files(self, directory: str, files: Mapping[str, bytes], *, user: User | None = None) -> None:
        """Write files below a directory; missing directories are made, and belong to the user like the files.

        No link is followed below ``directory``: what stands where a file or directory is to be is replaced, unless it
        is a directory where one is to be. ``directory`` itself is made unless it is there; links in its own path count.

        Args:
            directory: Absolute path.
            files: Contents by relative path, without ``..``; an empty mapping makes the directory alone.
            user: The owner, None for the image's user. Files get mode 0644 and directories 0755.

        Raises:
            OSError: One cannot be written: no space, no such user, a name too long.
        """
        raise _lacking("programs with their streams apart")

    def list_directory(self, path: str, limit: int = 100_000) -> list[str]:
        """Return the names in a directory, sorted; at most ``limit``.

        Raises:
            NotADirectoryError: There is no directory at the path; a link to one is none.
            OverflowError: There are more names than ``limit``.
        """
        raise _lacking("programs with their streams apart")

    # A person's way in, with ``--evocode-shell``, ``--pdb`` and ``--evocode-keep``.

    def interact(self, command: Command, terminal: int) -> int:
        """Run a command on a terminal until it ends, and return its exit code (128 + n for signal n).

        The command gets a terminal of its own, of the same size and with job control, and what is typed and printed is
        passed on between the two: every key is the command's, and nothing inside ever holds the person's terminal. When
        that is closed, every process but PID 1 is killed.

        Args:
            command: What to run.
            terminal: An open file descriptor of the person's terminal.
        """
        raise _lacking("terminal")

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
        raise _lacking("way to be kept")


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
