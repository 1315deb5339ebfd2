"""Docker images of tasks: built once per content, under a lock that all sessions share."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.protocol import Installation
from pytest_evocode.errors import BuildError
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

#: Names of images, each with a hash of the contents: those of tasks, and those of tasks with what agents need.
_TASKS = "evocode-task"
_AGENTS = "evocode-agent"
_SHOWN_LINES = 20
_INSTALLING = 900.0  # seconds


def ensure_image(client: APIClient, task: Task) -> dict[str, Any]:
    """Find, pull or build the task's image.

    Returns:
        The engine's description of it.

    Raises:
        BuildError: It cannot be had.
    """
    named = task.config.environment.docker_image
    if named is not None:
        return _inspect(client, named) or _pull(client, named, task)
    assert task.dockerfile is not None  # The loader requires one of the two.
    digest = hash_directory(task.dockerfile.parent)[:32]
    tag = f"{_TASKS}:{digest}"
    found = _inspect(client, tag)
    if found is None:
        builds = _builds()
        with FileLock(builds / f"{digest}.lock"):
            found = _inspect(client, tag)
            if found is None:
                started = time.monotonic()
                found = _build(client, task, task.dockerfile, tag)
                write_atomically(builds / f"{digest}.seconds", f"{time.monotonic() - started:.3f}")
    return found


def ensure_installed(client: APIClient, task: Task, installation: Installation | None) -> dict[str, Any]:
    """Find or build the task's image with an installation on top.

    Returns:
        The engine's description of it; that of the task's image where there is no installation.

    Raises:
        BuildError: It cannot be had.
    """
    image = ensure_image(client, task)
    if installation is None:
        return image
    digest = hashlib.sha256(f"{image['Id']}\0{installation.script}".encode()).hexdigest()[:32]
    tag = f"{_AGENTS}:{digest}"
    found = _inspect(client, tag)
    if found is None:
        with FileLock(_builds() / f"{digest}.lock"):
            found = _inspect(client, tag) or _install(client, task, image, installation, tag)
    return found


def _install(
    client: APIClient, task: Task, image: dict[str, Any], installation: Installation, tag: str
) -> dict[str, Any]:
    # By name, because not every builder finds a local base image by its id.
    base = task.config.environment.docker_image or image["RepoTags"][0]
    script = f"export EVOCODE_ENGINE=docker\n{installation.script}"
    user = (image.get("Config") or {}).get("User") or "0"
    dockerfile = f"FROM {base}\nUSER 0\nRUN {json.dumps(['bash', '-c', script])}\nUSER {user}\n"

    def failure(what: str, output: str) -> str:
        return f"{installation.name} could not be installed on the image {base}: the build {what}; {_tail(output)}"

    arguments = ["--label", f"evocode.installation={installation.name}", "-"]
    return _docker_build(client, tag, "agent", arguments, _INSTALLING, f"{_INSTALLING:g} s", failure, dockerfile)


def build_seconds(client: APIClient, task: Task) -> float | None:
    """Return how long it took to build a task's image; None for a task that names a finished image.

    Where that is not known, it is measured now by building without the engine's cache.
    """
    if task.dockerfile is None or task.config.environment.docker_image is not None:
        return None
    ensure_image(client, task)
    known = _builds() / f"{hash_directory(task.dockerfile.parent)[:32]}.seconds"
    if not known.exists():
        started = time.monotonic()
        measured = _build(client, task, task.dockerfile, f"{_TASKS}:measured", "--no-cache")
        write_atomically(known, f"{time.monotonic() - started:.3f}")
        with faults("removing an image"):
            client.remove_image(measured["Id"], force=True)
    return float(known.read_text())


def _builds() -> Path:
    directory = cache_directory() / "docker-builds"
    directory.mkdir(exist_ok=True)
    return directory


def _inspect(client: APIClient, image: str) -> dict[str, Any] | None:
    from docker.errors import ImageNotFound

    with faults(f"looking for the image {image}"):
        try:
            found: dict[str, Any] = client.inspect_image(image)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return None
        return found


def _pull(client: APIClient, image: str, task: Task) -> dict[str, Any]:
    from docker.errors import APIError

    logger.info("pulling the image %s", image)
    repository, _, tag = image.rpartition(":") if ":" in image.rpartition("/")[2] else (image, "", "latest")
    try:
        client.pull(repository, tag=tag)
    except APIError as error:
        raise BuildError(
            f"{task.file}: the image {image} is not on this machine and cannot be pulled: "
            f"{error.explanation or error}. Pull or build it by hand, or correct docker_image."
        ) from None
    found = _inspect(client, image)
    assert found is not None
    return found


def _build(client: APIClient, task: Task, dockerfile: Path, tag: str, *options: str) -> dict[str, Any]:
    def failure(what: str, output: str) -> str:
        return f"{dockerfile}: the build {what}. Correct the Dockerfile; {_tail(output)}"

    limit = task.config.environment.build_timeout_sec
    arguments = [*options, str(dockerfile.parent)]
    return _docker_build(client, tag, "task", arguments, limit, f"build_timeout_sec = {limit:g}", failure)


def _docker_build(
    client: APIClient,
    tag: str,
    kind: str,
    arguments: list[str],
    limit: float,
    shown_limit: str,
    failure: Callable[[str, str], str],
    dockerfile: str = "",
) -> dict[str, Any]:
    """Run ``docker build``, because BuildKit is not in the SDK.

    Args:
        client: A client of the engine.
        tag: The name of the image.
        kind: ``task`` or ``agent``, for a label.
        arguments: More arguments, the build context last.
        limit: Seconds that it may take.
        shown_limit: The limit as messages have it.
        failure: Makes a message of what happened and what was printed.
        dockerfile: The Dockerfile, where it is not in the build context.
    """
    logger.info("building the image %s", tag)
    started = time.monotonic()
    try:
        done = subprocess.run(
            ["docker", "build", "--force-rm", "--tag", tag, "--label", f"evocode.image={kind}", *arguments],
            input=dockerfile,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit,
            env={"BUILDKIT_PROGRESS": "plain", **os.environ},
        )
    except FileNotFoundError:
        raise BuildError("no 'docker' command on PATH, which builds images; install Docker's command line") from None
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode("utf-8", "replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        raise BuildError(failure(f"did not end within {shown_limit}", output)) from None
    logger.info("the build of %s ended with %d after %.1f s", tag, done.returncode, time.monotonic() - started)
    if done.returncode != 0:
        raise BuildError(failure("failed", done.stdout))
    found = _inspect(client, tag)
    if found is None:
        raise BuildError(failure(f"ended well, but the engine has no image {tag}", done.stdout))
    return found


def _tail(output: str) -> str:
    return "its last lines were:\n" + "\n".join(output.rstrip().splitlines()[-_SHOWN_LINES:])
