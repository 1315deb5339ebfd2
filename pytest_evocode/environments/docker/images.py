"""Docker images of tasks, and of these with what agents need: built once per content, under a lock for all sessions.

The images of agents stay until somebody removes them; the next attempt of an agent then installs it anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.builds import (
    CERTIFICATES,
    Builds,
    certificates,
    failed_installation,
    install_script,
    proxies,
)
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.engines import BuildWish, Installation
from pytest_evocode.environments.host_variables import host_variables
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import BuildError, Cancelled
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

#: Names of images, each with a hash of the contents: those of tasks, and those of tasks with what agents need.
_TASKS = "evocode-task"
_AGENTS = "evocode-agent"
_OF_AGENTS, _INSTALLED = "evocode.image=agent", "evocode.installation"
"""Labels of the latter."""
_SHOWN_LINES = 20
_INSTALLING = 900.0  # seconds
_LOOK = 0.2  # seconds between two looks at whether a build is still wanted
_GRACE = 5.0  # seconds for the builder to tell the engine that it ends
_WANTED = BuildWish()


class DockerImages:
    """The images of tasks in one Docker engine, and those with what agents need on top."""

    def __init__(self, client: APIClient, builds: Builds) -> None:
        self._client = client
        self._builds = builds

    def ensure(self, task: Task, installation: Installation | None = None, wish: BuildWish = _WANTED) -> dict[str, Any]:
        """Find, pull or build a task's image, with an installation on top if there is one.

        Returns:
            The engine's description of it.

        Raises:
            BuildError: It cannot be had.
            Cancelled: It is not wanted any more.
        """
        return self._ensure(task, installation, wish)[0]

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
        """Do as :meth:`ensure`, and return whether something had to be built or pulled for it."""
        return self._ensure(task, installation, wish)[1]

    def build_seconds(self, task: Task) -> float | None:
        """Return how long it took to build a task's image; None for a task that names a finished image.

        Where that is not known, it is measured now by building without the engine's cache.
        """
        if task.dockerfile is None or task.config.environment.docker_image is not None:
            return None
        self.ensure(task)
        known = _builds() / f"{_hash(task)}.seconds"
        if not known.exists():
            measured = self._build(task, task.dockerfile, f"{_TASKS}:measured", _WANTED, "--no-cache")
            discard(self._client, "image", measured["Id"])
        return float(known.read_text())

    def _ensure(self, task: Task, installation: Installation | None, wish: BuildWish) -> tuple[dict[str, Any], bool]:
        image, made = self._ensure_task(task, wish)
        if installation is None:
            return image, made
        digest = hashlib.sha256(f"{image['Id']}\0{installation.script}".encode()).hexdigest()[:32]
        tag = f"{_AGENTS}:{digest}"
        installed, made_too = self._builds.once(
            f"{digest} {task.file}",
            _builds() / f"{digest}.lock",
            partial(_inspect, self._client, tag),
            partial(self._install, task, image, installation, tag, wish),
            wish,
        )
        return installed, made or made_too

    def _ensure_task(self, task: Task, wish: BuildWish) -> tuple[dict[str, Any], bool]:
        named = task.config.environment.docker_image
        name: str | None = None  # A pull that failed may do well the next time.
        if named is not None:
            digest = hashlib.sha256(named.encode()).hexdigest()[:32]
            find, make = partial(_inspect, self._client, named), partial(self._pull, named, task, wish)
        else:
            dockerfile = task.dockerfile_to_build()
            digest = _hash(task)
            tag = f"{_TASKS}:{digest}"
            find = partial(_inspect, self._client, tag)
            make = partial(self._build, task, dockerfile, tag, wish)
            # What a failure says depends on where the task is and how long it gives the build.
            name = f"{digest} {task.file} {task.config.environment.build_timeout_sec}"
        return self._builds.once(name, _builds() / f"{digest}.lock", find, make, wish)

    def _install(
        self, task: Task, image: dict[str, Any], installation: Installation, tag: str, wish: BuildWish
    ) -> dict[str, Any]:
        # By name, because not every builder finds a local base image by its id.
        base = task.config.environment.docker_image or image["RepoTags"][0]
        script = install_script(installation, "docker")
        user = (image.get("Config") or {}).get("User") or "0"
        trusted = certificates(installation)
        # Not mounted: builders before BuildKit cannot. The script removes them.
        copy = f"COPY certificates.pem {CERTIFICATES}\n" if trusted else ""
        dockerfile = f"FROM {base}\nUSER 0\n{copy}RUN {json.dumps(['bash', '-c', script])}\nUSER {user}\n"

        def failure(what: str, output: str) -> BuildError:
            return failed_installation(installation, f"on the image {base}: the build {what}", output)

        arguments = ["--label", _OF_AGENTS, "--label", f"{_INSTALLED}={installation.name}"]
        # Docker knows these by name, and keeps them out of the image.
        arguments += [part for name, value in proxies().items() for part in ("--build-arg", f"{name}={value}")]
        limit = (_INSTALLING, f"{_INSTALLING:g} s")
        with scratch_directory() as context:
            Path(context, "Dockerfile").write_text(dockerfile)
            if trusted:
                Path(context, "certificates.pem").write_bytes(trusted)
            return self._run(tag, [*arguments, str(context)], limit, failure, wish)

    def _pull(self, image: str, task: Task, wish: BuildWish) -> dict[str, Any]:
        from docker.errors import APIError

        logger.info("pulling the image %s", image)
        repository, _, tag = image.rpartition(":") if ":" in image.rpartition("/")[2] else (image, "", "latest")
        why = ""
        try:
            with contextlib.closing(self._client.pull(repository, tag=tag, stream=True, decode=True)) as answers:
                for answer in answers:
                    if wish.cancelled.is_set():
                        raise Cancelled(STOPPED)
                    why = answer.get("error") or why
        except APIError as error:
            why = str(error.explanation or error)
        found = None if why else _inspect(self._client, image)
        if found is None:
            raise BuildError(
                f"{task.file}: the image {image} is not on this machine and cannot be pulled: "
                f"{why or 'the engine does not have it afterwards'}. Pull or build it by hand, or correct docker_image."
            )
        return found

    def _build(self, task: Task, dockerfile: Path, tag: str, wish: BuildWish, *options: str) -> dict[str, Any]:
        """Build a task's image, and note how long that took."""

        def failure(what: str, output: str) -> BuildError:
            do = "Correct the Dockerfile"
            if _takes_buildkit(dockerfile, output):
                do = "The engine builds without BuildKit, which here-documents take: install the plugin docker-buildx"
            return BuildError(f"{dockerfile}: the build {what}. {do}; {_tail(output)}")

        limit = task.config.environment.build_timeout_sec
        if task.main_build is not None:
            options = (*options, "--file", str(dockerfile), *task.main_build.options)
        arguments = [*options, "--label", "evocode.image=task", str(task.environment_directory)]
        started, seconds = time.monotonic(), _builds() / f"{_hash(task)}.seconds"
        found = self._run(tag, arguments, (limit, f"build_timeout_sec = {limit:g}"), failure, wish)
        write_atomically(seconds, f"{time.monotonic() - started:.3f}")
        return found

    def _run(
        self,
        tag: str,
        arguments: list[str],
        limit: tuple[float, str],
        failure: Callable[[str, str], BuildError],
        wish: BuildWish,
    ) -> dict[str, Any]:
        """Run ``docker build``, because BuildKit is not in the SDK.

        Args:
            tag: The name of the image.
            arguments: More arguments, the build context last.
            limit: Seconds that it may take, and how messages call them.
            failure: Makes an error of what happened and what was printed.
            wish: How it is asked for.
        """
        logger.info("building the image %s", tag)
        started = time.monotonic()
        seconds, shown = limit
        ended, output = run_builder(
            ["docker", "build", "--force-rm", "--tag", tag, *arguments], "", started + seconds, wish
        )
        if ended is None:
            raise failure(f"did not end within {shown}", output)
        logger.info("the build of %s ended with %d after %.1f s", tag, ended, time.monotonic() - started)
        if ended != 0:
            raise failure("failed", output)
        found = _inspect(self._client, tag)
        if found is None:
            raise failure(f"ended well, but the engine has no image {tag}", output)
        return found


