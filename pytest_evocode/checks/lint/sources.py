"""The files of a task for lint rules, read only when a rule asks for them; none is imported or run.

Modules of native suites are also known by what each defines and imports, read from the source.
"""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_evocode.checks.catalogue import CHEATS
from pytest_evocode.checks.patterns import PATTERNS
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import Round, Task

# Scripts, tests and requests are shorter, and a build context may have huge files.
READ_LIMIT = 1 << 18


@dataclass(frozen=True)
class SourceFile:
    """A file of a task; ``place`` is its path below the directory that it was looked for in, with slashes."""

    path: Path
    place: str

    @cached_property
    def mode(self) -> int:
        """The file's type and permissions, a link's own; 0 where the file has gone."""
        try:
            return os.lstat(self.path).st_mode
        except FileNotFoundError:
            return 0

    @property
    def content(self) -> bytes:
        """The first ``READ_LIMIT`` bytes; see :meth:`read`."""
        return self.read(READ_LIMIT)

    @cached_property
    def text(self) -> str:
        """The content as text, with a replacement for what is not UTF-8."""
        return self.content.decode("utf-8", "replace")

    def read(self, limit: int) -> bytes:
        """Return the first ``limit`` bytes of the file, or of what the link leads to; none where that is not a file.

        Raises:
            TaskError: The file cannot be read.
        """
        try:
            # Opening a pipe would never return.
            if self.path.is_file():
                with self.path.open("rb") as file:
                    return file.read(limit)
        except OSError as error:
            raise TaskError(f"cannot be read ({error.strerror}); check its permissions", self.path) from error
        return b""

    @property
    def is_script(self) -> bool:
        """Whether it is a regular file that names its interpreter."""
        # Rust's `#![attribute]` does not name one.
        return stat.S_ISREG(self.mode) and self.read(4).startswith((b"#!/", b"#! /"))

    @property
    def is_executable(self) -> bool:
        """Whether anybody may execute it."""
        return bool(self.mode & 0o111)


@dataclass(frozen=True)
class RoundSources:
    """The files of one round; a single-step task has its tests in the task's directory, and no workdir."""

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
            _files(round_.solution or round_.directory / "solution"),
            _files(round_.directory / "workdir") if is_step else (),
            _files(round_.directory / "tests") if is_step else (),
        )

    @cached_property
    def dockerfile(self) -> str:
        """The text of the Dockerfile; empty without one."""
        return next((file.text for file in self.environment if file.place == "Dockerfile"), "")

    @cached_property
    def workspace_roots(self) -> tuple[str, ...]:
        """The directories, each ending with a slash, below which an absolute path is the task's own."""
        named = PATTERNS["workdir"].findall(self.dockerfile) + PATTERNS["copied_to"].findall(self.dockerfile)
        named += [str(self.task.config.environment.workdir or "")]
        # A path below /usr or / itself may be the image's, and `/items/list` a route.
        return tuple({root.rstrip("/") + "/" for root in named if root and not PATTERNS["of_the_system"].match(root)})

    @property
    def tests(self) -> tuple[SourceFile, ...]:
        """The files that suites are made of."""
        return (*self.shared_tests, *(file for each in self.rounds for file in each.tests))

    @property
    def hidden(self) -> tuple[SourceFile, ...]:
        """The files that no agent gets to see: tests and solutions."""
        solutions = dict.fromkeys(file for each in self.rounds for file in each.solution)  # Rounds may share one.
        return (*self.tests, *solutions)

    @cached_property
    def cheats(self) -> tuple[SourceFile, ...]:
        """The files of the author's cheats."""
        return _files(self.task.directory / CHEATS)

    @property
    def given(self) -> tuple[SourceFile, ...]:
        """The files that agents work with: the build context and the rounds' workdirs."""
        return (*self.environment, *(file for each in self.rounds for file in each.workdir))

    @property
    def beside(self) -> Iterator[SourceFile]:
        """The files directly in the task's directory and in those of its rounds."""
        for directory in dict.fromkeys([self.task.directory, *(each.round.directory for each in self.rounds)]):
            for name in sorted(os.listdir(directory)):
                if not (directory / name).is_dir():
                    yield SourceFile(directory / name, name)


