"""An agent whose second turn wakes a suite that sleeps, and works on: the conftest.py of sessions that speculate.

It imports nothing of the tests, since sessions get a copy of it; ``MOMENT`` is put behind it.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pytest_evocode.agents import Agent, RoundContext, RoundTranscript

NAME = "waking"
#: The argument of the ``sleep`` in the suite.
MOMENT = ""


class Waking:
    """Appends ``line-i`` to ``log.txt`` in round i."""

    name = NAME

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Take the turn."""
        context.environment.exec(f"echo line-{context.round.index} >> log.txt")
        if context.round.index == 2:
            deadline = time.monotonic() + 300
            while not (found := sleeping()) and time.monotonic() < deadline:
                time.sleep(0.01)
            for process in found:
                os.kill(process, signal.SIGKILL)
        return RoundTranscript()


def sleeping() -> list[int]:
    """The ids of the processes that sleep for that moment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if MOMENT.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def pytest_evocode_make_agent(name: str) -> Agent | None:
    """Make the agent of that name."""
    return Waking() if name == NAME else None
