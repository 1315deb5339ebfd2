"""Installing what an agent needs in a sandbox: one more layer on a task's image, made once per content."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.protocol import Installation
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.environments.sandbox.images import SandboxImage, host_system, keep_as_layer
from pytest_evocode.environments.sandbox.settings import SandboxSettings
from pytest_evocode.environments.sandbox.snapshots import remove_tree
from pytest_evocode.errors import BuildError

logger = logging.getLogger(__name__)

_LIMIT = 900.0  # seconds
_SHOWN_LINES = 20


def with_installation(
    settings: SandboxSettings, image: SandboxImage, installation: Installation | None
) -> SandboxImage:
    """Return an image with an installation on top, which is made when there is none of the same content.

    Raises:
        BuildError: The installation fails.
    """
    if installation is None:
        return image
    built = image.layers[0].parent
    digest = hashlib.sha256(f"{built.name}\0{installation.script}".encode()).hexdigest()[:32]
    directory = built.parent / digest
    if not directory.exists():
        with FileLock(f"{directory}.lock"):
            if not directory.exists():
                _install(settings, image, installation, directory)
    return replace(image, layers=(*image.layers, directory / "added"))


def _install(settings: SandboxSettings, image: SandboxImage, installation: Installation, directory: Path) -> None:
    logger.info("installing %s in %s", installation.name, directory)
    building = Path(tempfile.mkdtemp(prefix=f"{directory.name}.", dir=directory.parent))
    env = {**image.env, "EVOCODE_ENGINE": "sandbox"}
    environment = SandboxEnvironment(settings, image.layers, workdir="/", user="0", env=env, network="public")
    try:
        try:
            environment.start()
            _run(environment, installation)
            keep_as_layer(settings, environment, building / "added")
        finally:
            environment.stop()
        building.rename(directory)
    except BaseException:
        remove_tree(settings.launcher, building)
        raise


def _run(environment: SandboxEnvironment, installation: Installation) -> None:
    done = environment.exec(installation.script, timeout=_LIMIT)
    if not done.ok:
        ending = f"did not end in {_LIMIT:g} s" if done.timed_out else f"ended with exit code {done.exit_code}"
        tail = "\n".join(done.output.rstrip().splitlines()[-_SHOWN_LINES:])
        raise BuildError(
            f"{installation.name} could not be installed in a sandbox, which has the system of this machine "
            f"({host_system()}): its script {ending}. Start Docker and run with --evocode-env=docker, or install what "
            f"is missing here. Its last lines were:\n{tail}"
        )
