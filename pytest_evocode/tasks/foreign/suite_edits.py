"""Edits of foreign test modules, made in their text and found by their syntax tree; no module is imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.errors import TaskError

_Function = ast.FunctionDef | ast.AsyncFunctionDef

ADDED = "added by evocode new --from"
"""What comments say of lines that are not the authors' own."""


@dataclass(frozen=True)
class Marking:
    """What is said of each test of a module."""

    requirement: str
    kinds: Mapping[str, str]
    """Our kind of a test, by a marker that it has; the first of them that it has counts."""
    default_kind: str
    retired: str
    """The round from which on the tests are not required; empty for never."""
    timeout: float | None
    """Seconds for each test that says nothing else."""


class TestModule:
    """A test module, as text that is edited line by line."""

    __test__ = False  # Its name would have pytest collect it.

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._lines = text.splitlines(keepends=True)
        self._tree = parse(path, text)
        self._before: dict[int, list[str]] = {}
        """New lines, by the line that they stand before."""

    def mark_tests(self, marking: Marking) -> int:
        """Write a requirement marker above each test, and return how many there are."""
        tests = [*_tests(self._tree.body, frozenset(_module_markers(self._tree)))]
        for function, markers in tests:
            kind = next((kind for name, kind in marking.kinds.items() if name in markers), marking.default_kind)
            arguments = [f'"{marking.requirement}"']
            arguments += [f'kind="{kind}"'] if kind else []
            arguments += [f'retired="{marking.retired}"'] if marking.retired else []
            first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
            indent = " " * function.col_offset
            lines = [f"{indent}@pytest.mark.requirement({', '.join(arguments)})\n"]
            if marking.timeout and "timeout" not in markers:
                lines.append(f"{indent}@pytest.mark.timeout({marking.timeout:g})\n")
            self._before.setdefault(first, []).extend(lines)
        if tests and not _imports_pytest(self._tree):
            self._at_top("import pytest")
        return len(tests)

    def set_file(self, levels: int) -> bool:
        """Have a module that uses ``__file__`` see a path that is some directories higher; return whether it does."""
        if not any(isinstance(node, ast.Name) and node.id == "__file__" for node in ast.walk(self._tree)):
            return False
        self._at_top("import pathlib", f"__file__ = str(pathlib.Path(__file__).parents[{levels}] / {self.path.name!r})")
        return True

    def import_from_above(self) -> None:
        """Have the module import by their names the modules that were beside it, and are a directory higher now."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                relative, absolute = ("from .", "from ") if node.module else ("from . import", "import")
                line = self._lines[node.lineno - 1]
                self._lines[node.lineno - 1] = line[: node.col_offset] + line[node.col_offset :].replace(
                    relative, absolute, 1
                )

    def text(self) -> str:
        """Return the module with all edits."""
        edited: list[str] = []
        for number, line in enumerate([*self._lines, ""], start=1):
            edited += [*self._before.get(number, ()), line]
        return "".join(edited)

    def _at_top(self, *statements: str) -> None:
        """Write statements below the docstring and what has to stand above all others."""
        line = 1
        for node in self._tree.body:
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                line = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
                break
        self._before.setdefault(line, [])[:0] = [f"{statement}  # {ADDED}\n" for statement in statements]


def parse(path: Path, text: str) -> ast.Module:
    """Return the syntax tree of a module.

    Raises:
        TaskError: This Python cannot parse it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        message = f"this Python cannot parse it ({error.msg}); correct it, or import with the Python it is written for"
        raise TaskError(message, path, error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise TaskError(f"cannot be parsed ({error}); correct it", path) from None


def imported_packages(trees: Collection[ast.Module]) -> set[str]:
    r"""Return the first names of all absolute imports, wherever they are in some modules.

    >>> sorted(imported_packages([ast.parse("import a.b, c\nfrom d.e import f\nfrom . import g")]))
    ['a', 'c', 'd']
    """
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _tests(body: list[ast.stmt], around: frozenset[str]) -> Iterator[tuple[_Function, frozenset[str]]]:
    """Yield the test functions of a module or class, each with the markers of its own and around it."""
    for node in body:
        if isinstance(node, _Function):
            if node.name.startswith("test"):
                yield node, around | _markers(node.decorator_list)
        elif isinstance(node, ast.ClassDef):
            if node.name.startswith("Test"):
                yield from _tests(node.body, around | _markers(node.decorator_list))
        else:
            for inner in ast.iter_child_nodes(node):  # The bodies of if, try and with.
                if isinstance(inner, ast.stmt):
                    yield from _tests([inner], around)


def _module_markers(tree: ast.Module) -> frozenset[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(to, ast.Name) and to.id == "pytestmark" for to in node.targets
        ):
            return _markers(node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value])
    return frozenset()


def _markers(expressions: list[ast.expr]) -> frozenset[str]:
    """Return the names of those expressions that are markers of pytest."""
    functions = [each.func if isinstance(each, ast.Call) else each for each in expressions]
    return frozenset(
        each.attr
        for each in functions
        if isinstance(each, ast.Attribute)
        and (getattr(each.value, "attr", "") == "mark" or getattr(each.value, "id", "") == "mark")
    )


def _imports_pytest(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Import) and any(alias.name == "pytest" and not alias.asname for alias in node.names)
        for node in tree.body
    )


_HOOK = "pytest_addoption"
_ITS_OWN = "_addoption_of_slopcodebench"
_GIVING = """

# {added}: SlopCodeBench's runner gives these two options, and here they have defaults.
_CHECKPOINTS = {checkpoints!r}


class _OptionsWithDefaults:
    def __init__(self, parser):
        import os

        self._parser = parser
        self._given = {{"--entrypoint": {entrypoint!r}, "--checkpoint": _CHECKPOINTS[os.environ["EVOCODE_ROUND"]]}}

    def addoption(self, *names, **settings):
        for name in names:
            if name in self._given:
                settings.pop("required", None)
                settings["default"] = self._given[name]
        self._parser.addoption(*names, **settings)

    def getgroup(self, *arguments, **settings):
        return _OptionsWithDefaults(self._parser.getgroup(*arguments, **settings))

    def __getattr__(self, name):
        return getattr(self._parser, name)


def pytest_addoption(parser):
    {its_own}(_OptionsWithDefaults(parser))
"""


def give_options(path: Path, text: str, entrypoint: str, checkpoints: Mapping[str, str]) -> str:
    """Return a conftest.py whose options have the values that SlopCodeBench's runner would give.

    Args:
        path: Its file, for messages.
        text: Its text.
        entrypoint: The command that starts the program.
        checkpoints: The checkpoint of each round, by the round's name, in order.

    Raises:
        TaskError: This Python cannot parse it.
    """
    hook = next((node for node in parse(path, text).body if _is_hook(node)), None)
    if hook is None:
        return text
    lines = text.splitlines(keepends=True)
    lines[hook.lineno - 1] = lines[hook.lineno - 1].replace(_HOOK, _ITS_OWN, 1)
    giving = _GIVING.format(added=ADDED, checkpoints=dict(checkpoints), entrypoint=entrypoint, its_own=_ITS_OWN)
    return "".join(lines).rstrip("\n") + "\n" + giving


def _is_hook(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == _HOOK
