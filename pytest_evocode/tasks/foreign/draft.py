"""A task that is being put together from foreign files, with notes on what could not be carried over."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evocode.errors import TaskError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.tasks.config_text import toml_text
from pytest_evocode.tasks.content_hash import is_dropping
from pytest_evocode.tasks.foreign.source import YamlTable, leads_into
from pytest_evocode.tasks.schema import SCHEMA_FILE


@dataclass(frozen=True)
class Note:
    """One thing that was not carried over as it is: where it stands, what and why, and what the author has to do."""

    path: Path
    line: int | None
    what: str
    do: str
    """Empty for nothing."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.what}" + (f"; {self.do}" if self.do else "")


@dataclass
class Draft:
    """The files of a new task below ``directory``, which becomes the task once all of them are written."""

    directory: Path
    name: str
    """What the task will be called."""
    notes: list[Note] = field(default_factory=list)
    rounds: list[tuple[str, str]] = field(default_factory=list)
    """Each round's name, and what it was made from."""

    def note(self, path: Path, what: str, do: str = "", *, line: int | None = None) -> None:
        """Remember what could not be carried over; see :class:`Note`."""
        self.notes.append(Note(path, line, what, do))

    def note_key(self, table: YamlTable, key: str, what: str, do: str = "") -> None:
        """Remember the same of a key of a table."""
        self.note(table.path, f"{key}: {what}", do, line=table.line(key))

    def note_others(self, table: YamlTable, known: Collection[str]) -> None:
        """Remember the keys of a table that are not known, for which there is nothing in a task."""
        for key in table.values:
            if key not in known:
                self.note_key(table, key, "has no counterpart here")

    def add_round(self, source: str) -> str:
        """Add a round that is made from ``source``, and return its name."""
        name = f"round-{len(self.rounds) + 1}"
        self.rounds.append((name, source))
        return name

    def write(self, place: str, text: str, *, executable: bool = False) -> None:
        """Write a file of the task."""
        path = self._target(place)
        path.write_text(text, encoding="utf-8", newline="")
        if executable:
            path.chmod(path.stat().st_mode | 0o111)

    def write_configuration(self, data: Mapping[str, Any], comment: str = "") -> None:
        """Write task.toml, below a comment whose lines begin with ``#``, and its schema for editors."""
        self.write(SCHEMA_FILE.name, SCHEMA_FILE.read_text(encoding="utf-8"))
        self.write(TASK_FILE, f"#:schema ./{SCHEMA_FILE.name}\n{comment}{toml_text(data)}")

    def link(self, place: str, to: str) -> bool:
        """Write a link to a path in the container, unless there is something already; return whether it was written."""
        path = self._target(place)
        if not os.path.lexists(path):
            path.symlink_to(to)
            return True
        return False

    def copy(self, source: Path, place: str, *, executable: bool = False) -> None:
        """Copy a file, or a directory with all that is in it but what tools leave behind.

        A file is made ``executable`` where that is asked for, whatever its mode is.

        Raises:
            TaskError: A link leads out of the directory, or something is neither a file nor a directory.
        """
        if source.is_symlink():
            # What it leads to was looked at by whoever found it; see Source.
            source = source.resolve()
        if not source.is_dir():
            _copy_entry(source, target := self._target(place), source.parent)
            if executable:
                target.chmod(target.stat().st_mode | 0o111)
            return
        self._target(place).mkdir(exist_ok=True)
        for path in entries(source):
            _copy_entry(path, self._target(f"{place}/{path.relative_to(source).as_posix()}"), source)

    def _target(self, place: str) -> Path:
        """Return where a file of the task is written, its directory made."""
        parts = PurePosixPath(place).parts
        if not parts or ".." in parts or place.startswith("/"):
            raise ValueError(f"{place} is no place in a task")
        path = self.directory.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def entries(directory: Path) -> Iterator[Path]:
    """Yield all that is below a directory, without what tools leave behind; directories before what is in them."""
    for place, names, files in os.walk(directory):
        names[:] = sorted(name for name in names if not is_dropping(name))
        yield from (Path(place, name) for name in sorted([*names, *files]) if not is_dropping(name))


def _copy_entry(source: Path, target: Path, root: Path) -> None:
    mode = source.lstat().st_mode
    if stat.S_ISLNK(mode):
        to = os.readlink(source)
        if os.path.isabs(to) or not leads_into(source, root):
            raise TaskError(f"is a link to {to}, which is outside of {root}; put what is meant in its place", source)
        target.symlink_to(to)
    elif stat.S_ISDIR(mode):
        target.mkdir(exist_ok=True)
    elif stat.S_ISREG(mode):
        target.write_bytes(source.read_bytes())
        target.chmod(target.stat().st_mode | (mode & 0o111))
    else:
        raise TaskError("is neither a file nor a directory; remove it", source)
