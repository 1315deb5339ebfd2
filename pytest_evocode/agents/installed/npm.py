"""Installs programs of npm packages in a task's image."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.environments import Installation

_SCRIPT = Path(__file__).parent / "install.sh"
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
        return Installation(given["package"], "\n".join([*lines, _SCRIPT.read_text(encoding="utf-8")]))
