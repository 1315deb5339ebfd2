"""Choosing the engine of a session: Docker where a daemon answers, else the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_evocode.environments.protocol import Engine
from pytest_evocode.errors import EnvironmentUnavailable, UsageError

NAMES = ("auto", "docker", "sandbox")


def choose_engine(name: str = "auto", *, hidden: Sequence[Path] = ()) -> tuple[Engine, str]:
    """Start the engine of a name, and return it with the reason for the choice, in a few words for the header.

    Args:
        name: ``docker``, ``sandbox``, or ``auto`` for Docker where a daemon answers and else the sandbox.
        hidden: Directories of the host that no environment may show.

    Raises:
        EnvironmentUnavailable: The engine cannot be had here; the message says what can be done.
        UsageError: There is no engine of that name.
    """
    if name not in NAMES:
        raise UsageError(f"unknown environment {name!r}; known are {', '.join(NAMES)}")
    if name == "sandbox":
        return _sandbox(hidden), "asked for"
    try:
        return _docker(), "asked for" if name == "docker" else "a Docker daemon answers"
    except EnvironmentUnavailable as no_docker:
        if name == "docker":
            raise EnvironmentUnavailable(
                f"{no_docker}. Start Docker, set DOCKER_HOST, or run with --evocode-env=sandbox."
            ) from None
        try:
            return _sandbox(hidden), f"{no_docker}"
        except EnvironmentUnavailable as no_sandbox:
            raise EnvironmentUnavailable(
                "no environment to run tasks in. There are two ways out:\n"
                f"  - Docker: {no_docker}. Start it, or set DOCKER_HOST.\n"
                f"  - the sandbox: {no_sandbox}. Install it with: pip install 'pytest-evocode[sandbox]'"
            ) from None


def _docker() -> Engine:
    from pytest_evocode.environments.docker.engine import DockerEngine

    return DockerEngine()


def _sandbox(hidden: Sequence[Path]) -> Engine:
    from pytest_evocode.environments.sandbox.engine import SandboxEngine

    return SandboxEngine(hidden)
