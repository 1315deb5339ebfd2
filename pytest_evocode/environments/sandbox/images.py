"""Sandbox images: the host's own system, or one that the user gave, and what a Dockerfile adds, once per content."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel

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
from pytest_evocode.environments.sandbox.base_system import (
    host_system,
    lay_base,
    lay_directories,
    lay_over_image,
    packages_digest,
)
from pytest_evocode.environments.sandbox.bubblewrap import WHOLE, SandboxSettings, host_below
from pytest_evocode.environments.sandbox.dockerfile import (
    CopyInstruction,
    RunInstruction,
    Stage,
    find_files,
    read_dockerfile,
)
from pytest_evocode.environments.sandbox.environment import PATH, SandboxEnvironment
from pytest_evocode.environments.sandbox.given_images import GivenImage, ImageConfig, full_name
from pytest_evocode.environments.sandbox.launcher_client import Launcher, feed, receive
from pytest_evocode.environments.sandbox.leftovers import DIRECTORIES, GIVEN, IMAGE_RECORD, IMAGES, note_installation
from pytest_evocode.environments.sandbox.snapshots import bytes_of, move_layer, remove_tree
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import BuildError, EnvironmentFault, NeedsDocker
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.content_hash import hash_directory

logger = logging.getLogger(__name__)

#: Raised when an image of the same content would be built differently by this code.
_FORMAT = "12"
_INSTALLING = 900.0  # seconds
_FULL = re.compile(r"No space left on device|^\[killed: less than ", re.MULTILINE)


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

    def __init__(self, settings: SandboxSettings, cache: Path, builds: Builds, given: Mapping[str, GivenImage]) -> None:
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
            self.unpacked(bottom, wish)
        elif self._settings.rootless:
            self.directories_of_host(wish)
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
        image = self._given.get(full_name(named)) if named is not None else None
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
        timeout = task.config.environment.build_timeout_sec
        layers = Replay(self._settings, self, building, timeout, wish).build(stage)
        seconds = time.monotonic() - started
        record = ImageRecord(
            config=stage.config,
            seconds=seconds,
            layers=tuple(os.path.relpath(layer, building) for layer in layers),
            packages=packages_digest(),
        )
        (building / IMAGE_RECORD).write_text(record.model_dump_json())
        logger.info("built the image of %s in %.1f s", task.name, seconds)

    def unpacked(self, image: GivenImage, wish: BuildWish) -> Path:
        """Return the layer with the files of an image that the user gave, which are unpacked unless they are there."""
        kind = "rootless" if self._settings.rootless else "root"
        directory = self._cache / IMAGES / f"{GIVEN}{image.key[:32]}-{kind}"
        # Not ahead: this build may have the slot that it would wait for.
        wish = replace(wish, ahead=False)
        unpack = partial(_unpack, self._settings, image, wish.cancelled)
        self._make_once(str(directory), directory, unpack, wish)
        return directory

    def directories_of_host(self, wish: BuildWish) -> Path:
        """Return the layer of the directories of the host's ``/usr``, without root; it is made unless it is there."""
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


