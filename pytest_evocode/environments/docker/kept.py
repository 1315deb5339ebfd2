"""Containers that ``--evocode-keep`` leaves for somebody to look at.

They are known by their names, because a container's labels cannot be changed.
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.execs import EngineCommand
from pytest_evocode.environments.docker.faults import faults

if TYPE_CHECKING:
    from docker import APIClient

_PREFIX = "evocode-kept-"


def keep_container(client: APIClient, container: str, name: str, network: str | None) -> str:
    """Rename a running container so that no session removes it, and return the new name.

    Args:
        client: A client of the engine.
        container: The container's id.
        name: What the new name contains.
        network: The session's own network, which will be removed and is replaced by the engine's default; None for a
            container without a network.
    """
    kept = f"{_PREFIX}{name}-{uuid.uuid4().hex[:6]}"
    with faults("keeping a container"):
        client.rename(container, kept)
        if network is not None:
            client.disconnect_container_from_network(container, network)
            client.connect_container_to_network(container, "bridge")
    return kept


def is_kept(container: Mapping[str, Any]) -> bool:
    """Tell whether a container, as the engine lists it, is one that was kept."""
    return any(name.lstrip("/").startswith(_PREFIX) for name in container["Names"] or ())


def images_of_kept(containers: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the ids of the images that the kept ones of some containers need to be started again."""
    return {container["ImageID"] for container in containers if is_kept(container)}


def docker_exec_line(container: str, command: EngineCommand, conceal: Callable[[str], str]) -> str:
    """Return the command line that runs a command in a container on the terminal it is typed at."""
    line = ["docker", "exec", "-it", "--user", command.user, "--workdir", command.cwd]
    for name, value in command.env.items():
        line += ["--env", f"{name}={conceal(value)}"]
    return shlex.join([*line, container, *command.argv])
