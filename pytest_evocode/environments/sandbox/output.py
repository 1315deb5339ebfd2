"""Reading a command's output from a pipe that a background process may hold open for ever."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time

from pytest_evocode.environments.command_environment import CappedOutput


def collect(output: int, reply: int, into: CappedOutput, deadline: float | None) -> bool:
    """Read a command's output until the command's reply comes.

    Args:
        output: The reading end of the output's pipe.
        reply: The reading end of the reply's pipe.
        into: Takes the output.
        deadline: By ``time.monotonic``; None for no limit.

    Returns:
        Whether the reply came before the deadline.
    """
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(reply, select.POLLIN)
    os.set_blocking(output, False)
    ended = False
    # Bytes that can be in the pipe when the command ends; what a background process adds later is not its output.
    still_in_pipe = 2**20
    while True:
        # Once the command has ended, only what is already in the pipe is its output.
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
    """Keep reading the output of processes that a command left running, in a thread.

    If the pipe were closed, a service would die of SIGPIPE.
    """
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
