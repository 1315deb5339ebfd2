"""Commands that the engine runs in a container: slower than by a channel, but as any user and on a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.stream import FramedStream, TerminalStream
from pytest_evocode.environments.terminal import kind_of_terminal, relay, write_all
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

_ENDING = 10.0  # seconds for the engine to give an exit code after the output has ended


@dataclass(frozen=True, slots=True)
class EngineCommand:
    """A command with user, directory and deadline filled in."""

    argv: Sequence[str]
    user: str
    env: Mapping[str, str]
    cwd: str
    deadline: float | None = None
    """By ``time.monotonic``."""


def run_by_engine(
    client: APIClient, container: str, command: EngineCommand, output: CappedOutput, kill: Callable[[], None]
) -> tuple[int | None, bool]:
    """Run a command, and call ``kill`` when its deadline comes.

    Returns:
        The exit code, None when it was killed, and whether its deadline came.
    """
    with faults("running a command"):
        created = client.exec_create(
            container, command.argv, user=command.user, environment=dict(command.env), workdir=command.cwd
        )
        with FramedStream(client.exec_start(created["Id"], socket=True), output.add) as stream:
            timed_out = not stream.collect(command.deadline)
        # After the stream is closed: a flood of output that nobody reads keeps the engine from killing.
        if timed_out:
            kill()
        exit_code = None if timed_out else _exit_code(client, created["Id"])
    if exit_code == 126 and "executable file not found in $PATH" in output.text():
        exit_code = 127  # As newer engines do.
    return exit_code, timed_out


def run_on_terminal(
    client: APIClient, container: str, command: EngineCommand, terminal: int, kill: Callable[[], None]
) -> int:
    """Run a command on a terminal and return its exit code; call ``kill`` if the terminal is closed before."""
    from docker.errors import APIError

    def resize(size: os.terminal_size) -> bool:
        try:
            client.exec_resize(created["Id"], height=size.lines, width=size.columns)
        except APIError:  # The command is just starting, or has just ended.
            return False
        return True

    with faults("running a command on a terminal"):
        created = client.exec_create(
            container,
            command.argv,
            user=command.user,
            environment={**kind_of_terminal(), **command.env},
            workdir=command.cwd,
            stdin=True,
            tty=True,
        )
        with TerminalStream(client.exec_start(created["Id"], tty=True, socket=True)) as stream:
            write_all(terminal, stream.early())
            if not relay(terminal, stream, resize):
                kill()
        return _exit_code(client, created["Id"])


def _exit_code(client: APIClient, exec_id: str) -> int:
    """Return the exit code, which the engine may know only some time after the output has ended."""
    deadline = time.monotonic() + _ENDING
    while time.monotonic() < deadline:
        state = client.exec_inspect(exec_id)
        if not state["Running"] and state["ExitCode"] is not None:
            return int(state["ExitCode"])
        time.sleep(0.01)
    raise EnvironmentFault("a command's output has ended, but the engine gives no exit code")