def parse_python(source: str | bytes) -> ast.Module | None:
    """Return a module's syntax tree; None for what this Python does not understand, because the image's may."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _files(directory: Path) -> tuple[SourceFile, ...]:
    """Return the files below a directory, and links to directories; nothing where it does not exist."""

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


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, eq=False)
class Named:
    """What a name stands for in a module: a function, a class or a value, and the module that it is written in."""

    module: SuiteModule
    node: Definition | ast.expr
    line: int
    """Where the name comes from in the module that uses it: the definition or the import."""


@dataclass(frozen=True, eq=False)
class SuiteModule:
    """A Python file of the task's native suites, at its ``place`` below ``/tests``."""

    suite: SuiteModules
    file: SourceFile
    place: str

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None for what is no valid Python."""
        return parse_python(self.file.content)

    @cached_property
    def names(self) -> dict[str, Named]:
        """The names of the module that are defined in it or imported from another module of the suite."""
        found: dict[str, Named] = {}
        self.__dict__["names"] = found  # Modules may import each other.
        for statement in statements(self.tree.body if self.tree else ()):
            if isinstance(statement, Definition):
                found[statement.name] = Named(self, statement, statement.lineno)
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = Named(self, statement.value, statement.lineno)
            elif isinstance(statement, ast.ImportFrom) and (other := self.suite.imported(self, statement)):
                for name, alias in _imported_names(statement, other):
                    if name in other.names:
                        there = other.names[name]
                        found[alias] = Named(there.module, there.node, statement.lineno)
        return found


class SuiteModules:
    """All Python files of a task's native suites, by their places below ``/tests``."""

    def __init__(self, sources: TaskSources) -> None:
        native = [each for each in sources.rounds if not each.round.has_script]
        files = {file.place: file for file in sources.shared_tests} if native else {}
        files |= {f"{each.round.name}/{file.place}": file for each in native for file in each.tests}
        self.modules = {
            place: SuiteModule(self, file, place) for place, file in files.items() if file.path.suffix == ".py"
        }

    def imported(self, module: SuiteModule, statement: ast.ImportFrom) -> SuiteModule | None:
        """Return the module of the suite that a ``from ... import`` is about; None for any other."""
        return self._at(_base(module, statement).joinpath(*(statement.module or "").split(".")))

    def imports(self, module: SuiteModule) -> Iterator[SuiteModule]:
        """Yield the modules of the suite that a module imports, anywhere in it."""
        for node in ast.walk(module.tree) if module.tree else ():
            paths = []
            if isinstance(node, ast.Import):
                paths = [PurePosixPath(*alias.name.split(".")) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = _base(module, node).joinpath(*(node.module or "").split("."))
                paths = [base, *(base / alias.name for alias in node.names)]
            yield from (found for path in paths if (found := self._at(path)))

    def conftests(self, module: SuiteModule) -> Iterator[SuiteModule]:
        """Yield the ``conftest.py`` of a module's directory and of those above it."""
        for parent in PurePosixPath(module.place).parents:
            if (conftest := self.modules.get(str(parent / "conftest.py"))) is not None:
                yield conftest

    def _at(self, path: PurePosixPath) -> SuiteModule | None:
        return self.modules.get(f"{path}.py") or self.modules.get(str(path / "__init__.py"))


def _base(module: SuiteModule, statement: ast.ImportFrom) -> PurePosixPath:
    """Return the directory below ``/tests`` that a relative import begins at; for others that of all modules."""
    return PurePosixPath(*PurePosixPath(module.place).parts[: -statement.level]) if statement.level else PurePosixPath()


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class in order, those in the bodies of ``if``, ``try`` and ``with`` too."""
    for statement in body:
        yield statement
        if not isinstance(statement, Definition):
            for inner in ast.iter_child_nodes(statement):
                if isinstance(inner, ast.stmt):
                    yield from statements([inner])
                elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                    yield from statements(inner.body)


def _imported_names(statement: ast.ImportFrom, other: SuiteModule) -> Iterator[tuple[str, str]]:
    """Yield the names that a ``from ... import`` takes from a module, and what they are called then."""
    for alias in statement.names:
        if alias.name != "*":
            yield alias.name, alias.asname or alias.name
        else:
            yield from ((name, name) for name in other.names if not name.startswith("_"))
