"""Sandbox images: the host's own system, or one that the user gave, and what a Dockerfile adds, once per content."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from pytest_evocode.environments.builds import (
    CERTIFICATES,
    Builds,
    certificates,
    failed_installation,
    install_script,
    proxies,
)
from pytest_evocode.environments.engines import BuildWish, Installation
from pytest_evocode.environments.sandbox.base_system import host_system, lay_directories, packages_digest
from pytest_evocode.environments.sandbox.bubblewrap import WHOLE, SandboxSettings, host_below
from pytest_evocode.environments.sandbox.dockerfile import Stage, read_dockerfile
from pytest_evocode.environments.sandbox.given_images import NONE_GIVEN, GivenImage, GivenImages, ImageConfig
from pytest_evocode.environments.sandbox.launcher_client import feed
from pytest_evocode.environments.sandbox.leftovers import DIRECTORIES, GIVEN, IMAGE_RECORD, IMAGES, note_installation
from pytest_evocode.environments.sandbox.replay import Replay, making_layer
from pytest_evocode.environments.sandbox.snapshots import bytes_of, remove_tree
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import BuildError, EnvironmentFault, NeedsDocker
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.content_hash import hash_directory

logger = logging.getLogger(__name__)

#: Raised when an image of the same content would be built differently by this code.
_FORMAT = "12"
_INSTALLING = 900.0  # seconds


class ImageRecord(BaseModel):
    """What is written down of an image that was built."""

    config: ImageConfig
    seconds: float
    """How long it took to build."""
    layers: tuple[str, ...]
    """Where its layers are from here, the lowest first."""
    packages: str
    """Stands for the packages of the machine that it was built on."""


@dataclass(frozen=True, slots=True)
class SandboxImage:
    """A built image."""

    layers: tuple[Path, ...]
    """The lowest first."""
    config: ImageConfig
    """What its Dockerfile set."""
    seconds: float
    """How long it took to build."""
    key: str
    """Stands for its contents."""


class SandboxImages:
    """The images of tasks in sandboxes, and those with what agents need on top, below a cache directory."""

    def __init__(self, settings: SandboxSettings, cache: Path, builds: Builds, given: GivenImages = NONE_GIVEN) -> None:
        self._settings = settings
        self._cache = cache
        self._builds = builds
        self._given = given

    def ensure(self, task: Task, installation: Installation | None = None) -> SandboxImage:
        """Find or build a task's image, with an installation on top if there is one; raises BuildError."""
        return self.build(task, installation, BuildWish())[0]

    def size(self, task: Task, installation: Installation | None) -> int:
        """Return the bytes of what was built for a task and installed on top, with the image that the user gave."""
        layers = self.ensure(task, installation).layers
        own = (layer for layer in layers if not layer.name.startswith(DIRECTORIES))
        return bytes_of(self._settings.launcher, *own)

    def build(self, task: Task, installation: Installation | None, wish: BuildWish) -> tuple[SandboxImage, bool]:
        """Do as :meth:`ensure`, and return whether something had to be built for it, too.

        Raises:
            BuildError: It cannot be built here.
            Cancelled: It is not wanted any more.
        """
        stage = self._read(task)
        directory = self._directory(task, stage)
        # It may be there from before, and what it is made on no more.
        if (bottom := stage.bottom() if stage is not None else None) is not None:
            self._unpacked(bottom, wish)
        elif self._settings.rootless:
            self._directories_of_host(wish)
        timeout = task.config.environment.build_timeout_sec
        build = partial(self._fill, directory, task, stage, wish)
        # What a failure says depends on where the task is and how long it gives the build.
        made = self._make_once(f"{directory} {task.file} {timeout}", directory, build, wish)
        record = ImageRecord.model_validate_json((directory / IMAGE_RECORD).read_text())
        layers = tuple(Path(os.path.normpath(directory / name)) for name in record.layers)
        image = SandboxImage(layers, record.config, record.seconds, key=directory.name)
        if installation is None:
            return image, made
        digest = hashlib.sha256(f"{directory.name}\0{installation.script}".encode()).hexdigest()[:32]
        directory = directory.parent / digest
        install = partial(_install, self._settings, image, installation, wish.cancelled)
        made |= self._make_once(f"{directory} {task.file}", directory, install, wish)
        return replace(image, layers=(*image.layers, directory / "added")), made

    def _read(self, task: Task) -> Stage | None:
        """Return the last stage of the task's Dockerfile; None where that need not be known before it is built."""
        _refuse(task)
        named = task.config.environment.docker_image
        image = self._given.find(named) if named is not None else None
        if image is not None:
            return Stage(task.file, base=image.name, below=image)
        if task.dockerfile is None and named is not None:
            raise BuildError(
                f"{task.file}: this task needs Docker: docker_image names a finished image, and the sandbox can only "
                "replay a Dockerfile. Start Docker and run with --evocode-env=docker, or give the image with "
                f"--evocode-image={named}=PATH."
            )
        dockerfile = task.dockerfile_to_build()
        return read_dockerfile(dockerfile, self._given) if self._given else None

    def _directory(self, task: Task, stage: Stage | None) -> Path:
        """Return where the image of the task's environment is or will be, named by its contents."""
        salt = [_FORMAT, "rootless" if self._settings.rootless else "root", packages_digest()]
        salt += sorted(stage.given()) if stage is not None else ()
        if stage is not None and stage.dockerfile == task.file:  # A finished image.
            digest = hashlib.sha256("\0".join(salt).encode()).hexdigest()
        else:
            digest = hash_directory(task.dockerfile_to_build().parent, *salt)
        return self._cache / IMAGES / digest[:32]

    def _fill(self, directory: Path, task: Task, stage: Stage | None, wish: BuildWish, building: Path) -> None:
        """Build the image of a task in a directory that will be ``directory``."""
        logger.info("building the image of %s in %s", task.name, building)
        started = time.monotonic()
        if stage is None:
            stage = read_dockerfile(task.dockerfile_to_build())
        replay = Replay(
            self._settings,
            building,
            task.config.environment.build_timeout_sec,
            wish.cancelled,
            partial(self._unpacked, wish=wish),
            partial(self._directories_of_host, wish),
        )
        layers = replay.build(stage)
        seconds = time.monotonic() - started
        record = ImageRecord(
            config=stage.config,
            seconds=seconds,
            layers=tuple(os.path.relpath(layer, building) for layer in layers),
            packages=packages_digest(),
        )
        (building / IMAGE_RECORD).write_text(record.model_dump_json())
        logger.info("built the image of %s in %.1f s", task.name, seconds)

    def _unpacked(self, image: GivenImage, wish: BuildWish) -> Path:
        """Return the layer with the files of an image that the user gave, which are unpacked unless they are there."""
        kind = "rootless" if self._settings.rootless else "root"
        directory = self._cache / IMAGES / f"{GIVEN}{image.key[:32]}-{kind}"
        # Not ahead: this build may have the slot that it would wait for.
        wish = replace(wish, ahead=False)
        unpack = partial(_unpack, self._settings, image, wish.cancelled)
        self._make_once(str(directory), directory, unpack, wish)
        return directory

    def _directories_of_host(self, wish: BuildWish) -> Path:
        directory = self._cache / IMAGES / f"{DIRECTORIES}{packages_digest()[:20]}"
        self._make_once(str(directory), directory, lay_directories, replace(wish, ahead=False))
        return directory

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


