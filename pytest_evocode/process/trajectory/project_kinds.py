"""Recognise how a project is built and tested, if the task does not say: with pytest, npm, go, cargo or make."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes
from pytest_evocode.tasks import ProcessConfig


@dataclass(frozen=True, slots=True)
class Project:
    """A kind of project, with the shell lines that build and test it; None where there is none."""

    kind: str
    build: str | None
    test: str | None


def recognise_project(texts: Mapping[str, str]) -> Project | None:
    """Return the kind of a project by the texts of its files, those nearest to the top first.

    >>> recognise_project({"go.mod": "", "main.go": ""})
    Project(kind='go', build='go build ./...', test='go test ./...')
    """
    ranked = sorted(texts, key=lambda path: (path.count("/"), path))
    for kind, find in _KINDS:
        for path in ranked:
            if (project := find(path, texts[path])) is not None:
                return project
            if posixpath.basename(path) == kind:
                break  # The nearest decides.
    return None


def _cargo(path: str, text: str) -> Project | None:
    if posixpath.basename(path) == "Cargo.toml":
        return Project("cargo", "cargo build --offline", "cargo test --offline")
    return None


def _go(path: str, text: str) -> Project | None:
    return Project("go", "go build ./...", "go test ./...") if posixpath.basename(path) == "go.mod" else None


def _npm(path: str, text: str) -> Project | None:
    if posixpath.basename(path) != "package.json":
        return None
    try:
        scripts = json.loads(text or "{}").get("scripts", {})
    except (ValueError, AttributeError):
        return None
    build = "npm run build" if "build" in scripts else None
    has_tests = "test" in scripts and "no test specified" not in str(scripts["test"])
    return Project("npm", build, "npm test" if has_tests else None) if build or has_tests else None


_COMPILE = "python3 -m compileall -q -x '(^|/)[.]' ."


def _pytest(path: str, text: str) -> Project | None:
    name = posixpath.basename(path)
    is_test = re.fullmatch(r"test_\w+\.py|\w+_test\.py|pytest\.ini|conftest\.py", name) is not None
    configured = name in ("pyproject.toml", "setup.cfg", "tox.ini") and "pytest" in text
    if is_test or configured:
        return Project("pytest", _COMPILE, "python3 -m pytest -q")
    return None


def _make(path: str, text: str) -> Project | None:
    if posixpath.basename(path) not in ("Makefile", "makefile", "GNUmakefile"):
        return None
    targets = re.findall(r"^([\w.-]+)\s*:(?!=)", text, re.MULTILINE)
    test = next((target for target in ("test", "check", "tests") if target in targets), None)
    first = next((target for target in targets if not target.startswith(".")), None)
    build = "make" if first and first != test else None
    return Project("make", build, f"make {test}" if test else None)


def _python(path: str, text: str) -> Project | None:
    return Project("python", _COMPILE, None) if path.endswith(".py") else None


_KINDS: tuple[tuple[str, Callable[[str, str], Project | None]], ...] = (
    ("Cargo.toml", _cargo), ("go.mod", _go), ("package.json", _npm), ("", _pytest), ("Makefile", _make), ("", _python),
)  # fmt: skip


def roles_of(declared: ProcessConfig) -> FileRoles:
    """Return the roles of files as a task declares them."""
    return FileRoles(declared.source, declared.tests)


def purposes_of(declared: ProcessConfig, project: Project | None) -> CommandPurposes:
    """Return the build and test commands that a task declares, or else those of the kind of project."""
    return CommandPurposes(
        build=declared.build or (project.build if project else None),
        test=declared.test or (project.test if project else None),
    )
