"""The ENTRYPOINT of an image: run beside what keeps an environment alive, and anew where its processes were killed."""

from __future__ import annotations

import posixpath
import threading
import time
import uuid
from dataclasses import dataclass

from pytest_evocode.environments.programs import CappedOutput, Command, Program, Stream

_KEPT = 2**18  # bytes of the beginning of its output, and as many of its end
_SHOWN_LINES = 20
_KILLING = 10.0  # seconds for the engine to tell of a killed program's end
_LOOK = 0.1  # seconds between two looks at whether it has ended
ENTRY_POINT_LOG = "entry-point.log"
"""What it printed, among the results of an attempt, or among the logs of a suite that had a fork of its own."""
SETTLING = 2.0
"""Seconds that services have to start in where nothing tells when they are ready."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """The ENTRYPOINT of an image. It is run as the image's user, with the image's and the task's variables."""

    argv: tuple[str, ...]
    cwd: str
    """The image's own WORKDIR."""

    @property
    def files(self) -> tuple[str, ...]:
        """The absolute paths that its words name, if there are such files.

        >>> EntryPoint(("sh", "-c", "exec ./start.sh /srv"), "/app").files
        ('/app/sh', '/app/exec', '/app/start.sh', '/srv')
        """
        words = (part for word in self.argv for part in word.split() if not part.startswith("-"))
        return tuple(posixpath.normpath(posixpath.join(self.cwd, word.strip("'\""))) for word in words)


class EnteredProgram:
    """An ENTRYPOINT that was started, perhaps again after its processes were killed.

    Its arguments are a command that sleeps, as with Harbor: a script that ends with ``exec "$@"`` comes to it once it
    has started its services.
    """

    def __init__(self, entry_point: EntryPoint) -> None:
        self.argv = entry_point.argv
        self._mark = f"evocode-entered-{uuid.uuid4().hex}\n".encode()
        asleep = ("sh", "-c", f"echo {self._mark.decode().strip()}; exec sleep infinity")
        self.command = Command((*entry_point.argv, *asleep), cwd=entry_point.cwd)
        self.program: Program | None = None
        self.services: tuple[int, ...] = ()
        """Process numbers in the environment, where the engine knows processes by these."""
        self._output = CappedOutput(_KEPT)
        self._held = b""
        self._changed = threading.Condition()
        self._entered = False

    def take(self, stream: Stream, chunk: bytes) -> None:
        """Take what it prints."""
        with self._changed:
            if stream == 2 or self._entered:
                self._output.add(chunk)
                return
            self._held += chunk
            before, mark, after = self._held.partition(self._mark)
            if mark:
                self._output.add(before + after)
                self._held, self._entered = b"", True
                self._changed.notify_all()
            else:
                end = len(before) - next(k for k in range(len(self._mark), -1, -1) if before.endswith(self._mark[:k]))
                self._output.add(before[:end])
                self._held = before[end:]

    def begun(self, program: Program) -> None:
        """Note that it runs, from the beginning."""
        with self._changed:
            again, self.program, self._entered = self.program is not None, program, False
            self._output.add(self._held + (b"[started again]\n" if again else b""))
            self._held, self.services = b"", ()
        program.close_input()

    @property
    def exit_code(self) -> int | None:
        """How it ended, 128 + n for signal n; None while it runs."""
        return None if self.program is None else self.program.wait(0)

    @property
    def failed(self) -> bool:
        """Whether it has ended with another exit code than 0."""
        return self.exit_code not in (None, 0)

    def wait_for_end(self) -> None:
        """Wait until its end is known, which is near because it was killed."""
        if self.program is not None:
            self.program.wait(_KILLING)

    def wait_until_settled(self) -> None:
        """Wait until it has come to its arguments or has ended, or for :data:`SETTLING` where it does neither."""
        deadline = time.monotonic() + SETTLING
        # Not with the lock held: whoever asks how it ended waits for its output, which is taken with the lock.
        while self.exit_code is None and time.monotonic() < deadline:
            with self._changed:
                if self._changed.wait_for(lambda: self._entered, _LOOK):
                    return

    def output(self) -> str:
        """Return what it has printed, with a line in the middle where that was too much."""
        with self._changed:
            return f"{self._output.text()}{self._held.decode('utf-8', 'replace')}"

    def describe_end(self) -> str:
        """Return how it ended, and its last lines."""
        last = "\n".join(self.output().rstrip().splitlines()[-_SHOWN_LINES:])
        shown = f"; its last lines were:\n{last}" if last else ", without a word"
        return f"the image's ENTRYPOINT {list(self.argv)} ended with exit code {self.exit_code}{shown}"
