"""The contract between an attempt and the place it lives in; every implementation passes one test suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from pytest_evocode.environments.archive import Source
from pytest_evocode.errors import EnvironmentFault, UnreadableFile
from pytest_evocode.tasks import Network, Task

User = str | int

#: Bytes of a command's output that are kept: this much of its head and as much of its tail.
OUTPUT_LIMIT = 8 * 2**20


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended.

    ``exit_code`` is the shell's (128 + n for signal n) and None when the command was killed at its deadline.
    ``output`` is stdout and stderr as they came, decoded as UTF-8 with replacement characters; of more than
    ``2 * OUTPUT_LIMIT`` bytes the middle is left out and the gap says so. ``seconds`` is wall-clock time.
    """

    exit_code: int | None
    output: str
    timed_out: bool
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself with exit code 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Installation:
    """What is put on top of a task's image: once for each content of the two, whatever the number of attempts."""

    name: str
    """What it installs, for messages."""
    script: str
    """Run by ``bash -c`` as root, with a network.

    ``$EVOCODE_ENGINE`` is ``docker`` or ``sandbox``; in a sandbox the system is the host's, and no package manager can
    add to it. What it prints last is shown when it fails.
    """


@dataclass(frozen=True, slots=True)
class Command:
    """What to run on a terminal, with the arguments of :meth:`Environment.exec`."""

    argv: tuple[str, ...]
    user: User | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None


def found_or_refused(found: bytes | UnreadableFile | None) -> bytes | None:
    """What :meth:`Environment.read` gives or raises for one of :meth:`Environment.read_all`."""
    if isinstance(found, UnreadableFile):
        raise found
    return found


class Snapshot(Protocol):
    """The file system of an environment at a moment."""

    @property
    def reference(self) -> str:
        """What :meth:`Engine.find_snapshot` of a later session knows it by; empty where none can find it."""

    def changed_paths(self, outside: str) -> list[str]:
        """Absolute paths of what is not as in the task's image: files made, changed and deleted, directories emptied.

        Nothing below the directory ``outside`` is looked at.
        """

    def discard(self) -> None:
        """Free what the snapshot takes; forks that run on it must have stopped."""


