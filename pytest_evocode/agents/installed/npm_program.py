"""Programs of npm packages: how a version is found and installed, with what it needs and nothing else."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.agents.installed.latest_version import LATEST, latest_version
from pytest_evocode.environments import Installation

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
