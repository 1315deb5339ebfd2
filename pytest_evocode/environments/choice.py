"""Choosing the engine of a session: Docker where a daemon answers, else the sandbox."""

from __future__ import annotations

import atexit
import difflib
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from pytest_evocode.environments import scratch
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.engines import Engine
from pytest_evocode.environments.removals import Removals
from pytest_evocode.errors import EnvironmentUnavailable, UsageError
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.model import EnvironmentConfig

ENGINES = ("docker", "sandbox")
"""The names of the engines, the one first that is taken where both can be had."""
NAMES = ("auto", *ENGINES)


def choose_engine(
    name: str = "auto",
    *,
    hidden: Sequence[Path] = (),
    failed_builds: Path | None = None,
    images: Mapping[str, Path] = MappingProxyType({}),
) -> tuple[Engine, str]:
    """Start the engine of a name, and return it with the reason for the choice, in a few words for the header.

    Args:
        name: ``docker``, ``sandbox``, or ``auto`` for Docker where a daemon answers and else the sandbox.
        hidden: Directories of the host that no environment may show.
        failed_builds: A directory for builds that failed, which are not begun again by whoever shares it; None begins
            them again whenever the image is needed.
        images: Where images are that sandboxes have in place of the host's system, by the names that they have in FROM;
            Docker has images of its own.

    Raises:
        EnvironmentUnavailable: The engine cannot be had here; the message says what can be done.
        UsageError: There is no engine of that name, or one of the images cannot be used.
    """
    Removals().background(scratch.remove_all_dead)
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f" did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"unknown environment {name!r};{hint} known are {', '.join(NAMES)}")
    if name == "sandbox":
        return _sandbox(hidden, failed_builds, images), "asked for"
    try:
        from pytest_evocode.environments.docker.engine import DockerEngine

        return DockerEngine(failed_builds=failed_builds), "asked for" if name == "docker" else "a Docker daemon answers"
    except EnvironmentUnavailable as no_docker:
        if name == "docker":
            raise EnvironmentUnavailable(
                f"{no_docker}. Start Docker, set DOCKER_HOST, or run with --evocode-env=sandbox."
            ) from None
        try:
            return _sandbox(hidden, failed_builds, images), f"{no_docker}"
        except EnvironmentUnavailable as no_sandbox:
            raise EnvironmentUnavailable(
                "no environment to run tasks in. There are two ways out:\n"
                f"  - Docker: {no_docker}. Start it, or set DOCKER_HOST.\n"
                f"  - the sandbox: {no_sandbox}"
            ) from None


def bare_system(task: Task) -> tuple[Engine, Task]:
    """Return a sandbox engine, and the task with the bare system of this machine as its environment.

    The engine is one for all of a process, and is closed at its end.

    Raises:
        EnvironmentUnavailable: No sandbox can be had here.
    """
    directory = cache_directory() / "bare-system"
    dockerfile = directory / "environment/Dockerfile"
    if not dockerfile.exists():
        dockerfile.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(dockerfile, "FROM scratch\n")
    config = task.config.model_copy(update={"environment": EnvironmentConfig()})
    return _bare_engine(), replace(task, directory=directory, config=config)


@functools.cache
def _bare_engine() -> Engine:
    engine = _sandbox([Path.cwd()])
    atexit.register(engine.close)
    return engine


def _sandbox(
    hidden: Sequence[Path], failed_builds: Path | None = None, images: Mapping[str, Path] = MappingProxyType({})
) -> Engine:
    from pytest_evocode.environments.sandbox.engine import SandboxEngine

    return SandboxEngine(hidden, failed_builds=failed_builds, images=images)


def describe_images(images: Mapping[str, Path], engine: Engine, tasks: Iterable[Path]) -> str:
    """Return what of the images that the user gave has no effect; empty where there is nothing to be said.

    Args:
        images: Those images, by name.
        engine: The engine of the session.
        tasks: The directories of its tasks.
    """
    if not images:
        return ""
    if engine.name != "sandbox":
        return f"--evocode-image is for the sandbox, and has no effect in {engine.name}"
    from pytest_evocode.environments.sandbox.dockerfile import names_in
    from pytest_evocode.environments.sandbox.given_images import full_name

    used = {full_name(name) for task in tasks for name in names_in(task)}
    unused = [name for name in images if full_name(name) not in used]
    return f"no task here is built on {', '.join(unused)}, which --evocode-image gives" if unused else ""
