"""A task's compose file as it is written: which services it has, where each value stands, and which files it takes in.

What the values mean is for ``docker compose`` to say, where the environment is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.config_text import Keys, innermost, read_mapping
from pytest_evocode.tasks.model import Healthcheck
from pytest_evocode.tasks.text_files import read_text

COMPOSE_FILES = ("docker-compose.yaml", "docker-compose.yml")
MAIN = "main"
"""The service in which the agent works; a compose file need not mention it."""

_BUILD_KEYS = ("context", "dockerfile", "target", "args")
_TIMES = ("interval", "timeout", "start_period")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXTS = ("env_file", "label_file")


class MainBuild(NamedTuple):
    """How the image of ``main`` is built."""

    context: Path
    dockerfile: Path
    options: tuple[str, ...]
    """Options of the builder: the target and the arguments."""


@dataclass(frozen=True, slots=True)
class ComposeFile:
    """The compose file of a task."""

    path: Path
    services: tuple[str, ...]
    """The services that it lists, ``main`` first."""
    lists_all: bool
    """Whether there can be no others: it includes no file."""
    main: Mapping[str, Any]
    """What it says of ``main``, as it is written."""
    lines: Mapping[Keys, int]

    @property
    def has_main_image(self) -> bool:
        """Whether it says what ``main`` is made from."""
        return not {"build", "image", "extends"}.isdisjoint(self.main)

    @property
    def main_image(self) -> str | None:
        """The finished image of ``main``; None where one is built, or task.toml names it."""
        image = self.main.get("image")
        if not isinstance(image, str) or "build" in self.main or "${" in image:
            return None
        return image

    def main_healthcheck(self) -> Healthcheck | None:
        """Return the health check of ``main``; None where there is none. Raises TaskError where it cannot be run."""
        said = self.main.get("healthcheck")
        if not isinstance(said, dict) or "test" not in said or said.get("disable") == "true":
            return None
        test = said["test"]
        words = ["CMD-SHELL", test] if isinstance(test, str) else [str(word) for word in test]
        if any("${" in word.replace("$$", "") for word in words):
            message = "write the values out, or the check into [environment.healthcheck] of task.toml"
            raise self.error(message, "services", MAIN, "healthcheck", "test")
        times = {name: parse_seconds(str(said[name])) for name in _TIMES if name in said}
        words = [word.replace("$$", "$") for word in words]
        return Healthcheck.of_engine(words, **times, retries=int(said.get("retries", 0)))

    def main_build(self) -> MainBuild:
        """Return how the image of ``main`` is built; raises TaskError where it says what cannot be."""
        place = ("services", MAIN, "build")
        said = self.main.get("build")
        table: dict[str, Any] = {"context": said} if isinstance(said, str) else dict(said or {})
        if unknown := table.keys() - _BUILD_KEYS:
            key = min(unknown)
            raise self.error(f"not supported of main; of its build only {', '.join(_BUILD_KEYS)} are", *place, key)
        for variable in ("${CONTEXT_DIR}", "$CONTEXT_DIR"):
            table = {k: each.replace(variable, ".") if isinstance(each, str) else each for k, each in table.items()}
        args = table.get("args") or {}
        pairs = (
            args
            if isinstance(args, list)
            else [name if value is None else f"{name}={value}" for name, value in args.items()]
        )
        root = self.path.parent
        context = (root / str(table.get("context", "."))).resolve()
        dockerfile = (context / str(table.get("dockerfile", "Dockerfile"))).resolve()
        for key, path in (("context", context), ("dockerfile", dockerfile)):
            if not path.is_relative_to(root.resolve()) or "$" in str(table.get(key, "")):
                raise self.error(f"must be a path in {root}, without variables", *place, key)
        if wrong := next((pair for pair in pairs if "$" in pair or "=" not in pair), None):
            raise self.error(f"{wrong}: write the value out; the image is built without variables", *place, "args")
        options = [option for pair in pairs for option in ("--build-arg", pair)]
        if (target := table.get("target")) is not None:
            options += ["--target", str(target)]
        return MainBuild(context, dockerfile, tuple(options))

    def line(self, *keys: str | int) -> int | None:
        """Return the line, from 1, of a value, or of the innermost table around it that is written there."""
        return innermost(self.lines, keys)

    def error(self, message: str, *keys: str | int) -> TaskError:
        """Return an error about a value."""
        shown = ".".join(map(str, keys))
        return TaskError(f"{shown}: {message}" if shown else message, self.path, self.line(*keys))

    def line_of(self, text: str) -> int | None:
        """Return the first line that has a text."""
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((number for number, line in enumerate(lines, 1) if text in line.partition(" #")[0]), None)


def find_compose_file(directory: Path) -> Path | None:
    """Return the compose file in a build context; None without one."""
    found = (directory / name for name in COMPOSE_FILES)
    return next((path for path in found if path.is_file()), None)


def read_compose_file(path: Path) -> ComposeFile:
    """Read a compose file and check what it takes in: no other file than those in its directory.

    Raises:
        TaskError: It cannot be read, or takes in a file from elsewhere.
    """
    values, lines = _read(path)
    services = values.get("services") or {}
    if not isinstance(services, dict) or not all(isinstance(each, dict | None) for each in services.values()):
        raise TaskError("services: must be a table of services", path, lines.get(("services",)))
    _check_files(path, path.parent, {path})
    names = (MAIN, *(str(name) for name in services if name != MAIN))
    return ComposeFile(path, names, "include" not in values, services.get(MAIN) or {}, lines)


def _check_files(path: Path, root: Path, seen: set[Path]) -> None:
    """Refuse a file that ``include`` or ``extends`` takes from outside of a directory."""
    values, lines = _read(path)
    dotenv = path.parent / ".env"  # Compose reads it without being told to, also beside an included file.
    if dotenv.is_symlink() and not dotenv.resolve().is_relative_to(root.resolve()):
        raise TaskError("leads out of the task; copy the file", dotenv)
    for place, named in _taken_in(values):
        key = ".".join(map(str, place))
        line = innermost(lines, place)
        if not isinstance(named, str) or "$" in named or "://" in named or named.startswith(("oci:", "git@")):
            raise TaskError(f"{key}: must be the path of a file in {root}", path, line)
        other = (path.parent / named).resolve()
        if not other.is_relative_to(root.resolve()):
            raise TaskError(f"{key}: {named} is outside of {root}; copy the file into it", path, line)
        if not set(_TEXTS).isdisjoint(place):
            continue  # Whether it has to be there is for compose to say.
        if not other.is_file():
            raise TaskError(f"{key}: there is no file {named}; correct the path", path, line)
        if other not in seen:
            seen.add(other)
            _check_files(other, root, seen)


def _taken_in(values: Mapping[str, Any]) -> Iterator[tuple[Keys, Any]]:
    included = values.get("include") or []
    for index, entry in enumerate(included if isinstance(included, list) else [included]):
        if isinstance(entry, dict):
            for key in ("path", "env_file", "project_directory"):
                named = entry.get(key)
                for each in named if isinstance(named, list) else [named] if named is not None else []:
                    # A directory of a project would have all relative paths lead elsewhere.
                    yield ("include", index, key), each if key != "project_directory" else None
        else:
            yield ("include", index), entry
    services = values.get("services")
    for name, service in services.items() if isinstance(services, dict) else ():
        extends = service.get("extends") if isinstance(service, dict) else None
        if isinstance(extends, dict) and "file" in extends:
            yield ("services", name, "extends", "file"), extends["file"]
        for key in _TEXTS if isinstance(service, dict) else ():
            named = service.get(key)
            for index, each in enumerate(named if isinstance(named, list) else [named] if named is not None else []):
                yield ("services", name, key, index), each.get("path") if isinstance(each, dict) else each


def _read(path: Path) -> tuple[dict[str, Any], dict[Keys, int]]:
    return read_mapping(read_text(path), path, "compose file", as_written=True)


def parse_seconds(duration: str) -> float:
    """Return the seconds of a duration as compose files give it.

    >>> parse_seconds("1m30s"), parse_seconds("500ms"), parse_seconds("2")
    (90.0, 0.5, 2.0)
    """
    parts = re.findall(r"([\d.]+)(us|ms|s|m|h|d)", duration)
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else float(duration)
