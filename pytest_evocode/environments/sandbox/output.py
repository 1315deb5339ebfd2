"""A command's output, from a pipe that what it left running may hold for ever."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time

from pytest_evocode.environments.command_environment import CappedOutput


def collect(output: int, reply: int, into: CappedOutput, deadline: float | None) -> bool:
    """Read a command's output until its reply is there; False at the deadline."""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(reply, select.POLLIN)
    os.set_blocking(output, False)
    ended = False
    still_in_pipe = 2**20  # bytes; what a flooding background process adds after the command's end is not its output
    while True:
        # Once the command has ended, only what is in the pipe already is still its output.
        wait = 0.0 if ended else (None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000)
        events = dict(poll.poll(wait))
        if not events:
            return ended
        if reply in events:
            ended = True
            poll.unregister(reply)
        if output in events:
            try:
                chunk = os.read(output, 2**18)
            except BlockingIOError:
                chunk = b""
            if chunk:
                into.add(chunk)
                still_in_pipe -= len(chunk) if ended else 0
            else:
                poll.unregister(output)
            if ended and (not chunk or still_in_pipe <= 0):
                return True


def leave_open(output: int) -> None:
    """Keep taking the output of what a command left running: with the pipe closed, a service would die of SIGPIPE."""
    os.set_blocking(output, True)
    probe = select.poll()
    probe.register(output, select.POLLIN)
    if probe.poll(0) and not os.read(output, 1):
        os.close(output)
        return

    def drain() -> None:
        with contextlib.suppress(OSError):
            while os.read(output, 2**16):
                pass
        os.close(output)

    threading.Thread(target=drain, daemon=True, name="evocode-drain").start()