@dataclass(frozen=True, slots=True)
class AgentImage:
    """An image with what an agent needs on top of a task's."""

    id: str
    name: str
    installed: str
    """What is installed, such as a package with its version."""
    size: int
    """Bytes, with all that it is built on."""
    in_use: bool
    """Whether a container or a snapshot is made of it."""

    def __str__(self) -> str:
        """Return its name, what is installed and its size."""
        return f"image {self.name} with {self.installed}, {self.size / 1e6:,.0f} MB"


def agent_images(client: APIClient) -> list[AgentImage]:
    """Return the agents' images of an engine, in order of what is installed."""
    with faults("listing the images of agents"):
        containers = client.containers(all=True)
        found = client.images(filters={"label": _OF_AGENTS})
        every = client.images(all=True)
    used = {each.get("ImageID") for each in containers} | {each.get("ParentId") for each in every}
    images = [
        AgentImage(
            id=each["Id"],
            name=each["RepoTags"][0],
            installed=(each.get("Labels") or {}).get(_INSTALLED, "what an agent needs"),
            size=int(each["Size"]),
            in_use=each["Id"] in used,
        )
        for each in found
        # Snapshots inherit the label.
        if any(name.startswith(f"{_AGENTS}:") for name in each.get("RepoTags") or ())
    ]
    return sorted(images, key=lambda image: (image.installed, image.name))