def _unpack(settings: SandboxSettings, image: GivenImage, cancelled: threading.Event, building: Path) -> None:
    """Unpack the layers of an image one over the other, and mark the result as a whole system."""
    logger.info("unpacking the image %s in %s", image.path, building)
    root = building / "root"
    root.mkdir()
    root.chmod(0o755)
    launcher = settings.launcher
    request = {"operation": "apply_layer", "root": str(root), "rootless": settings.rootless}
    try:
        for digest, file in image.layers:
            feed(lambda pipe: launcher.begin(request, [pipe]), partial(image.copy_layer, digest, file, cancelled))
        launcher.ask({"operation": "part_usr", "root": str(root), "usr": str(building / "usr")})
    except BuildError:
        raise
    except EnvironmentFault as error:  # Which once() knows for what it is where the build was cancelled.
        raise BuildError(f"the image {image.path} cannot be unpacked: {error}") from error
    (building / WHOLE).write_text(f"{image.digest}\n")


def _install(
    settings: SandboxSettings,
    image: SandboxImage,
    installation: Installation,
    cancelled: threading.Event,
    building: Path,
) -> None:
    logger.info("installing %s in %s", installation.name, building)
    env = {**image.config.env, **proxies()}
    trusted = certificates(installation)
    with making_layer(settings, image.layers, env, cancelled, building / "added") as environment:
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
                if host_below(image.layers)
                else f"in a sandbox of the given image: its script {ending}"
            )
            raise failed_installation(installation, where, done.output)
    note_installation(building, installation.name)


def _refuse(task: Task) -> None:
    """Raise BuildError for a task that takes Docker whatever its image is."""
    if task.compose is not None:
        line = task.compose.line("services") or 1
        raise NeedsDocker(task.compose.path, line, "the sandbox starts no services of a compose file")
    if gpus := task.config.environment.gpus:
        raise BuildError(
            f"{task.file}: this task needs Docker: environment.gpus = {gpus}, and the sandbox has no GPUs. Start "
            "Docker and run with --evocode-env=docker."
        )
