"""The tests of failing cases, as they are written in the suites of a task that is still what it was."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.tasks.lockfile import content_hash

_LONGEST = 1 << 20  # bytes of a module
_Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class CaseSources:
    """The tests of a task in Python, for all attempts at it; a module is read once."""

    def __init__(self, directory: Path | None) -> None:
        """Prepare for the task in a directory, which is not read yet; None where it was not found."""
        self._directory = directory
        self._modules: dict[Path, tuple[list[str], ast.Module] | None] = {}

    def of(self, task_hash: str, round_: str, case: str) -> str:
        """Return the test of a case with its file and line before it; empty where it is not known.

        Args:
            task_hash: The contents of the task that the case was run of; of others its tests may differ.
            round_: The round's name.
            case: The case's id, which may be hostile.
        """
        place, _, name = case.partition("::")
        if not name or not task_hash or task_hash != self._hash or self._task is None:
            return ""
        found = next((each for each in self._task.rounds if each.name == round_), None)
        path = None if found is None else _file(self._task, found, place)
        module = None if path is None else self._module(path)
        if path is None or module is None:
            return ""
        lines, tree = module
        test = _find(tree, name.partition("[")[0].split("::"))
        if test is None:
            return ""
        first = min([test.lineno, *(each.lineno for each in test.decorator_list)])
        shown = path.relative_to(self._task.directory.resolve()).as_posix()
        return "\n".join([f"{shown}:{first}", *lines[first - 1 : test.end_lineno]])

    @cached_property
    def _task(self) -> Task | None:
        try:
            return None if self._directory is None else load_task(self._directory, unknown_keys="ignore")
        except (TaskError, OSError):
            return None

    @cached_property
    def _hash(self) -> str:
        return "" if self._task is None else content_hash(self._task.directory)

    def _module(self, path: Path) -> tuple[list[str], ast.Module] | None:
        if path not in self._modules:
            try:
                text = path.read_text(encoding="utf-8") if path.stat().st_size <= _LONGEST else ""
                self._modules[path] = text.split("\n"), ast.parse(text)
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._modules[path] = None
        return self._modules[path]


def _file(task: Task, round_: Round, place: str) -> Path | None:
    """Return the module that a case lies in, by the first part of its id; None for all that is no module of a suite."""
    for directory, below in _places(task.suite(round_), round_.tests, PurePosixPath(place)):
        path, root = (directory / below).resolve(), directory.resolve()
        if path.suffix == ".py" and path.is_relative_to(root) and path.is_file():
            return path if path.is_relative_to(task.directory.resolve()) else None
    return None


def _places(
    native: Mapping[str, Path], script: Sequence[Path], place: PurePosixPath
) -> list[tuple[Path, PurePosixPath]]:
    """Return where a module may lie: what a native suite calls it, or a ``test.sh``, from wherever it starts pytest."""
    first, *rest = place.parts or ("",)
    found = [(native[first], PurePosixPath(*rest))] if rest and first in native else []
    parts = [part for part in place.parts if part not in ("/", "..", "tests")]
    return [*found, *((directory, PurePosixPath(*parts)) for directory in reversed(script))]


def _find(node: _Node, names: Sequence[str]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function with a name in a module, or in the classes that are named before; of several the last."""
    for each in reversed(node.body):
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and each.name == names[0]:
            if len(names) > 1:
                return _find(each, names[1:])
            return None if isinstance(each, ast.ClassDef) else each
    return None
