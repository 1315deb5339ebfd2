"""TOML and YAML as text: where keys stand, for messages, and how a task.toml is written or gets an entry more.

The lines of TOML are found by reading a text a second time once something is wrong with it: neither tomli nor tomlkit
says where a key was. Nor is an entry added with tomlkit: it would be a dependency for one command, it changes the line
ends and the layout around what it adds, and whether the entry came out right can be told by parsing alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, time
from pathlib import Path
from typing import Any, NamedTuple

import tomli

from pytest_evocode.errors import TaskError

Keys = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"'[^']*'")
_MULTILINE = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\r\n]*")


class Span(NamedTuple):
    """Where something is written: offsets into the text, from 0."""

    start: int
    end: int
    """Behind its last character; comments and blank lines after it are not part of it."""


def find_line(text: str, keys: Keys) -> int:
    r"""Return the line, from 1, where ``keys`` is written in ``text``, or that of the nearest table around it.

    ``text`` is valid TOML; numbers in ``keys`` count the entries of arrays from 0.

    >>> find_line("[[steps]]\nname = 'a'\n[[steps]]\n", ("steps", 1, "name"))
    3
    """
    offset = innermost(_Scan(text).offsets, keys)
    return 1 if offset is None else text.count("\n", 0, offset) + 1


def innermost(places: Mapping[Keys, int], keys: Keys) -> int | None:
    """Return the place of a value, or of the innermost table around it that has one; None where none has."""
    return next((places[keys[:length]] for length in range(len(keys), 0, -1) if keys[:length] in places), None)


def find_spans(text: str) -> dict[Keys, Span]:
    r"""Return where each key, table and array entry of a TOML text is written, with all that is below it.

    >>> text = "[[steps]]\nname = 'a'  # one\n\n[[steps]]\nname = 'b'\n"
    >>> text[slice(*find_spans(text)["steps", 0])]
    "[[steps]]\nname = 'a'"
    """
    scan = _Scan(text)
    return {keys: Span(start, scan.ends.get(keys, start)) for keys, start in scan.offsets.items()}


class _Scan:
    """One pass over a TOML text that notes where each key, table and array entry begins and ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.offsets: dict[Keys, int] = {}
        self.ends: dict[Keys, int] = {}
        self.entries: dict[Keys, int] = {}
        self.table: Keys = ()
        # Where this scan fails, what was noted so far still gives the line of a table around the key.
        with suppress(IndexError, ValueError, RecursionError):
            self._document()

    def _document(self) -> None:
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self.text[self.at] == "[":
                self._header()
            else:
                self._pair(self.table)

    def _ended(self, path: Keys) -> None:
        for length in range(1, len(path) + 1):
            self.ends[path[:length]] = self.at

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"not TOML at offset {self.at}")
        self.at = match.end()
        return match[0]

    def _header(self) -> None:
        start = self.at
        brackets = 2 if self.text.startswith("[[", start) else 1
        self.at += brackets
        parts = self._dotted()
        self.at += brackets
        path: Keys = ()
        for position, part in enumerate(parts):
            path = (*path, part)
            self.offsets.setdefault(path, start)
            if brackets == 2 and position == len(parts) - 1:
                self.entries[path] = self.entries.get(path, -1) + 1
            if path in self.entries:
                path = (*path, self.entries[path])
                self.offsets.setdefault(path, start)
        self.table = path
        self._ended(path)

    def _pair(self, table: Keys) -> None:
        start = self.at
        path = table
        for part in self._dotted():
            path = (*path, part)
            self.offsets.setdefault(path, start)
        self.at += 1
        self._skip(_SPACE)
        self._value(path)

    def _dotted(self) -> list[str]:
        parts = []
        while True:
            self._skip(_SPACE)
            parts.append(self._key())
            self._skip(_SPACE)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def _key(self) -> str:
        quote = self.text[self.at]
        if quote == "'":
            return self._skip(_LITERAL)[1:-1]
        if quote == '"':
            written = self._skip(_BASIC)
            try:
                return str(json.loads(written))
            except ValueError:  # TOML's \UXXXXXXXX and \e are not JSON's
                return written[1:-1]
        return self._skip(_BARE)

    def _value(self, path: Keys) -> None:
        first = self.text[self.at]
        if self.text.startswith(('"""', "'''"), self.at):
            self._skip(_MULTILINE)
        elif first == '"':
            self._skip(_BASIC)
        elif first == "'":
            self._skip(_LITERAL)
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            written = self._skip(_SCALAR)
            self.at -= len(written) - len(written.rstrip())
        self._ended(path)

    def _array(self, path: Keys) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "]":
                self.at += 1
                return
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.offsets.setdefault((*path, index), self.at)
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: Keys) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "}":
                self.at += 1
                return
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)


Values = Mapping[str, str | Sequence[str]]

_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?")
# Lines of comments behind an entry are its own unless the next table follows them at once.
_COMMENT_LINES = re.compile(r"(?:\r?\n[ \t]*#[^\r\n]*)+(?=\s*\Z|\r?\n[ \t]*\r?\n)")
_INDENT = re.compile(r"[ \t]*")


