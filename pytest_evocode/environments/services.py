"""Environments that have services beside the container in which the agent works: those of a task's compose file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

from pytest_evocode.environments.programs import FileStatus
from pytest_evocode.environments.protocol import Environment, ExecResult, User
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks.compose_file import MAIN


@runtime_checkable
class ServiceFiles(Protocol):
    """The files of one service; every method raises :class:`~pytest_evocode.errors.EnvironmentFault`."""

    def file_status(self, path: str) -> FileStatus | None:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""

    def pack_trees(self, paths: Sequence[str], archive: BinaryIO, *, files: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment`."""

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""


@runtime_checkable
class ServicesEnvironment(Environment, Protocol):
    """An environment with services, which are reached by their names from inside."""

    @property
    def services(self) -> tuple[str, ...]:
        """The names of the services that belong to this environment alone, without ``main``."""

    def exec_in(self, service: str, command: str, *, user: User | None = None, timeout: float) -> ExecResult:
        """Run a line for ``sh`` in a service.

        When its time is up, the service is started again, which ends all that runs there.
        """

    def files_of(self, service: str) -> ServiceFiles:
        """Return the files of a service."""

    def service_states(self) -> Mapping[str, Mapping[str, Any]]:
        """Return how the services are at the moment, by name, as the engine says."""

    def service_log(self, service: str) -> bytes:
        """Return the last that a service printed."""


def place_of(environment: Environment, service: str | None) -> Environment | ServiceFiles:
    """Return what has the files of a service: the environment itself for ``main``.

    Raises :class:`~pytest_evocode.errors.EnvironmentFault` where the environment has no such service.
    """
    if service in (None, MAIN):
        return environment
    if not isinstance(environment, ServicesEnvironment):
        raise EnvironmentFault(f"there is no service {service} here")
    return environment.files_of(str(service))
