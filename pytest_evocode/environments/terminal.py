"""A person's terminal, connected to a program in an environment that has one of its own."""

from __future__ import annotations

import os
import select
import termios
import tty
from collections.abc import Callable
from typing import Protocol

_LOOK = 250  # milliseconds between two looks at the terminal's size


class Remote(Protocol):
    """The end of a program's terminal that is outside of the environment."""

    def fileno(self) -> int:
        """What to wait for."""

    def recv(self, size: int, /) -> bytes:
        """What the program printed, once there is something; empty at its end."""

    def send(self, data: bytes, /) -> int:
        """Type as much as is taken at once, and return how much that was."""


def relay(terminal: int, remote: Remote, resize: Callable[[os.terminal_size], bool]) -> bool:
    """Pass on what is typed and what is printed until the program ends; False when the terminal does so before.

    Every key is the program's, Ctrl-C too. ``resize`` gives its terminal a size; it is called again when that cannot be
    done yet, which False says.
    """
    try:
        before = termios.tcgetattr(terminal)
        tty.setraw(terminal, termios.TCSADRAIN)
        try:
            return _pass_on(terminal, remote, resize)
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    except (OSError, termios.error):  # It was closed.
        return False


def _pass_on(terminal: int, remote: Remote, resize: Callable[[os.terminal_size], bool]) -> bool:
    size = None
    typed = b""
    poll = select.poll()
    while True:
        if (now := os.get_terminal_size(terminal)) != size and resize(now):
            size = now
        poll.register(terminal, select.POLLIN)
        poll.register(remote.fileno(), select.POLLIN | (select.POLLOUT if typed else 0))
        events = dict(poll.poll(_LOOK))
        happened = events.get(remote.fileno(), 0)
        if happened & ~select.POLLOUT:
            try:
                printed = remote.recv(2**16)
            except BlockingIOError:  # The kernel wakes who waits for a terminal now and then for nothing.
                continue
            if not printed:
                return True
            write_all(terminal, printed)
        if happened & select.POLLOUT:
            typed = typed[remote.send(typed) :]
        if terminal in events:
            keys = os.read(terminal, 2**12)
            if not keys:
                return False
            typed += keys


def write_all(terminal: int, data: bytes) -> None:
    """Print all of it; raises OSError."""
    while data:
        data = data[os.write(terminal, data) :]


def kind_of_terminal() -> dict[str, str]:
    """The variable that tells programs what the terminal understands."""
    return {"TERM": os.environ.get("TERM", "xterm")}
