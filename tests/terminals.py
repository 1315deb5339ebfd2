"""Somebody at a terminal: types, and waits for what is printed."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.screens import Screen

HANGS = 300.0  # seconds after which what should be printed counts as never printed


class Person:
    """One end of a pseudo-terminal, as a context; what is printed on it is read all the time."""

    def __init__(self) -> None:
        self._ours, self.terminal = pty.openpty()
        """``terminal`` is the end for programs."""
        self.resize(24, 80)
        self._seen = ""
        self._printed = ""
        self._left = threading.Event()
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.terminal >= 0:
            os.close(self.terminal)
        self.leave()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO: no program has it open any more.
            while not self._left.is_set():
                # A read under way would keep the terminal from being closed.
                if select.select([self._ours], [], [], 0.05)[0]:
                    with self._news:
                        news = os.read(self._ours, 2**16).decode(errors="replace")
                        self._seen += news
                        self._printed += news
                        self._news.notify_all()

    def resize(self, lines: int, columns: int) -> None:
        """Change the size of the window."""
        termios.tcsetwinsize(self._ours, (lines, columns))

    def start(self, argv: Sequence[str], directory: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a program here."""
        return subprocess.Popen(argv, cwd=directory, stdin=self.terminal, stdout=self.terminal, stderr=self.terminal)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def sees(self, text: str) -> str:
        """Wait until something is printed, and return what was before it, not to be seen again."""
        deadline = time.monotonic() + HANGS
        with self._news:
            while text not in self._seen:
                assert self._news.wait(deadline - time.monotonic()), f"never printed: {text!r}; but:\n{self._seen}"
            before, _, self._seen = self._seen.partition(text)
            return before

    def seen(self) -> str:
        """What was printed since, by programs that have ended."""
        while True:
            with self._news:
                if not select.select([self._ours], [], [], 0.1)[0]:
                    return self._seen
            time.sleep(0.01)

    @property
    def screen(self) -> Screen:
        """What the window shows of all that was printed, if it always had its size."""
        screen = Screen(*termios.tcgetwinsize(self._ours))
        screen.print(self._printed)
        return screen

    def clear(self) -> None:
        """Have the window show nothing of what was printed so far."""
        with self._news:
            self._printed = ""

    def watches(self, until: Callable[[list[str]], bool]) -> list[str]:
        """Wait until the window's lines are as they should be, and return them."""
        deadline = time.monotonic() + HANGS
        with self._news:
            while not until(lines := self.screen.shown):
                assert self._news.wait(deadline - time.monotonic()), "never shown; but:\n" + "\n".join(lines)
            return lines

    def leave(self) -> None:
        """Close the window."""
        if not self._left.is_set():
            self._left.set()
            self._reader.join()
            os.close(self._ours)
