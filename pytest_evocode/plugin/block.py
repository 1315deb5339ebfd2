"""Lines that stay below what pytest writes to a terminal."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

_ERASE = "\x1b[J"  # From the cursor to the screen's end.
_DOWN = "\x1bD"  # Keeps the column and scrolls at the screen's end, where the usual "down" does nothing.
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_PLAIN = "\x1b[0m"
_CLIP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Block:
    """Comes between a writer and its terminal, until it is closed, and shows some lines below all that is written.

    The cursor stays where the writer left it, and the lines are gone whenever something is written, so that the writer
    need not know.
    """

    def __init__(self, writer: TerminalWriter) -> None:
        self._writer = writer
        self._file: TextIO = writer._file
        # Another way to it than the file's: pytest captures by putting something else there.
        self._terminal = os.fdopen(os.dup(self._file.fileno()), "w", encoding=self._file.encoding, errors="replace")
        self._lock = threading.RLock()
        self._paused = False
        self._shown: tuple[list[str], os.terminal_size] | None = None
        writer._file = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write as to the file, at once: what came later to the screen would be written over the lines."""
        with self._lock:
            self._erase()
            written = self._file.write(text)
            self._file.flush()
        return written

    def show(self, fitting: Callable[[os.terminal_size], Sequence[str]]) -> None:
        """Show lines that fit the screen, in place of those that are there."""
        with self._lock:
            if self._paused or self._terminal.closed:
                return
            size = self._size()
            lines = fitting(size)
            if not lines:
                self._erase()
            elif self._shown != (wanted := ([*lines], size)) and not self._at_edge(size.columns):
                room = _DOWN * len(lines) + f"\x1b[{len(lines)}A"
                drawn = "".join(f"\x1b[B\r{line}" for line in lines)
                self._send(f"{_ERASE}{room}{_SAVE}{_PLAIN}{_CLIP}{drawn}{_WRAP}{_RESTORE}")
                self._shown = wanted

    def pause(self) -> None:
        """Show nothing for a while."""
        with self._lock:
            self._erase()
            self._paused = True

    def resume(self) -> None:
        """Show again what is to be shown from now on."""
        self._paused = False

    def close(self) -> None:
        """Erase the lines for good, and leave the terminal to the writer."""
        with self._lock:
            self._erase()
            self._writer._file = self._file
            with contextlib.suppress(OSError):
                self._terminal.close()

    def _erase(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._send(_ERASE)

    def _at_edge(self, columns: int) -> bool:
        """Whether the writer has filled a line to its last column.

        Terminals disagree about where the cursor is then.
        """
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
