"""A person as the agent, for baselines: a shell in the environment for each turn, which ``done`` ends."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.environments import Command
from pytest_evocode.environments.terminal import write_all
from pytest_evocode.errors import Cancelled, UsageError
from pytest_evocode.llm.budget import Budget

_TERMINAL = "/dev/tty"  # Standard input is not to be had while pytest captures output.
_DONE = "done"
_ASK = "Type done to end the turn; anything else opens the shell again: "
_POLL = 0.1  # seconds between checks whether the session was stopped


class HumanAgent:
    """Shows the request at the terminal that pytest was started from, and opens a shell there."""

    name = "human"
    interactive = True
    takes_skills = True
    mcp_transports = ALL_TRANSPORTS

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        with _terminal():
            pass

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        context.recorder.say("user", context.instruction)
        deadline = Deadline(context.timeout, context.spending.waiting)
        with deadline.watched(context.environment), _terminal() as terminal:
            where = f"{context.task.name} {context.round.name}, in {context.environment.workdir}"
            _print(terminal, f"\n{where}:\n\n{context.instruction.strip()}\n\nLeave the shell to end the turn.\n")
            while not deadline.passed:
                shell = Command(("bash", "-i"), user=context.round.agent_user)
                context.environment.interact(shell, terminal)
                if deadline.passed or _answer(terminal, context.cancelled, deadline) in (_DONE, None):
                    break
        return RoundTranscript(timed_out=deadline.passed)


@contextmanager
def _terminal() -> Iterator[int]:
    """Open the terminal that pytest was started from, as a file descriptor."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        raise UsageError("the agent human needs a terminal, and the session has none; start pytest from one") from None
    try:
        yield terminal
    finally:
        os.close(terminal)


def _print(terminal: int, text: str) -> None:
    write_all(terminal, text.replace("\n", "\r\n").encode("utf-8", "replace"))


def _answer(terminal: int, cancelled: threading.Event, deadline: Deadline) -> str | None:
    """Ask whether the turn is over, and return the answer; None where nobody is left to give one."""
    _print(terminal, f"\n{_ASK}")
    while not deadline.passed:
        if cancelled.is_set():
            raise Cancelled("the session was stopped")
        if select.select([terminal], [], [], _POLL)[0]:
            line = os.read(terminal, 2**12)
            return line.decode("utf-8", "replace").strip() if line else None
    return None
