"""Replays the stages of a Dockerfile in sandboxes, each of which leaves a layer, and copies files between them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evocode.environments.builds import ending_when
from pytest_evocode.environments.programs import ExecResult
from pytest_evocode.environments.sandbox.base_system import host_system, lay_base, lay_over_image
from pytest_evocode.environments.sandbox.bubblewrap import SandboxSettings, host_below
from pytest_evocode.environments.sandbox.dockerfile import CopyInstruction, RunInstruction, Stage, find_files
from pytest_evocode.environments.sandbox.environment import PATH, SandboxEnvironment
from pytest_evocode.environments.sandbox.given_images import GivenImage
from pytest_evocode.environments.sandbox.launcher_client import Launcher, receive
from pytest_evocode.environments.sandbox.snapshots import move_layer, remove_tree
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import BuildError, EnvironmentFault, NeedsDocker

_FULL = re.compile(r"No space left on device|^\[killed: less than ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Replay:
    """The build of one image."""

    settings: SandboxSettings
    directory: Path
    """For the layers that the image has for itself."""
    timeout: float
    """Seconds that all of its instructions may take."""
    cancelled: threading.Event
    unpack: Callable[[GivenImage], Path]
    """Finds or makes the layer of an image that the user gave."""
    lay_directories: Callable[[], Path]
    """Finds or makes the layer of the directories of the host's ``/usr``, without root."""
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
                with making_layer(self.settings, layers, {}, self.cancelled, added) as environment:
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
            image = self.unpack(stage.below)
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
        return (base, self.lay_directories()) if rootless else (base,)

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
        layers = self._layers[origin.number] if isinstance(origin, Stage) else (self.unpack(origin),)
        host = host_below(layers)
        files = {
            "layers": {
                "": [f"{layer}/root" for layer in reversed(layers)],
                "/usr": [*(f"{layer}/usr" for layer in reversed(layers)), *host],
            },
            "hidden": [str(path) for path in self.settings.hidden if host],
        }
        launcher = self.settings.launcher
        asked = {"operation": "find_in_layers", **files, "patterns": copy.sources}
        found: list[tuple[str, list[str] | None]] = []
        for source, paths in zip(copy.sources, launcher.ask(asked)["found"], strict=True):
            if not paths:
                said = f"stage {origin.name or origin.number}" if isinstance(origin, Stage) else f"image {origin.name}"
                raise BuildError(f"{stage.dockerfile}:{copy.line}: {source} is not in the {said}")
            found += [(path, inside) for path, inside in paths]
        into_directory = wants_directory or len(found) > 1 or found[0][1] is not None
        target = copy.target.rstrip("/")
        names: set[str] = set()
        members: list[tuple[str, str]] = []
        for path, inside in found:
            own = os.path.basename(path) if into_directory else os.path.basename(target)
            names |= {own} if inside is None else {*inside}
            members.append((path, f"{target}/{own}" if inside is None and into_directory else target))
        _pass_on(launcher, {"operation": "pack_from_layers", **files, "members": members}, environment)
        return names, into_directory

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


def _pass_on(launcher: Launcher, request: Mapping[str, object], environment: SandboxEnvironment) -> None:
    """Unpack in a sandbox what a request to the launcher packs."""
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
            receive(packing)


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
