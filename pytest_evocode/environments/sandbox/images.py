"""Sandbox images: the host's own system plus what a Dockerfile adds, replayed once per content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from pytest_evocode.environments.builds import (
    CERTIFICATES,
    Builds,
    certificates,
    ending_when,
    failed_installation,
    install_script,
    proxies,
)
from pytest_evocode.environments.engines import BuildWish, Installation
from pytest_evocode.environments.programs import ExecResult
from pytest_evocode.environments.sandbox.base_system import host_system, lay_base, lay_directories, packages_digest
from pytest_evocode.environments.sandbox.bubblewrap import SandboxSettings
from pytest_evocode.environments.sandbox.dockerfile import (
    CopyInstruction,
    find_files,
    read_dockerfile,
)
from pytest_evocode.environments.sandbox.environment import PATH, SandboxEnvironment
from pytest_evocode.environments.sandbox.leftovers import IMAGES, note_installation
from pytest_evocode.environments.sandbox.snapshots import bytes_of, remove_tree
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import BuildError, NeedsDocker
from pytest_evocode.tasks import Healthcheck, Task
from pytest_evocode.tasks.content_hash import hash_directory

logger = logging.getLogger(__name__)

#: Raised when an image of the same content would be built differently by this code.
_FORMAT = "8"
_INSTALLING = 900.0  # seconds
_OWN = ("base", "added")  # layers that one image has, in its directory


@dataclass(frozen=True, slots=True)
class SandboxImage:
    """A built image: its layers, the lowest first, and what its Dockerfile set."""

    layers: tuple[Path, ...]
    env: dict[str, str]
    workdir: str
    user: str
    entry_point: tuple[str, ...]
    """The ENTRYPOINT; empty where there is none. That of the FROM image is not known."""
    healthcheck: Healthcheck | None
    """The HEALTHCHECK, as far as that is in the Dockerfile, too."""
    seconds: float
    """How long it took to build."""


class SandboxImages:
    """The images of tasks in sandboxes, and those with what agents need on top, below a cache directory."""

    def __init__(self, settings: SandboxSettings, cache: Path, builds: Builds) -> None:
        self._settings = settings
        self._cache = cache
        self._builds = builds

    def ensure(self, task: Task, installation: Installation | None = None) -> SandboxImage:
        """Find or build a task's image, with an installation on top if there is one; raises BuildError."""
        return self.build(task, installation, BuildWish())[0]

    def size(self, task: Task, installation: Installation | None) -> int:
        """Return the bytes of what was built for a task and installed on top."""
        layers = self.ensure(task, installation).layers
        return bytes_of(self._settings.launcher, *(layer for layer in layers if layer.name in _OWN))

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> tuple[SandboxImage, bool]:
        """Do as :meth:`ensure`, and return whether something had to be built for it, too.

        Raises:
            BuildError: It cannot be built here.
            Cancelled: It is not wanted any more.
        """
        directory = _image_directory(self._settings, self._cache, task)
        assert task.dockerfile is not None
        below = [directory / "base"]
        if self._settings.rootless:
            below.append(directory.with_name(f"directories-{packages_digest()[:20]}"))
            self._make_once(str(below[1]), below[1], lay_directories, wish)
        timeout = task.config.environment.build_timeout_sec
        build = partial(_build, self._settings, task.dockerfile, timeout, wish.cancelled, below[1:])
        # What a failure says depends on where the task is and how long it gives the build.
        made = self._make_once(f"{directory} {task.file} {timeout}", directory, build, wish)
        recorded = json.loads((directory / "image.json").read_text())
        recorded["entry_point"] = tuple(recorded["entry_point"])
        if recorded["healthcheck"] is not None:
            recorded["healthcheck"] = Healthcheck(**recorded["healthcheck"])
        image = SandboxImage((*below, directory / "added"), **recorded)
        if installation is None:
            return image, made
        digest = hashlib.sha256(f"{directory.name}\0{installation.script}".encode()).hexdigest()[:32]
        directory = directory.parent / digest
        install = partial(_install, self._settings, image, installation, wish.cancelled)
        made |= self._make_once(f"{directory} {task.file}", directory, install, wish)
        return replace(image, layers=(*image.layers, directory / "added")), made

    def _make_once(self, name: str, directory: Path, fill: Callable[[Path], None], wish: BuildWish) -> bool:
        """Make a directory of the cache unless it exists, whole or not at all; return whether it was made."""

        def make() -> Path:
            building = Path(tempfile.mkdtemp(prefix=f"{directory.name}.", dir=directory.parent))
            try:
                fill(building)
                return building.rename(directory)
            except BaseException:
                remove_tree(self._settings.launcher, building)
                raise

        directory.parent.mkdir(parents=True, exist_ok=True)
        lock = directory.with_name(f"{directory.name}.lock")
        return self._builds.once(name, lock, lambda: directory if directory.exists() else None, make, wish)[1]


def _install(
    settings: SandboxSettings,
    image: SandboxImage,
    installation: Installation,
    cancelled: threading.Event,
    building: Path,
) -> None:
    logger.info("installing %s in %s", installation.name, building)
    env = {**image.env, **proxies()}
    trusted = certificates(installation)
    with _making_layer(settings, image.layers, env, cancelled, building / "added") as environment:
        if trusted:
            with scratch_directory() as directory:
                (directory / PurePosixPath(CERTIFICATES).name).write_bytes(trusted)
                environment.upload([directory], str(PurePosixPath(CERTIFICATES).parent))
        done = environment.exec(install_script(installation, "sandbox"), timeout=_INSTALLING)
        if not done.ok:
            ending = f"did not end in {_INSTALLING:g} s" if done.timed_out else f"ended with exit code {done.exit_code}"
            where = (
                f"in a sandbox, which has the system of this machine ({host_system()}): its script {ending}. Start "
                "Docker and run with --evocode-env=docker, or install what is missing here"
            )
            raise failed_installation(installation, where, done.output)
    note_installation(building, installation.name)


