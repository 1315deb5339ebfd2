"""What phases have to do with the gate of their environment, where it has one."""

from __future__ import annotations

from typing import Literal

from pytest_evocode.environments.protocol import Environment, GuardedEnvironment
from pytest_evocode.results.records import DeniedConnection
from pytest_evocode.tasks import Network


def allow_network(environment: Environment, network: Network | None) -> None:
    """Let an environment reach from now on what a phase may; one without a gate has its network for good."""
    if isinstance(environment, GuardedEnvironment) and environment.egress is not None:
        environment.egress.allow(network)


def take_denied(environment: Environment, phase: Literal["agent", "verifier"]) -> tuple[DeniedConnection, ...] | None:
    """Return what an environment was denied since the last call; None where it has no gate."""
    if isinstance(environment, GuardedEnvironment) and environment.egress is not None:
        return environment.egress.take_denied(phase)
    return None