def append_table(text: str, keys: Sequence[str], values: Values) -> str:
    r"""Return a TOML text in which the array of tables at ``keys`` has one entry more, written as its last one is.

    >>> append_table("[[steps]]\nname = 'a'  # first\n\n[agent]\n", ["steps"], {"name": "b"})
    '[[steps]]\nname = \'a\'  # first\n\n[[steps]]\nname = "b"\n\n[agent]\n'
    >>> append_table("steps = [{ name = 'a' }]\n", ["steps"], {"name": "b"})
    'steps = [{ name = \'a\' }, { name = "b" }]\n'

    Args:
        text: Valid TOML that has such an array with at least one entry.
        keys: Lead to the array; no array is among those above it.
        values: The keys and values of the entry.

    Raises:
        ValueError: The array is written in a way that this does not understand.
    """
    wanted = tomli.loads(text)
    entries: Any = wanted
    for key in keys:
        entries = entries[key]
    spans, array = find_spans(text), tuple(keys)
    last = spans.get((*array, len(entries) - 1))
    entries.append({key: value if isinstance(value, str) else [*value] for key, value in values.items()})
    if last is not None:
        by_header = text.startswith("[[", last.start)
        new = _append_header(text, last, values) if by_header else _append_inline(text, last, values)
        if _parses_as(new, wanted):
            return new
    raise ValueError(f"{'.'.join(keys)} is written in a way that no entry can be added to")


def _append_header(text: str, last: Span, values: Values) -> str:
    """Add ``[[steps]]`` and its keys behind the last entry."""
    newline, indent = _newline(text), _indent(text, last.start)
    header = text[last.start : text.index("]]", last.start) + 2]
    at = _end_of_line(text, last.end)
    comments = _COMMENT_LINES.match(text, at)
    at = comments.end() if comments else at
    lines = ["", "", indent + header, *(f"{indent}{key} = {_value(value)}" for key, value in values.items())]
    return text[:at] + newline.join(lines) + (text[at:] or newline)


def _append_inline(text: str, last: Span, values: Values) -> str:
    """Add ``{ name = ... }`` behind the last entry between the brackets: on a line of its own if that one has one."""
    entry = "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in values.items()) + " }"
    indent, newline = _indent(text, last.start), _newline(text)
    if text[: last.start].rpartition("\n")[2].strip():
        return f"{text[: last.end]}, {entry}{text[last.end :]}"
    after = _BETWEEN.match(text, last.end)
    if after is not None and text.startswith(",", after.end()):
        at = _end_of_line(text, after.end() + 1)
        return f"{text[:at]}{newline}{indent}{entry},{text[at:]}"
    at = _end_of_line(text, last.end)
    return f"{text[: last.end]},{text[last.end : at]}{newline}{indent}{entry}{text[at:]}"


def _indent(text: str, at: int) -> str:
    """Return the blanks at the beginning of the line that the offset is in."""
    match = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return match[0] if match else ""


def _end_of_line(text: str, at: int) -> int:
    """Return the offset behind the blanks and the comment that follow on the line, if nothing else does."""
    match = _REST_OF_LINE.match(text, at)
    return match.end() if match else at


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _parses_as(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return tomli.loads(text) == wanted
    except tomli.TOMLDecodeError:
        return False


def toml_text(data: Mapping[str, Any]) -> str:
    r"""Return TOML with a table for each mapping, in the order of ``data``; tomli reads the same from it.

    >>> print(toml_text({"source": "here", "agent": {"timeout_sec": 60}, "steps": [{"name": "round-1"}]}), end="")
    source = "here"
    <BLANKLINE>
    [agent]
    timeout_sec = 60
    <BLANKLINE>
    [[steps]]
    name = "round-1"
    """
    return "\n".join(_table(data, "")).lstrip("\n") + "\n"


def _table(data: Mapping[str, Any], path: str) -> Iterator[str]:
    nested = {key: value for key, value in data.items() if _is_table(value) or _is_tables(value)}
    for key, value in data.items():
        if key not in nested:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in nested.items():
        name = f"{path}{_key(key)}"
        for entry in [value] if _is_table(value) else value:
            # A table of nothing but tables needs no heading.
            if not (_is_table(value) and entry and all(_is_table(each) for each in entry.values())):
                yield f"\n[{name}]" if _is_table(value) else f"\n[[{name}]]"
            yield from _table(entry, f"{name}.")


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")


_LARGEST = 2**20  # characters
_MOST_VALUES = 20_000
"""No file of a task has as many; aliases in a small file can stand for millions."""


def read_mapping(
    text: str, path: Path, what: str, *, as_written: bool = False
) -> tuple[dict[str, Any], dict[Keys, int]]:
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
        self.lines: dict[Keys, int] = {}
        self.count = 0

    def value(self, node: Any, place: Keys) -> Any:
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

    def mapping(self, pairs: Sequence[tuple[Any, Any]], place: Keys) -> dict[str, Any]:
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

    def mapping(self, pairs: Sequence[tuple[Any, Any]], place: Keys) -> dict[str, Any]:
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
