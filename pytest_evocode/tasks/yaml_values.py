"""The values of a YAML file with the line of each, for messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.errors import TaskError

Place = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_LARGEST = 2**20  # characters
_MOST_VALUES = 20_000
"""No file of a task has as many; aliases in a small file can stand for millions."""


def read_mapping(
    text: str, path: Path, what: str, *, as_written: bool = False
) -> tuple[dict[str, Any], dict[Place, int]]:
    """Return the values of a file whose root is a mapping, and their lines, from 1.

    Args:
        text: What is in the file.
        path: The file, for messages.
        what: What a file that is too large is not, for messages.
        as_written: Whether values stay the texts that they are written as, whatever their tags are, and merged
            mappings (``<<``) are taken in. Else values have their types, and each key must be a plain word.

    Raises:
        TaskError: The text is no such file.
    """
    import yaml

    if len(text) > _LARGEST:
        raise TaskError(f"is larger than 1 MiB, so it is no {what}", path)
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        reader = (_WrittenReader if as_written else _Reader)(loader, path, what)
        values = reader.value(root, ()) if root is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise TaskError(f"not valid YAML: {problem}; correct it", path, mark.line + 1 if mark else None) from None
    except RecursionError:
        raise TaskError("not valid YAML: nested too deeply; use fewer levels", path) from None
    except ValueError as error:  # Such as of a date that there is not.
        raise TaskError(f"not valid YAML: {error}; correct it", path) from None
    if not isinstance(values, dict):
        raise TaskError("must be a mapping with a key and a colon in each line; correct it", path, 1)
    return values, reader.lines


class _Reader:
    """Makes values of YAML's nodes, and remembers their lines."""

    def __init__(self, loader: Any, path: Path, what: str) -> None:
        self.loader = loader
        self.path = path
        self.what = what
        self.lines: dict[Place, int] = {}
        self.count = 0

    def value(self, node: Any, place: Place) -> Any:
        """Return the value of a node."""
        line = node.start_mark.line + 1
        self.lines.setdefault(place, line)
        self.count += 1
        if self.count > _MOST_VALUES:
            raise TaskError(f"has more than {_MOST_VALUES} values, so it is no {self.what}", self.path, line)
        if node.id == "scalar":
            return self.scalar(node)
        if node.id == "sequence":
            return [self.value(each, (*place, index)) for index, each in enumerate(node.value)]
        return self.mapping(node.value, place)

    def scalar(self, node: Any) -> Any:
        """Return a value that is no table and no list."""
        return self.loader.construct_object(node)

    def mapping(self, pairs: Sequence[tuple[Any, Any]], place: Place) -> dict[str, Any]:
        """Return a table."""
        values: dict[str, Any] = {}
        for key_node, node in pairs:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if key_node.id != "scalar" or key_node.tag == "tag:yaml.org,2002:merge":
                raise TaskError("keys must be plain words here; write the values out", self.path, line)
            if key in values:
                raise TaskError(f"{key} is given twice; remove one of them", self.path, line)
            self.lines[(*place, key)] = line
            values[key] = self.value(node, (*place, key))
        return values


class _WrittenReader(_Reader):
    def scalar(self, node: Any) -> Any:
        return None if node.tag == "tag:yaml.org,2002:null" else node.value

    def mapping(self, pairs: Sequence[tuple[Any, Any]], place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, node in pairs:
            key = str(key_node.value)
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged = self.value(node, (*place, key))
                for each in merged if isinstance(merged, list) else [merged]:
                    values = {**each, **values} if isinstance(each, dict) else values
                continue
            self.lines[(*place, key)] = key_node.start_mark.line + 1
            values[key] = self.value(node, (*place, key))
        return values