@dataclass(frozen=True, slots=True)
class Replay:
    """The build of one image."""

    settings: SandboxSettings
    images: SandboxImages
    directory: Path
    """For the layers that the image has for itself."""
    timeout: float
    """Seconds that all of its instructions may take."""
    wish: BuildWish
    _layers: dict[int, tuple[Path, ...]] = field(default_factory=dict)
    """Those of the stages so far."""

    def build(self, last: Stage) -> tuple[Path, ...]:
        """Replay a stage and those that it needs, and return its layers, the lowest first.

        Raises:
            BuildError: It cannot be built.
        """
        deadline = time.monotonic() + self.timeout
        needed = last.needed()
        for stage in needed:
            layers = self._base(stage)
            workdir = stage.below.config.workdir if isinstance(stage.below, GivenImage) else "/"
            if stage.steps or (stage is last and workdir != "/"):
                added = self.directory / f"added-{stage.number}"
                with making_layer(self.settings, layers, {}, self.wish.cancelled, added) as environment:
                    environment.put({}, workdir)  # Engines, too, make it where an image does not have it.
                    for step in stage.steps:
                        self._do(step, stage, environment, deadline)
                layers = (*layers, added)
            self._layers[stage.number] = layers
        of_others = {layer for stage in needed for layer in self._layers[stage.number]} - {*self._layers[last.number]}
        remove_tree(self.settings.launcher, *(layer for layer in of_others if layer.parent == self.directory))
        return self._layers[last.number]

    def _base(self, stage: Stage) -> tuple[Path, ...]:
        """Return the layers that a stage begins with."""
        if isinstance(stage.below, Stage):
            return self._layers[stage.below.number]
        base, rootless = self.directory / f"base-{stage.number}", self.settings.rootless
        if stage.below is not None:
            image = self.images.unpacked(stage.below, self.wish)
            lay_over_image(base, image, rootless=rootless)
            return image, base
        tool = stage.promised_tool
        if tool and not shutil.which(tool, path=PATH):
            why = (
                f"FROM {stage.base} promises {tool}, and this system has none below /usr; "
                f"--evocode-image={stage.base}=PATH gives that image"
            )
            raise NeedsDocker(stage.dockerfile, stage.base_line, why)
        lay_base(base, promised_tool=tool, rootless=rootless)
        return (base, self.images.directories_of_host(self.wish)) if rootless else (base,)

    def _do(
        self, step: CopyInstruction | RunInstruction, stage: Stage, environment: SandboxEnvironment, deadline: float
    ) -> None:
        if isinstance(step, CopyInstruction):
            self._copy(step, stage, environment)
            return
        left = max(0.1, deadline - time.monotonic())
        ran = environment.exec(step.argv, cwd=step.workdir, user=step.user, env=step.env, timeout=left)
        self._expect(ran, stage, step.line, step.text, f"did not end in {self.timeout:g} s, the build's")

    def _copy(self, copy: CopyInstruction, stage: Stage, environment: SandboxEnvironment) -> None:
        """Execute COPY or ADD by Docker's rules: a directory's contents, and several sources only into a directory."""
        target = copy.target.rstrip("/") or "/"
        is_there = environment.file_status(f"{target}/.") is not None
        wants_directory = is_there or copy.target.endswith("/")
        if copy.origin is not None:
            names, into_directory = self._copy_from(copy.origin, copy, stage, environment, wants_directory)
        else:
            with scratch_directory() as scratch:
                members, into_directory = find_files(stage.dockerfile, copy, scratch, wants_directory)
                environment.put(members, target if into_directory else os.path.dirname(target))
            names = {name.partition("/")[0] for name in members}
        parent = target if into_directory else os.path.dirname(target)
        copied = [os.path.join(parent, name) for name in names]
        if into_directory and not is_there:
            copied.append(target)
        changes = []
        if copy.owner is not None and not self.settings.rootless:  # Where one user owns every file.
            group = copy.owner if copy.owner.isdigit() else ""
            changes.append(["chown", "-R", copy.owner if ":" in copy.owner else f"{copy.owner}:{group}"])
        if copy.mode is not None:
            changes.append(["chmod", "-R", f"{copy.mode:o}"])
        for change in changes if copied else ():
            self._expect(environment.exec([*change, "--", *copied]), stage, copy.line, " ".join(change))

    def _copy_from(
        self,
        origin: Stage | GivenImage,
        copy: CopyInstruction,
        stage: Stage,
        environment: SandboxEnvironment,
        wants_directory: bool,
    ) -> tuple[set[str], bool]:
        """Copy files of another stage or an image, without a sandbox of that: there may be no program in it.

        Returns:
            The names in the target, and whether they go into it or one is the target itself.
        """
        if isinstance(origin, Stage):
            layers = self._layers[origin.number]
        else:
            layers = (self.images.unpacked(origin, self.wish),)
        host = host_below(layers)
        request = {
            "operation": "pack_from_layers",
            "layers": {
                "": [f"{layer}/root" for layer in reversed(layers)],
                "/usr": [*(f"{layer}/usr" for layer in reversed(layers)), *host],
            },
            "hidden": [str(path) for path in self.settings.hidden if host],
            "patterns": copy.sources,
            "target": copy.target.rstrip("/"),
            "is_directory": wants_directory,
        }
        packed = _pass_on(self.settings.launcher, request, environment)
        if missing := packed.get("missing"):
            said = f"stage {origin.name or origin.number}" if isinstance(origin, Stage) else f"image {origin.name}"
            raise BuildError(f"{stage.dockerfile}:{copy.line}: {missing} is not in the {said}")
        return {*packed["names"]}, packed["is_directory"]

    def _expect(self, result: ExecResult, stage: Stage, line: int, what: str, late: str = "") -> None:
        if not result.ok:
            ending = late if result.timed_out else f"ended with exit code {result.exit_code}"
            image = stage.bottom()
            where = f"replayed on {host_system()}" if image is None else f"on the image {image.name}"
            hint = ", or, where it needs its own base image, start Docker and run with --evocode-env=docker"
            do = f"Correct it{hint if image is None else ''}"
            if _FULL.search(result.output) and self.settings.shortage:
                do = f"There is no room: {self.settings.shortage}"
            raise BuildError(
                f"{stage.dockerfile}:{line}: {where}, '{what}' {ending}. {do}. Its last lines were:\n{result.tail()}"
            )


def _pass_on(launcher: Launcher, request: Mapping[str, object], environment: SandboxEnvironment) -> dict[str, Any]:
    """Unpack in a sandbox what a request to the launcher packs, and return the reply."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream:
        try:
            packing = launcher.begin(request, [writing])
        finally:
            os.close(writing)
        with packing:
            try:
                environment.put_trees((), (), stream)
            except EnvironmentFault:
                stream.close()
                receive(packing)  # Which may have the reason.
                raise
            return receive(packing)


@contextlib.contextmanager
def making_layer(
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
        move_layer(settings.launcher, environment.layers.top, layer)
    finally:
        environment.stop()
