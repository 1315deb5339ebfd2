"""Programs of npm packages: which version is the latest, and how one is installed, with what it needs and no more."""

from __future__ import annotations

import json
import logging
import re
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock

from pytest_evocode.environments import Installation
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.tasks.atomic_write import write_atomically

logger = logging.getLogger(__name__)

LATEST = "latest"
_DAY = 86_400.0  # seconds
_LOOKING = 60.0  # seconds
_VERSION = re.compile(r"\d+\.[A-Za-z0-9._+-]+")


def latest_version(package: str) -> str | None:
    """Return the latest version of an npm package as of the last day; None where it cannot be looked up.

    All sessions of this machine share what was found. The version of an earlier day serves where npm does not answer.
    """
    directory = cache_directory() / "latest-versions"
    directory.mkdir(exist_ok=True)
    known = directory / f"{quote(package, safe='')}.json"
    with FileLock(known.with_suffix(".lock")):
        version, looked_up = _read(known)
        if version is not None and 0 <= time.time() - looked_up < _DAY:
            return version
        found = _ask_npm(package)
        if found is None:
            return version
        write_atomically(known, json.dumps({"version": found, "looked_up": time.time()}))
        return found


def _read(path: Path) -> tuple[str | None, float]:
    try:
        values = json.loads(path.read_text())
        return str(values["version"]), float(values["looked_up"])
    except (OSError, ValueError, LookupError, TypeError):  # There is none, or one of a broken write.
        return None, 0.0


def _ask_npm(package: str) -> str | None:
    npm = shutil.which("npm")
    if npm is None:
        logger.warning("%s: there is no npm on this machine to look up its latest version with", package)
        return None
    try:
        asked = subprocess.run(
            [npm, "view", f"{package}@{LATEST}", "version"], capture_output=True, text=True, timeout=_LOOKING, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.warning("%s: npm did not tell its latest version: %s", package, error)
        return None
    version = asked.stdout.strip()
    if asked.returncode != 0 or not _VERSION.fullmatch(version):
        logger.warning("%s: npm did not tell its latest version: %s", package, (asked.stderr or version).strip()[-500:])
        return None
    return version


_INSTALL = Path(__file__).with_name("install.sh")
#: Directory of the programs in the container.
_ROOT = "/opt/evocode"


@dataclass(frozen=True, slots=True)
class NpmProgram:
    """A program of an npm package."""

    package: str
    program: str
    """The program's name in the package."""
    native: tuple[str, ...] = ()
    """Patterns, for ``find``, of the paths of programs in the package that need no Node."""
    above: int = 0
    """Number of directories above such a program that belong to it."""
    node: int = 22
    """Major version of Node that other programs get."""

    @property
    def path(self) -> str:
        """Path of the program in the container."""
        return f"{_ROOT}/{self.program}/program"

    def resolved(self, version: str) -> str:
        """Return the version that ``latest`` is, or the given one; ``latest`` where it cannot be looked up."""
        return (latest_version(self.package) or version) if version == LATEST else version

    def installation(self, version: str) -> Installation:
        """Return what installs a version there."""
        given = {
            "target": f"{_ROOT}/{self.program}",
            "package": f"{self.package}@{version}",
            "program": self.program,
            "native": " ".join(self.native),
            "above": str(self.above),
            "needs_node": str(self.node),
        }
        lines = [f"{name}={shlex.quote(value)}" for name, value in given.items()]
        if version == LATEST:  # What that is changes, and the image is named by the script.
            lines.insert(0, f"# {LATEST} as of {time.strftime('%Y-%m-%d')}")
        return Installation(given["package"], "\n".join([*lines, _INSTALL.read_text(encoding="utf-8")]))
