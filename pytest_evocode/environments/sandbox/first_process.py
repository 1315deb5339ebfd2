"""PID 1 of a sandbox, which no process inside can kill, as its session sees it: by a descriptor."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from typing import Any

from pytest_evocode.environments.sandbox.launcher_client import receive
from pytest_evocode.errors import EnvironmentFault, KilledFromOutside

KILLED = 137
"""The exit code that a shell gives a killed command."""
_DYING = 0.3  # seconds in which whatever kills every process of a sandbox gets from a program to PID 1
_EXITING = 4  # the kernel's PF_EXITING
_KILL_GRACE = 5.0  # seconds for the killed tree to be reaped


def end_first_process(pidfd: int) -> None:
    """Kill a PID 1, and with it every process of its namespace; the descriptor is closed."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    select.select([pidfd], [], [], _KILL_GRACE)
    os.close(pidfd)


def refuse_if_killed(pidfd: int, exit_code: int | None = None) -> None:
    """Raise :class:`~pytest_evocode.errors.KilledFromOutside` where PID 1 has ended without our doing.

    With the ``exit_code`` of a program that was killed, there is some time for that, and it is enough that PID 1 has
    begun to end: the kernel kills every other process of a sandbox from within the end of PID 1, which on a busy
    machine is complete much later.
    """
    if pidfd < 0:  # It was ended by us.
        return
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    was_killed = exit_code == KILLED
    if poll.poll(_DYING * 1000 if was_killed else 0) or (was_killed and _is_exiting(pidfd)):
        raise KilledFromOutside("the sandbox")


def _is_exiting(pidfd: int) -> bool:
    """Tell whether a process has begun to end, or has ended."""
    try:
        with open(f"/proc/self/fdinfo/{pidfd}") as lines:
            pid = next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # Its name, in parentheses, may hold anything.
    except (FileNotFoundError, ProcessLookupError):
        return True
    return bool(int(fields[6]) & _EXITING)


def receive_from(pidfd: int, reply: int, timeout: float | None = None) -> dict[str, Any]:
    """Return the reply of a worker in the sandbox; raises EnvironmentFault, and says so if the sandbox was killed."""
    try:
        return receive(reply, timeout)
    except EnvironmentFault:
        refuse_if_killed(pidfd, KILLED)
        raise
