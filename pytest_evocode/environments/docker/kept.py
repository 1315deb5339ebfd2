"""Containers that outlive their session for somebody to look at; known by their names, as labels cannot be changed."""

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
    """Give a running container a name by which it is left alone, and return that.

    ``network`` is the session's own, which goes with the session; None for a container without any.
    """
    kept = f"{_PREFIX}{name}-{uuid.uuid4().hex[:6]}"
    with faults("keeping a container"):
        client.rename(container, kept)
        if network is not None:
            client.disconnect_container_from_network(container, network)
            client.connect_container_to_network(container, "bridge")
    return kept


def is_kept(container: Mapping[str, Any]) -> bool:
    """Whether a container, as the engine lists it, is one that was kept."""
    return any(name.lstrip("/").startswith(_PREFIX) for name in container["Names"] or ())


def images_of_kept(containers: Sequence[Mapping[str, Any]]) -> set[str]:
    """The ids of the images without which those of the containers that were kept could not be started again."""
    return {container["ImageID"] for container in containers if is_kept(container)}


def docker_exec_line(container: str, command: EngineCommand, conceal: Callable[[str], str]) -> str:
    """The command line that runs a command in a container on the terminal it is typed at."""
    line = ["docker", "exec", "-it", "--user", command.user, "--workdir", command.cwd]
    for name, value in command.env.items():
        line += ["--env", f"{name}={conceal(value)}"]
    return shlex.join([*line, container, *command.argv])
