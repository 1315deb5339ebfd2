"""Lines that stay below whatever pytest writes to a terminal.

Not with rich: its Live has to end every line that it writes, and pytest writes dot after dot into one. (As a proxy for
the file it holds the dots back; printed with end="", the lines below overwrite them: rich 15.)
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from pytest_evocode.plugin.pytest_private import TerminalWriter, file_of, redirect

_ERASE = "\x1b[J"  # From the cursor to the screen's end.
_DOWN = "\x1bD"  # Keeps the column and scrolls at the screen's end, where the usual "down" does nothing.
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_PLAIN = "\x1b[0m"
_CLIP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class LiveBlock:
    """A file that a writer writes to in place of its terminal until it is closed, with lines shown below the text.

    The writer needs no knowledge of the lines: the cursor stays where it left it, and the lines are erased before
    anything is written.
    """

    def __init__(self, writer: TerminalWriter) -> None:
        self._writer = writer
        self._file = file_of(writer)
        # A descriptor of its own, because pytest captures output by redirecting the file's.
        self._terminal = os.fdopen(os.dup(self._file.fileno()), "w", encoding=self._file.encoding, errors="replace")
        self._lock = threading.RLock()
        self._paused = False
        self._shown: tuple[list[str], os.terminal_size] | None = None
        redirect(writer, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write text to the file and flush it, because text that reached the screen later would overwrite the lines."""
        with self._lock:
            self._erase()
            written = self._file.write(text)
            self._file.flush()
        return written

    def show(self, fitting: Callable[[os.terminal_size], Sequence[str]]) -> None:
        """Replace the lines by those that ``fitting`` returns for the size of the screen."""
        with self._lock:
            if self._paused or self._terminal.closed:
                return
            size = self._size()
            lines = fitting(size)
            if not lines:
                self._erase()
            elif self._shown != (wanted := ([*lines], size)) and not self._at_edge(size.columns):
                scrolled = _DOWN * len(lines) + f"\x1b[{len(lines)}A"
                drawn = "".join(f"\x1b[B\r{line}" for line in lines)
                self._send(f"{_ERASE}{scrolled}{_SAVE}{_PLAIN}{_CLIP}{drawn}{_WRAP}{_RESTORE}")
                self._shown = wanted

    def pause(self) -> None:
        """Erase the lines, and show none until :meth:`resume`."""
        with self._lock:
            self._erase()
            self._paused = True

    def resume(self) -> None:
        """Show lines again, from the next :meth:`show` on."""
        self._paused = False

    def close(self) -> None:
        """Erase the lines, and give the terminal back to the writer."""
        with self._lock:
            self._erase()
            redirect(self._writer, self._file)
            with contextlib.suppress(OSError):
                self._terminal.close()

    def _erase(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._send(_ERASE)

    def _at_edge(self, columns: int) -> bool:
        """Return whether the cursor may be behind the last column, where terminals differ in what comes next."""
        width = self._writer.width_of_current_line
        return width > 0 and width % columns == 0

    def _size(self) -> os.terminal_size:
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(self._terminal.fileno())
            if size.columns and size.lines:
                return size
        return os.terminal_size((80, 24))

    def _send(self, text: str) -> None:
        with contextlib.suppress(OSError):  # Nobody looks at a terminal that has been closed.
            self._terminal.write(text)
            self._terminal.flush()
