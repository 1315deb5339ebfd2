"""Commands and programs: what is run in an environment, what it prints, how it ended, and what it left at a path.

All of it is data that an agent's program may have made; nothing here parses it, and all of it is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol

from pytest_evocode.errors import EnvironmentFault

User = str | int


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


Stream = Literal[1, 2]
"""Stdout or stderr."""


TakeOutput = Callable[[Stream, bytes], None]
"""Takes what a program prints, piece by piece, in a thread of the environment's; while it blocks, the program does."""


FileKind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended that was run to its end."""

    exit_code: int | None
    """128 + n for signal n; None when it was killed at its timeout."""
    stdout: bytes
    stderr: bytes
    left_out: tuple[int, int]
    """Bytes left out in the middle of stdout and of stderr, where a line tells of the gap."""
    seconds: float
    """Wall-clock time."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What stands at a path; a link is described itself and never followed."""

    kind: FileKind
    size: int
    """Bytes of a regular file; 0 for anything else."""
    mode: int
    """Permission bits, setuid, setgid and sticky bit among them."""
    modified: float
    """Seconds since the epoch."""
    target: str = ""
    """Where a link points to."""


class Program(Protocol):
    """A program that runs in an environment, with a session and process group of its own."""

    def write(self, data: bytes, timeout: float | None = None) -> None:
        """Write to its stdin, and wait until all has been taken.

        Raises:
            BrokenPipeError: Nobody reads there any more.
            TimeoutError: It was not taken within ``timeout`` seconds.
        """

    def close_input(self) -> None:
        """Close its stdin; a second call does nothing."""

    def signal(self, number: int) -> None:
        """Send a signal to its process group; nothing happens once it has ended."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it has ended and its output has been taken, and return the exit code, 128 + n for signal n.

        Output that descendants still hold open is not waited for. None when it still runs after ``timeout`` seconds.
        """


#: Bytes that are kept of the beginning of a command's output, and as many of its end.
OUTPUT_LIMIT = 8 * 2**20


class CappedOutput:
    """A command's output while it runs, of which the head and the tail are kept."""

    def __init__(self, limit: int = OUTPUT_LIMIT, whole: BinaryIO | None = None) -> None:
        """Keep up to ``limit`` bytes of each, and write everything to the file ``whole``."""
        self._whole = whole
        self._unwritten: OSError | None = None
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Append the next bytes."""
        if self._whole is not None and self._unwritten is None:
            try:
                self._whole.write(chunk)
            except OSError as error:  # Reading has to go on, or the command would wait for ever.
                self._unwritten = error
        space = self._limit - len(self._head)
        if space > 0:
            self._head += chunk[:space]
            chunk = chunk[space:]
        self._tail += chunk
        # Trimmed at twice the limit, so that a long stream costs one copy per `limit` bytes and not one per chunk.
        if len(self._tail) > 2 * self._limit:
            self._trim()

    def _trim(self) -> None:
        excess = max(0, len(self._tail) - self._limit)
        del self._tail[:excess]
        self._dropped += excess

    def check_whole(self) -> None:
        """Raise :class:`~pytest_evocode.errors.EnvironmentFault` if the file ``whole`` could not be written."""
        if self._unwritten is not None:
            raise EnvironmentFault(f"a command's output could not be written: {self._unwritten}")

    @property
    def left_out(self) -> int:
        """How many bytes in the middle are not kept."""
        self._trim()
        return self._dropped

    def text(self) -> str:
        """Return :meth:`bytes`, decoded as UTF-8 with replacement characters."""
        return self.bytes().decode("utf-8", "replace")

    def bytes(self) -> bytes:
        """Return all of it, or head and tail around a line that gives the number of bytes left out."""
        self._trim()
        gap = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return b"".join((self._head, gap, self._tail))