def _takes_buildkit(dockerfile: Path, output: str) -> bool:
    """Tell whether the builder before BuildKit has failed at lines that are part of a here-document."""
    is_older = "unknown instruction" in output and "failed to solve" not in output
    return is_older and "<<" in dockerfile.read_text(errors="replace")


def _hash(task: Task) -> str:
    """Return what stands for the contents of a task's image that is built."""
    build = task.main_build
    salt = () if build is None else (os.path.relpath(build.dockerfile, build.context), *build.options)
    return hash_directory(task.environment_directory, *salt)[:32]


def run_builder(argv: list[str], given: str, deadline: float, wish: BuildWish) -> tuple[int | None, str]:
    """Run a builder to its end, and return its exit code and its output; None for one that the deadline ended.

    Raises:
        BuildError: There is no such program.
        Cancelled: The build is not wanted any more.
    """
    if shutil.which(argv[0]) is None:
        raise BuildError("no 'docker' command on PATH, which builds images; install Docker's command line")
    # A session of its own, so that nothing but this function ends it, with the programs that it has started. It begins
    # when it is told to, which is when something watches over it.
    builder = subprocess.Popen(
        ["sh", "-c", 'read -r begin && exec "$@"', "sh", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={"BUILDKIT_PROGRESS": "plain"} | host_variables(),
        start_new_session=True,
    )
    with builder, _ending_with_session(builder):
        text: str | None = f"begin\n{given}"
        while not wish.cancelled.is_set() and time.monotonic() < deadline:
            try:
                output = builder.communicate(text, timeout=_LOOK)[0]
                return builder.returncode, output
            except subprocess.TimeoutExpired:
                text = None
            except BaseException:
                _end(builder)
                raise
        output = _end(builder)
    if wish.cancelled.is_set():
        raise Cancelled(STOPPED)
    return None, output


@contextlib.contextmanager
def _ending_with_session(builder: subprocess.Popen[str]) -> Iterator[None]:
    """Have a builder end should this process be killed meanwhile, which closes the pipe that a shell reads from."""
    argv = ["sh", "-c", f"read -r done || kill -TERM -{builder.pid}"]
    # In a session of its own: whatever kills this process may kill its whole group.
    with subprocess.Popen(argv, stdin=subprocess.PIPE, text=True, start_new_session=True) as watch:
        try:
            yield
        finally:
            with contextlib.suppress(BrokenPipeError):
                watch.communicate("done\n")


def _end(builder: subprocess.Popen[str]) -> str:
    """End a builder and the programs that it has started, and return what it printed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(builder.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return builder.communicate(timeout=_GRACE)[0]
    return ""


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


def _tail(output: str) -> str:
    return "its last lines were:\n" + "\n".join(output.rstrip().splitlines()[-_SHOWN_LINES:])
