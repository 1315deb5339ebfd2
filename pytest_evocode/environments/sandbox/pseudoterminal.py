"""A pseudo-terminal of the kernel, of which a program in a sandbox gets one end."""

from __future__ import annotations

import errno
import os
import termios
from types import TracebackType


class PseudoTerminal:
    """Two connected ends of a terminal, as a context that closes both.

    It is a :class:`~pytest_evocode.environments.terminal.Remote`, by its outer end.
    """

    def __init__(self) -> None:
        self._outer, self.inner = os.openpty()
        os.set_blocking(self._outer, False)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        os.close(self._outer)

    def release(self) -> None:
        """Close the inner end in this process, so that the outer one ends when the program does."""
        inner, self.inner = self.inner, -1
        if inner >= 0:
            os.close(inner)

    def fileno(self) -> int:
        """Return the file descriptor of the outer end."""
        return self._outer

    def recv(self, size: int, /) -> bytes:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.read(self._outer, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""  # No process has the inner end open any more.

    def send(self, data: bytes, /) -> int:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.write(self._outer, data)
        except BlockingIOError:
            return 0

    def resize(self, size: os.terminal_size) -> bool:
        """Set the size of the program's terminal, and return True."""
        termios.tcsetwinsize(self._outer, (size.lines, size.columns))
        return True
