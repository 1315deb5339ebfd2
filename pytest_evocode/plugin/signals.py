"""Signals that end a session in an orderly way, with its containers removed and its attempts ready to be resumed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

import pytest


def handle_sigterm(config: pytest.Config) -> None:
    """End the session at SIGTERM, which by itself would skip every teardown and leave containers behind."""

    def leave(number: int, frame: FrameType | None) -> None:
        pytest.exit(f"stopped by {signal.Signals(number).name}", returncode=128 + number)

    _handle(config, signal.SIGTERM, leave)


def handle_ignored_sigint(config: pytest.Config) -> None:
    """Make SIGINT interrupt the session even if the process was started with SIGINT ignored.

    Background jobs of a shell, ``nohup`` and some CI runners start processes so, and Python then installs no handler.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        _handle(config, signal.SIGINT, signal.default_int_handler)


def _handle(config: pytest.Config, number: signal.Signals, handler: Callable[[int, FrameType | None], object]) -> None:
    previous = signal.signal(number, handler) or signal.SIG_DFL

    def restore() -> None:
        signal.signal(number, previous)

    config.add_cleanup(restore)
