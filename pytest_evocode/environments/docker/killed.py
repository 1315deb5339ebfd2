"""Tells whether a container was killed by somebody outside: no signal from inside can end its PID 1."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.execs import KILLED
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.files import ContainerFiles
from pytest_evocode.errors import EnvironmentFault, KilledFromOutside

if TYPE_CHECKING:
    from docker import APIClient

_DEADLY = {"9", "15", "KILL", "TERM", "SIGKILL", "SIGTERM"}
_DYING = 5.0  # seconds in which even a busy engine notices the end of a container


def refuse_if_killed(client: APIClient, files: ContainerFiles | None) -> None:
    """Raise :class:`~pytest_evocode.errors.KilledFromOutside` where a container has been killed or removed.

    Not where memory ran out, or where root inside made PID 1 end, with whatever exit code: no program under test
    is to get a fault in place of a verdict. So the engine is asked whether it was told to kill.
    """
    from docker.errors import NotFound

    if files is None or files.channel.control(":"):
        return
    deadline = time.monotonic() + _DYING
    with faults("looking whether a container still runs"):
        try:
            while (state := client.inspect_container(files.container)["State"])["Running"]:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.02)
        except NotFound:
            raise KilledFromOutside(f"the container {files.container:.12}") from None
    if state["ExitCode"] == KILLED and not state["OOMKilled"] and _was_told_to_kill(client, files.container, state):
        raise KilledFromOutside(f"the container {files.container:.12}")


def _was_told_to_kill(client: APIClient, container: str, state: Mapping[str, Any]) -> bool:
    """Tell whether the engine was told to kill a container since it was last started."""
    started, ended = nanoseconds(state["StartedAt"]), nanoseconds(state["FinishedAt"])
    wanted = {"container": container, "event": "kill"}
    with faults("asking why a container has ended"):
        events = client.events(since=started // 10**9, until=ended // 10**9 + 1, filters=wanted, decode=True)
        return any(
            event["timeNano"] > started and event["Actor"]["Attributes"].get("signal") in _DEADLY for event in events
        )


def nanoseconds(moment: str) -> int:
    """Return the nanoseconds since the epoch of a moment as the engine writes it, with up to nine digits."""
    whole, _, fraction = moment.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * 10**9 + int(f"{fraction:0<9}")


@contextlib.contextmanager
def naming_kills(client: APIClient, files: ContainerFiles | None) -> Iterator[None]:
    """Raise :class:`~pytest_evocode.errors.KilledFromOutside` in place of what an engine says of a killed container."""
    try:
        yield
    except EnvironmentFault:
        refuse_if_killed(client, files)
        raise
