"""The health checks of services: run by us until they pass, and not any more.

The engine would go on with them for ever, and a container that is paused in the middle of one stays so until the
timeout of the check, which a snapshot would have to wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.docker.compose.project import plain
from pytest_evocode.environments.docker.execs import EngineCommand, run_by_engine
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks.compose_file import parse_seconds

if TYPE_CHECKING:
    from docker import APIClient

_SHORTEST = 0.2  # seconds between two tries: nobody has to wait for the interval of a service that is ready
_SHOWN = 1000  # characters of what the last try printed


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """How a service tells that it is ready; times are in seconds."""

    argv: tuple[str, ...]
    interval: float = 30.0
    timeout: float = 30.0
    start_period: float = 0.0
    retries: int = 3

    @property
    def patience(self) -> float:
        """Seconds after which a service that never answered has failed as often as it may."""
        return self.start_period + self.retries * (self.interval + self.timeout)

    def wait(self, client: APIClient, container: str, ended: Callable[[], bool]) -> str:
        """Try until the service is ready, and return why it never will be; empty where it is.

        ``ended`` tells whether the container has stopped.
        """
        begun = time.monotonic()
        failures, shown = 0, ""
        while time.monotonic() - begun < self.patience:
            output = CappedOutput()
            command = EngineCommand(self.argv, "", {}, "", time.monotonic() + self.timeout)
            try:
                code, timed_out = run_by_engine(client, container, command, output, lambda: None)
            except EnvironmentFault:
                if ended():
                    return "has ended"
                raise
            if code == 0 and not timed_out:
                return ""
            shown = output.text()[-_SHOWN:]
            # More tries than the engine would make, but the same time.
            failures += 1
            if ended():
                return "has ended"
            time.sleep(min(self.interval, _SHORTEST * 2 ** min(failures, 6)))
        return f"is unhealthy: {shown.strip()}" if shown.strip() else "is unhealthy"


def health_of(said: Mapping[str, Any] | None, image: Mapping[str, Any]) -> ServiceHealth | None:
    """Return the health check of a service; None where there is none.

    Args:
        said: ``healthcheck`` of the compose file, which goes before that of the image.
        image: The engine's description of the image.
    """
    built = (image.get("Config") or {}).get("Healthcheck") or {}
    said = said or {}
    if said.get("disable"):
        return None
    argv = _argv([plain(word) for word in said["test"]] if "test" in said else built.get("Test") or ())
    if argv is None:
        return None

    def seconds(name: str, built_as: str, default: float) -> float:
        if name in said:
            return parse_seconds(str(said[name]))
        return built[built_as] / 1e9 if built.get(built_as) else default

    return ServiceHealth(
        argv,
        seconds("interval", "Interval", 30.0),
        seconds("timeout", "Timeout", 30.0),
        seconds("start_period", "StartPeriod", 0.0),
        int(said.get("retries") or built.get("Retries") or 3),
    )


def _argv(test: Sequence[str]) -> tuple[str, ...] | None:
    """Return the command of a health check.

    >>> _argv(["CMD-SHELL", "test -e /ready"]), _argv(["CMD", "pg_isready"]), _argv(["NONE"])
    (('sh', '-c', 'test -e /ready'), ('pg_isready',), None)
    """
    if not test or test[0] == "NONE":
        return None
    if test[0] == "CMD-SHELL":
        return ("sh", "-c", *test[1:])
    return tuple(test[1:])
