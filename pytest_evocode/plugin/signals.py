"""Signals that end a session in an orderly way: containers are removed, and attempts can be resumed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

import pytest


def handle_signals(config: pytest.Config) -> None:
    """Have SIGTERM and SIGINT end the session with all its teardowns, until the configuration is undone.

    SIGTERM by itself would skip every teardown and leave containers behind. SIGINT has Python's handler, unless the
    process was started with SIGINT ignored, as background jobs of a shell and of some CI runners are.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        pytest.exit(f"stopped by {signal.Signals(number).name}", returncode=128 + number)

    _handle(config, signal.SIGTERM, leave)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        _handle(config, signal.SIGINT, signal.default_int_handler)


def _handle(config: pytest.Config, number: signal.Signals, handler: Callable[[int, FrameType | None], object]) -> None:
    previous = signal.signal(number, handler) or signal.SIG_DFL

    def restore() -> None:
        signal.signal(number, previous)

    config.add_cleanup(restore)
