"""A container with the services of a compose file beside it, as an environment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.docker.compose.network import ComposeNetwork
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.docker.execs import EngineCommand, run_by_engine
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.files import ContainerFiles
from pytest_evocode.environments.docker.program_files import status_of
from pytest_evocode.environments.programs import FileStatus
from pytest_evocode.environments.protocol import Command, ExecResult, User
from pytest_evocode.errors import EnvironmentFault


class ComposeEnvironment(DockerEnvironment):
    """A :class:`~pytest_evocode.environments.services.ServicesEnvironment` of Docker containers."""

    @property
    def _services(self) -> ComposeNetwork:
        assert isinstance(self._network, ComposeNetwork)
        return self._network

    @property
    def services(self) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.services.ServicesEnvironment`."""
        return tuple(self._services.group.containers)

    def exec_in(self, service: str, command: str, *, user: User | None = None, timeout: float) -> ExecResult:
        """See :class:`~pytest_evocode.environments.services.ServicesEnvironment`."""
        container = self._container_of(service)
        started = time.monotonic()
        output = CappedOutput()
        line = EngineCommand(("sh", "-c", command), "" if user is None else str(user), {}, "", started + timeout)

        def restart() -> None:
            with faults(f"starting the service {service} again"):
                self._client.restart(container, timeout=0)

        exit_code, timed_out = run_by_engine(self._client, container, line, output, restart)
        return ExecResult(None if timed_out else exit_code, output.text(), timed_out, time.monotonic() - started)

    def files_of(self, service: str) -> ServiceContainer:
        """See :class:`~pytest_evocode.environments.services.ServicesEnvironment`."""
        return ServiceContainer(self._client, self._container_of(service))

    def service_states(self) -> Mapping[str, Mapping[str, Any]]:
        """See :class:`~pytest_evocode.environments.services.ServicesEnvironment`."""
        return self._services.group.states()

    def service_log(self, service: str) -> bytes:
        """See :class:`~pytest_evocode.environments.services.ServicesEnvironment`."""
        return self._services.group.logs(service)

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """Keep the container of ``main``, without its services and networks."""
        with faults("keeping a container"):
            for network in self._services.group.networks.values() if self.egress is None else ():
                self._client.disconnect_container_from_network(self._id, network, force=True)
        return super().keep(name, command, conceal)

    def _container_of(self, service: str) -> str:
        container = self._services.group.containers.get(service)
        if container is None:
            raise EnvironmentFault(f"there is no container of the service {service} here")
        return container


class ServiceContainer(ContainerFiles):
    """The :class:`~pytest_evocode.environments.services.ServiceFiles` of a container, read by the engine."""

    def file_status(self, path: str) -> FileStatus | None:
        """See :class:`~pytest_evocode.environments.services.ServiceFiles`."""
        return status_of(self._client, self, path)
