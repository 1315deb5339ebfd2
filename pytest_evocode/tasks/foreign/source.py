"""The directory that a foreign task lies in, outside of which nothing is read, and the YAML files in it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.config_text import Keys, read_mapping
from pytest_evocode.tasks.text_files import unreadable


@dataclass(frozen=True)
class Source:
    """A foreign task's directory."""

    root: Path

    def path(self, place: str, named_at: tuple[Path, int | None] | None = None) -> Path:
        """Return the path of something in the directory, whether or not it exists.

        Args:
            place: Relative to the directory.
            named_at: The file and line that name it.

        Raises:
            TaskError: It is, or a link on the way makes it, outside of the directory.
        """
        path = self.root / place
        if not leads_into(path, self.root):
            at, line = named_at or (path, None)
            message = f"{place} is outside of {self.root}, from which alone files are taken; copy what is meant into it"
            raise TaskError(message, at, line)
        return path

    def text(self, place: str, why: str) -> str:
        """Return the text of a file.

        Args:
            place: Relative to the directory.
            why: What the file is for, for the message where there is none.

        Raises:
            TaskError: There is no such file, or it is not UTF-8.
        """
        path = self.path(place)
        if not path.is_file():
            raise TaskError(f"there is no such file; {why}", path)
        try:
            content = path.read_bytes()
            return content.decode("utf-8-sig")
        except OSError as error:
            raise unreadable(path, error) from error
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise TaskError(f"not UTF-8 (byte 0x{content[error.start]:02x}); save it as UTF-8", path, line) from None

    def comment(self, place: str) -> str:
        """Return the comment that a file begins with, whose lines begin with ``#``: authors ask to keep it."""
        lines = self.text(place, "").splitlines()
        return "".join(f"{line}\n" for line in itertools.takewhile(lambda line: line.startswith("#"), lines))


def leads_into(path: Path, directory: Path) -> bool:
    """Return whether a path, with all links on the way, is in a directory or is the directory itself."""
    try:
        resolved = path.resolve()
        # Links that lead to each other are an error before Python 3.13, and stay what they are since.
        return not resolved.is_symlink() and resolved.is_relative_to(directory.resolve())
    except (OSError, RuntimeError):
        return False


@dataclass(frozen=True)
class YamlTable:
    """A mapping in a YAML file; what is not as it must be is a TaskError with file and line."""

    source: Source
    name: str
    """The path of the file in the source."""
    values: Mapping[str, Any]
    lines: Mapping[Keys, int]
    place: Keys = ()
    """The keys that lead to this mapping."""

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.root / self.name

    def line(self, *keys: str | int) -> int:
        """Return the line, from 1, where a value in this mapping stands."""
        return self.lines.get((*self.place, *keys)) or self.lines.get(self.place, 1)

    def error(self, message: str, *keys: str | int) -> TaskError:
        """Return an error about a value in this mapping, or about the mapping itself."""
        shown = ".".join(map(str, (*self.place, *keys)))
        return TaskError(f"{shown}: {message}" if shown else message, self.path, self.line(*keys))

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text that is not blank; without a ``default``, it must be there."""
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.error("is missing; add it", key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.error("must be text", key)
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; an empty one where there is none."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, str) and each.strip() for each in value):
            raise self.error("must be a list of texts", key)
        return value

    def number(self, key: str) -> float | None:
        """Return a positive number, or None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise self.error("must be a positive number", key)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return a truth value."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error("must be true or false", key)
        return value

    def table(self, key: str) -> YamlTable:
        """Return a mapping; an empty one where there is none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.error("must be a mapping", key)
        return YamlTable(self.source, self.name, value or {}, self.lines, (*self.place, key))

    def environment(self, key: str) -> dict[str, str]:
        """Return a mapping of variables to their texts."""
        table = self.table(key)
        return {name: table.text(name, "") if value != "" else "" for name, value in table.values.items()}


def read_yaml(source: Source, name: str, why: str) -> YamlTable:
    """Read a file whose root is a mapping.

    Args:
        source: Where it lies.
        name: Its path there.
        why: What the file is for, for the message where there is none.

    Raises:
        TaskError: It cannot be read.
    """
    values, lines = read_mapping(source.text(name, why), source.root / name, "description of a task")
    return YamlTable(source, name, values, lines)
