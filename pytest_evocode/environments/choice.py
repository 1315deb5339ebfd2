"""Which environment a session runs in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_evocode.environments.protocol import Engine
from pytest_evocode.errors import EnvironmentUnavailable, UsageError

NAMES = ("auto", "docker", "sandbox")


def choose_engine(name: str = "auto", *, hidden: Sequence[Path] = ()) -> tuple[Engine, str]:
    """The engine of that name and the reason for it, in a few words for the header.

    ``auto`` takes Docker where a daemon answers, else the sandbox. ``hidden`` are directories of the host that no
    environment may show. Raises :class:`~pytest_evocode.errors.EnvironmentUnavailable` with the ways out, and
    :class:`~pytest_evocode.errors.UsageError` for another name.
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