class Environment(Protocol):
    """One container or sandbox.

    All methods may be called from any thread. They raise :class:`~pytest_evocode.errors.EnvironmentFault` when the
    engine fails or the environment is gone; what the commands inside do is never an exception.
    """

    workdir: str
    """Absolute path that commands start in."""

    def start(self) -> None:
        """Make the environment ready for commands, with empty ``/logs/agent`` and ``/logs/artifacts``."""

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
        """Run an argv, or a script given as one string with ``bash -c``.

        ``user`` is a name or uid (default: the image's), ``env`` is added to the image's and the task's variables,
        ``cwd`` defaults to ``workdir``. After ``timeout`` seconds *every* process but PID 1 is killed, so nothing that
        the command started in the background survives its deadline. A command that ends by itself leaves its
        background processes running. A command that cannot be started is a failing result whose output says why, with
        exit code 127 where there is no such program, 126 where there is no such user or directory or no permission:
        an agent may have removed any of them. All output, byte for byte and however much, goes to ``stdout``, too.
        """

    def interact(self, command: Command, terminal: int) -> int:
        """Run a command on a terminal until it ends, and return its exit code (128 + n for signal n).

        ``terminal`` is an open file descriptor of the person's terminal. The command gets another one, of the same size
        and with job control, and what is typed and printed is passed on between the two: every key is the command's,
        and nothing inside ever holds the person's terminal. When that is closed, everything but PID 1 is killed.
        """

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool = False) -> None:
        """Put the contents of directories, one over the other, into the directory ``target``, made when missing.

        A pair of a directory and a relative path puts its contents there below ``target``.

        Files belong to root and keep their mode; ``writable`` lets every user write them, and the directories they are
        in. Directories that are there already keep owner and mode otherwise, and so do symlinks to directories;
        whatever else stands where a file or directory is to be is replaced.
        """

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """Copy a file or directory tree, to be ``target`` on the host, and return what was left out, with reasons.

        Only regular files and directories come along; a missing ``source`` and an empty directory copy nothing.
        ``exclude`` holds ``fnmatch`` patterns for names and for paths relative to ``source``.
        """

    def read(self, path: str, limit: int) -> bytes | None:
        """The contents of a regular file of at most ``limit`` bytes, None where there is no such file.

        Raises :class:`UnreadableFile` for anything else; a symlink is not followed.
        """

    def read_all(self, limits: Mapping[str, int]) -> dict[str, bytes | UnreadableFile | None]:
        """As :meth:`read` for several files, by their paths and limits; what is refused is returned and not raised."""

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files or trees, and make sure that they are gone."""

    def make_directories(self, paths: Sequence[str]) -> None:
        """Make directories that every user can write."""

    def kill_processes(self) -> None:
        """Kill everything but PID 1."""

    def distrust(self) -> None:
        """Rely from here on nothing that runs inside: an agent has worked here, and a suite is to."""

    def snapshot(self, *, keep_for: Path | None = None) -> Snapshot:
        """Record the file system, with all processes paused meanwhile.

        With ``keep_for``, an attempt's directory, the snapshot outlives the session for as long as the ``state.json``
        there mentions its reference.
        """

    def fork(self, snapshot: Snapshot, *, network: Network | None, fresh: Sequence[str] = ()) -> Environment:
        """A new environment, not started, with the snapshot's files and none of its processes.

        The directories in ``fresh`` are empty in it and writable for every user, whatever the snapshot has there.
        """

    def stop(self) -> None:
        """Kill everything and remove every trace, without a grace period; a second call does nothing."""

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """Kill everything and leave the files, which outlive the session until somebody runs ``evocode clean --kept``.

        Returns the command line that runs ``command`` there on the terminal it is typed at; whatever that changes
        stays, too. ``name`` (letters, digits, ``._-``) begins the name of what is left. The values of variables go
        through ``conceal`` before they are written down. For this session the environment has been stopped.
        """


class Engine(Protocol):
    """Makes environments of one kind."""

    name: str
    """``docker`` or ``sandbox``."""

    description: str
    """What it is on this machine, for the header."""

    without_effect: tuple[str, ...]
    """Keys below ``[environment]`` that tasks may have and that do nothing here."""

    def create(
        self,
        task: Task,
        *,
        env: Mapping[str, str],
        network: Network | None,
        snapshot: Snapshot | None = None,
        installation: Installation | None = None,
    ) -> Environment:
        """An environment of the task, not started; its image is built first when no build of the same content exists.

        It starts with the image's files and what an ``installation`` adds to them, or with those of a ``snapshot`` of
        an environment of the same task and installation. ``env`` holds the task's variables with everything resolved.
        Raises :class:`~pytest_evocode.errors.BuildError` with the build's last lines.
        """

    def find_snapshot(self, reference: str) -> Snapshot | None:
        """A snapshot that was kept, by this session or an earlier one; None where it is gone."""

    def image_key(self, task: Task) -> str:
        """What names the contents of the task's image, which is built first when it has to be."""

    def build_seconds(self, task: Task) -> float | None:
        """What it took to build the task's image here, which is built first when it has to be; None if it is not."""

    def keep_reference(self, key: str, snapshot: Snapshot) -> int:
        """Keep a copy of a snapshot beyond the session, under a name; returns the bytes it takes."""

    def find_reference(self, key: str) -> Snapshot | None:
        """The copy of that name, for :meth:`create`; None where there is none."""

    def drop_reference(self, key: str) -> None:
        """Remove the copy of that name."""

    def close(self) -> None:
        """Stop every environment that still runs, and drop what no attempt needs any more."""


class CappedOutput:
    """Collects a command's output and keeps its head and its tail."""

    def __init__(self, limit: int = OUTPUT_LIMIT, whole: BinaryIO | None = None) -> None:
        """``whole`` is where all of it is written."""
        self._whole = whole
        self._unwritten: OSError | None = None
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if self._whole is not None and self._unwritten is None:
            try:
                self._whole.write(chunk)
            except OSError as error:  # Whoever reads the output has to go on, or the command would wait for ever.
                self._unwritten = error
        room = self._limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Trimmed at twice the limit, so that a long stream costs one copy per `limit` bytes and not one per chunk.
        if len(self._tail) > 2 * self._limit:
            self._trim()

    def _trim(self) -> None:
        excess = max(0, len(self._tail) - self._limit)
        del self._tail[:excess]
        self._dropped += excess

    def check_whole(self) -> None:
        """Raise :class:`~pytest_evocode.errors.EnvironmentFault` when not all of it could be written."""
        if self._unwritten is not None:
            raise EnvironmentFault(f"a command's output could not be written: {self._unwritten}")

    def text(self) -> str:
        """What :meth:`bytes` has, decoded as UTF-8 with replacement characters."""
        return self.bytes().decode("utf-8", "replace")

    def bytes(self) -> bytes:
        """All of it, or head and tail around a line that tells how many bytes are missing."""
        self._trim()
        gap = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return b"".join((self._head, gap, self._tail))
