"""Running a command in an environment: the part of ``exec`` that does not depend on the engine."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from pytest_evocode.environments.protocol import Command, ExecResult, User
from pytest_evocode.errors import EnvironmentFault

# A longer script comes by stdin, which then is as empty for the script as it is for others.
_READ_SCRIPT = 'eval "exec </dev/null; $(cat)"'
#: Bytes that are kept of the beginning of a command's output, and as many of its end.
OUTPUT_LIMIT = 8 * 2**20


def fits_argument(text: str) -> bool:
    """Tell whether the kernel takes a text as an argument, which has 128 KiB with the NUL at its end."""
    return len(text.encode("utf-8", "surrogatepass")) < 2**17


class CommandEnvironment(ABC):
    """A base class for environments, which implements ``exec`` on :meth:`run`."""

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
        """Implement :meth:`pytest_evocode.environments.protocol.Environment.exec`."""
        started = time.monotonic()
        argv, input = ("bash", "-c", command) if isinstance(command, str) else tuple(command), b""
        if isinstance(command, str) and not fits_argument(command):
            argv, input = ("bash", "-c", _READ_SCRIPT), command.encode("utf-8", "surrogateescape")
        output = CappedOutput(whole=stdout)
        deadline = None if timeout is None else started + timeout
        exit_code = self.run_or_mend(Command(argv, user, env or {}, cwd, input), output, deadline)
        output.check_whole()
        return ExecResult(exit_code, output.text(), exit_code is None, time.monotonic() - started)

    def run_or_mend(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Do as :meth:`run`; an environment may do more for a command that could not be started."""
        return self.run(command, output, deadline)

    @abstractmethod
    def run(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Run a command, add what it prints to ``output``, and return its exit code.

        At ``deadline`` (by ``time.monotonic``) kill every process but PID 1, and return None.
        """


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
