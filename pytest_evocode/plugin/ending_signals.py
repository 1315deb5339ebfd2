"""Signals that end a session: with all its teardowns and reports, also where the first is lost or more follow."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType

import pytest

_AGAIN = 5.0  # seconds for pytest to notice that it is to end
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class EndingSignals:
    """Makes SIGTERM and SIGINT end the session, from :meth:`handle` until the configuration is undone.

    A session runs, is told to end, or ends. The first signal tells it, by an exception; those that follow say what
    it does and change nothing, whatever they are: CI services send SIGINT, SIGTERM and SIGKILL within seconds, and an
    exception between two teardowns would cost the reports. A session that ends by itself is not interrupted either.

    SIGTERM by itself would skip every teardown and leave containers behind. SIGINT is ignored in background jobs of a
    shell and of some CI runners.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noticed = threading.Event()
        self._told: signal.Signals | None = None
        self._repeating = False

    def handle(self, config: pytest.Config) -> None:
        """Install the handlers."""
        previous = {number: signal.signal(number, self._take) for number in _SIGNALS}

        def restore() -> None:
            for number, handler in previous.items():
                # What follows now would take the exit code from a session that has ended.
                signal.signal(number, signal.SIG_IGN if self._told else handler or signal.SIG_DFL)

        config.add_cleanup(restore)
        config.add_cleanup(self._notice)  # Before the handlers are taken away: what is added last is called first.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Note that the session ends, which nothing may interrupt, and set its exit code."""
        self._notice()
        # Not by ``pytest.exit``: pytest prints no summary of a session with an exit code that is none of its own.
        if self._told == signal.SIGTERM and session.exitstatus == pytest.ExitCode.INTERRUPTED:
            session.exitstatus = 128 + self._told

    def pytest_keyboard_interrupt(self) -> None:
        """Note that the session ends; pytest calls it for ``pytest.exit`` too."""
        self._notice()

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._noticed.is_set() or (self._told is not None and not self._repeating):
            self._told = self._told or signal.Signals(number)
            with contextlib.suppress(OSError):
                # Not by print: it may be a write that the signal interrupted.
                os.write(2, b"\nevocode: the session is ending, and writes what it has; kill it to lose that\n")
            return
        self._repeating = False
        if self._told is None:
            self._told = signal.Signals(number)
            # What a handler raises is lost where it runs in a callback of the garbage collector or of an import, or
            # where somebody catches every exception; the session would then wait for whatever it waited for.
            threading.Thread(target=self._repeat, name="ending-signal", daemon=True).start()
        if self._told == signal.SIGINT:
            raise KeyboardInterrupt
        pytest.exit(f"stopped by {self._told.name}", returncode=pytest.ExitCode.INTERRUPTED)

    def _repeat(self) -> None:
        while not self._noticed.wait(_AGAIN):
            with self._lock:  # The handler is not taken away meanwhile.
                if not self._noticed.is_set() and self._told is not None:
                    self._repeating = True
                    os.kill(os.getpid(), self._told)

    def _notice(self) -> None:
        with self._lock:
            self._noticed.set()
