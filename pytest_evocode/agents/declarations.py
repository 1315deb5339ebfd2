"""Reads the agents and commands that a project declares in its pyproject.toml or ini file."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_evocode.errors import UsageError
from pytest_evocode.tasks.config_text import find_line

_TABLE = ("tool", "pytest-evocode")
_KINDS = ("agents", "commands")
_TAKEN = ("oracle", "nop", "human")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared agent or command.

    It is a table ``[tool.pytest-evocode.agents.NAME]`` of a TOML file, or a section ``[pytest-evocode.agents.NAME]`` of
    an ini file. Paths among its values are relative to the file's directory.
    """

    name: str
    values: Mapping[str, Any]
    path: Path
    line: int

    @property
    def where(self) -> str:
        """File and line, for messages."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Declarations:
    """The agents and commands that a project declares, by name."""

    agents: Mapping[str, Declaration] = field(default_factory=dict)
    commands: Mapping[str, Declaration] = field(default_factory=dict)


def read_declarations(files: Iterable[Path]) -> Declarations:
    """Read the declarations of files, which need not exist; raises UsageError with file and line."""
    found: dict[str, dict[str, Declaration]] = {kind: {} for kind in _KINDS}
    for path in dict.fromkeys(files):
        if not path.is_file():
            continue
        for kind, declaration in _read(path):
            if (other := found[kind].get(declaration.name)) is not None:
                raise UsageError(f"{declaration.where}: {declaration.name!r} is declared in {other.where} as well")
            found[kind][declaration.name] = declaration
    for declaration in found["agents"].values():
        if declaration.name in _TAKEN:
            raise UsageError(f"{declaration.where}: {declaration.name!r} is the name of a built-in agent; take another")
        if not isinstance(declaration.values.get("spec"), str):
            raise UsageError(f'{declaration.where}: {declaration.name!r} has no spec, such as spec = "openai/gpt-5"')
    return Declarations(**found)


def _read(path: Path) -> Iterable[tuple[str, Declaration]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if "pytest-evocode" not in text:
        return
    tables = _toml(path, text) if path.suffix == ".toml" else _ini(path, text)
    for kind, name, values, line in tables:
        if kind not in _KINDS:
            nearest = difflib.get_close_matches(kind, _KINDS, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {' and '.join(_KINDS)}"
            raise UsageError(f"{path}:{line}: {kind!r} cannot be declared; {hint}")
        if not isinstance(values, dict):
            raise UsageError(f"{path}:{line}: {name!r} has to be a table")
        if not _NAME.fullmatch(name):
            raise UsageError(f"{path}:{line}: {name!r} is not a valid name; use letters, digits, '.', '_' and '-'")
        yield kind, Declaration(name, values, path, line)


def _toml(path: Path, text: str) -> Iterable[tuple[str, str, Any, int]]:
    import tomli

    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError:
        return  # pytest has reported it, or does not read this file.
    ours = document.get(_TABLE[0], {}).get(_TABLE[1], {})
    for kind, tables in ours.items():
        if not isinstance(tables, dict):
            raise UsageError(f"{path}:{find_line(text, (*_TABLE, kind))}: {kind!r} has to be a table of tables")
        for name, values in tables.items():
            yield kind, name, values, find_line(text, (*_TABLE, kind, name))


def _ini(path: Path, text: str) -> Iterable[tuple[str, str, Any, int]]:
    from iniconfig import IniConfig, ParseError

    try:
        config = IniConfig(str(path), data=text)
    except ParseError:
        return
    for section in config:
        prefix, _, rest = section.name.partition(".")
        if prefix != "pytest-evocode":
            continue
        kind, _, name = rest.partition(".")
        values = {key: _value(value) for key, value in section.items()}
        yield kind, name, values, config.lineof(section.name) or 1


def _value(text: str) -> Any:
    """Parse a value of an ini file: lists and tables are JSON, all else stays text, which the option converts."""
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