def _image_directory(settings: SandboxSettings, cache: Path, task: Task) -> Path:
    """Return where the image of the task's environment is or will be, named by its contents."""
    if task.compose is not None:
        line = task.compose.line("services") or 1
        raise NeedsDocker(task.compose.path, line, "the sandbox starts no services of a compose file")
    if gpus := task.config.environment.gpus:
        raise BuildError(
            f"{task.file}: this task needs Docker: environment.gpus = {gpus}, and the sandbox has no GPUs. Start "
            "Docker and run with --evocode-env=docker."
        )
    if task.dockerfile is None and task.config.environment.docker_image is not None:
        raise BuildError(
            f"{task.file}: this task needs Docker: docker_image names a finished image, and the "
            "sandbox can only replay a Dockerfile. Start Docker and run with --evocode-env=docker."
        )
    kind = "rootless" if settings.rootless else "root"
    digest = hash_directory(task.dockerfile_to_build().parent, _FORMAT, kind, packages_digest())
    return cache / IMAGES / digest[:32]


def _build(
    settings: SandboxSettings,
    dockerfile: Path,
    timeout: float,
    cancelled: threading.Event,
    shared: Sequence[Path],
    building: Path,
) -> None:
    logger.info("building the image of %s in %s", dockerfile, building)
    started = time.monotonic()
    replay = read_dockerfile(dockerfile)
    tool = replay.promised_tool
    if tool and not shutil.which(tool, path=PATH):
        why = f"FROM {replay.base} promises {tool}, and this system has none below /usr"
        raise NeedsDocker(dockerfile, replay.base_line, why)
    lay_base(building / "base", promised_tool=tool, rootless=settings.rootless)
    deadline = time.monotonic() + timeout
    with _making_layer(settings, [building / "base", *shared], {}, cancelled, building / "added") as environment:
        for step in replay.steps:
            if isinstance(step, CopyInstruction):
                _copy(dockerfile, step, environment, rootless=settings.rootless)
                continue
            left = max(0.1, deadline - time.monotonic())
            ran = environment.exec(step.argv, cwd=step.workdir, user=step.user, env=step.env, timeout=left)
            _expect(ran, dockerfile, step.line, step.text, f"did not end in {timeout:g} s, the build's")
    seconds = time.monotonic() - started
    image = {name: getattr(replay, name) for name in ("env", "workdir", "user", "entry_point")}
    healthcheck = replay.healthcheck and replay.healthcheck.model_dump()
    (building / "image.json").write_text(json.dumps({**image, "healthcheck": healthcheck, "seconds": seconds}))
    logger.info("built the image of %s in %.1f s", dockerfile, seconds)


@contextlib.contextmanager
def _making_layer(
    settings: SandboxSettings, below: Sequence[Path], env: Mapping[str, str], cancelled: threading.Event, layer: Path
) -> Iterator[SandboxEnvironment]:
    """Start a sandbox, and keep what was written in it as a layer for others when the context ends well."""
    environment = SandboxEnvironment(settings, below, workdir="/", user="0", env=env, network="public", is_build=True)
    try:
        with ending_when(cancelled, environment.stop):
            environment.start()
            yield environment
        environment.remove(["/logs"])
        environment.end(keep_files=True)
        layer.mkdir()
        written = [str(environment.layers.top / name) for name in ("root", "usr")]
        settings.launcher.host_command(["mv", "--", *written, str(layer)])  # A rename would not do between two disks.
        remove_tree(settings.launcher, environment.layers.top)
    finally:
        environment.stop()


def _expect(result: ExecResult, dockerfile: Path, line: int, what: str, late: str = "") -> None:
    if not result.ok:
        ending = late if result.timed_out else f"ended with exit code {result.exit_code}"
        raise BuildError(
            f"{dockerfile}:{line}: replayed on {host_system()}, '{what}' {ending}. Correct it, or, where it needs its "
            f"own base image, start Docker and run with --evocode-env=docker. Its last lines were:\n{result.tail()}"
        )


def _copy(dockerfile: Path, copy: CopyInstruction, environment: SandboxEnvironment, *, rootless: bool) -> None:
    """Execute COPY or ADD by Docker's rules: the contents of a directory, and several sources only into a directory."""
    target = copy.target.rstrip("/") or "/"
    is_there = environment.exec(["test", "-d", target]).ok
    with scratch_directory() as scratch:
        members, into_directory = find_files(dockerfile, copy, scratch, is_there or copy.target.endswith("/"))
        parent = target if into_directory else os.path.dirname(target)
        environment.put(members, parent)
    copied = [os.path.join(parent, name) for name in {name.partition("/")[0] for name in members}]
    if into_directory and not is_there:
        copied.append(target)
    changes = []
    if copy.owner is not None and not rootless:  # A rootless sandbox has one user, who owns every file.
        group = copy.owner if copy.owner.isdigit() else ""
        changes.append(["chown", "-R", copy.owner if ":" in copy.owner else f"{copy.owner}:{group}"])
    if copy.mode is not None:
        changes.append(["chmod", "-R", f"{copy.mode:o}"])
    for change in changes if copied else ():
        _expect(environment.exec([*change, "--", *copied]), dockerfile, copy.line, " ".join(change))
