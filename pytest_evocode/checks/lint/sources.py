"""The files of a task, found once and read when a rule asks for them; nothing of them is imported or run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import Round, Task

# No script, test or request is longer, and a build context may hold huge data.
READ_LIMIT = 1 << 18


@dataclass(frozen=True)
class SourceFile:
    """A file of a task; ``place`` is its path below the directory it was looked for in, with slashes."""

    path: Path
    place: str

    @cached_property
    def mode(self) -> int:
        """Type and permissions, a link's own; 0 for what has gone."""
        try:
            return os.lstat(self.path).st_mode
        except FileNotFoundError:
            return 0

    @property
    def content(self) -> bytes:
        """The first ``READ_LIMIT`` bytes, of what a link leads to; see ``read``."""
        return self.read(READ_LIMIT)

    @cached_property
    def text(self) -> str:
        """The content as text, whatever it is."""
        return self.content.decode("utf-8", "replace")

    def read(self, limit: int) -> bytes:
        """The first ``limit`` bytes; none of what is no file. Raises TaskError for a file that must not be read."""
        try:
            # Opening a pipe would wait for ever.
            if self.path.is_file():
                with self.path.open("rb") as file:
                    return file.read(limit)
        except OSError as error:
            raise TaskError(f"cannot be read ({error.strerror}); check its permissions", self.path) from error
        return b""

    @property
    def is_script(self) -> bool:
        """Whether it is a regular file that names its interpreter."""
        # Rust's `#![attribute]` is none.
        return stat.S_ISREG(self.mode) and self.read(4).startswith((b"#!/", b"#! /"))

    @property
    def is_executable(self) -> bool:
        """Whether anybody may execute it."""
        return bool(self.mode & 0o111)


@dataclass(frozen=True)
class RoundSources:
    """What a round brings; without tests and workdir for a single-step task, whose tests are the task's."""

    round: Round
    instruction: SourceFile
    solution: tuple[SourceFile, ...]
    workdir: tuple[SourceFile, ...]
    tests: tuple[SourceFile, ...]


class TaskSources:
    """All files of a task, sorted by what they are for."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.configuration = SourceFile(task.file, "task.toml")
        self.environment = _files(task.environment_directory)
        self.shared_tests = _files(task.directory / "tests")
        self.rounds = tuple(self._round(round_) for round_ in task.rounds)

    def _round(self, round_: Round) -> RoundSources:
        is_step = round_.directory != self.task.directory
        return RoundSources(
            round_,
            SourceFile(round_.instruction, "instruction.md"),
            _files(round_.directory / "solution"),
            _files(round_.directory / "workdir") if is_step else (),
            _files(round_.directory / "tests") if is_step else (),
        )

    @property
    def tests(self) -> tuple[SourceFile, ...]:
        """What all verifiers are made of."""
        return (*self.shared_tests, *(file for each in self.rounds for file in each.tests))

    @property
    def hidden(self) -> tuple[SourceFile, ...]:
        """What no agent gets to see: tests and solutions."""
        return (*self.tests, *(file for each in self.rounds for file in each.solution))

    @property
    def given(self) -> tuple[SourceFile, ...]:
        """What agents work with: the build context and what rounds bring."""
        return (*self.environment, *(file for each in self.rounds for file in each.workdir))

    @property
    def beside(self) -> Iterator[SourceFile]:
        """What lies directly in the task's directory and in those of its rounds."""
        for directory in dict.fromkeys([self.task.directory, *(each.round.directory for each in self.rounds)]):
            for name in sorted(os.listdir(directory)):
                if not (directory / name).is_dir():
                    yield SourceFile(directory / name, name)


def _files(directory: Path) -> tuple[SourceFile, ...]:
    """What lies below a directory, links to directories too; nothing where there is none."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise TaskError(f"cannot be read ({error.strerror}); check its permissions", Path(error.filename))

    found = []
    for place, directories, names in os.walk(directory, onerror=refuse):
        directories.sort()
        links = [name for name in directories if os.path.islink(os.path.join(place, name))]
        for name in sorted([*names, *links]):
            path = Path(place, name)
            found.append(SourceFile(path, path.relative_to(directory).as_posix()))
    return tuple(found)
