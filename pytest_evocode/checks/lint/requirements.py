"""Lint rule about tests without a requirement, in tasks whose other tests have one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pytest_evocode.checks.lint.sources import Named, SuiteModule, SuiteModules, TaskSources, statements
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.layout import is_test_module
from pytest_evocode.tasks.native import requirement_marker

_ADVICE = 'write @pytest.mark.requirement("id") above it'


def find_tests_without_requirement(sources: TaskSources) -> Iterator[TaskError]:
    """Yield the tests of native suites that no marker gives a requirement, where the task uses requirements.

    A test may have it from its decorators, from its class or a class above that, or from its module. Where marks are
    made by a program, as in a hook or a fixture, nothing is said.
    """
    if not any(test.requirement for test in sources.task.tests):
        return
    suite = SuiteModules(sources)
    for module in suite.modules.values():
        is_clear = not (
            _makes_marks(module) or any(each.tree and _mentions(each.tree) for each in suite.conftests(module))
        )
        if is_test_module(PurePosixPath(module.place).name) and is_clear:
            yield from _of_module(module)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where pytest comes upon tests: a module, or a class in it, with the marks that hold for all in it."""

    module: SuiteModule
    line: int = 0
    """The line to name; 0 for the test's own."""
    prefix: str = ""
    is_marked: bool = False


def _of_module(module: SuiteModule) -> Iterator[TaskError]:
    place = _Place(module, is_marked="pytestmark" in module.names and _is_mark(module.names["pytestmark"]))
    for name, named in module.names.items():
        line = 0 if named.module is module else named.line
        if isinstance(named.node, ast.ClassDef):
            if _is_collected(name, named.node, named.module):
                yield from _of_class(named.node, named.module, replace(place, line=line))
        elif name.startswith("test") and isinstance(named.node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_function(named.node, named.module, replace(place, line=line))


def _of_class(node: ast.ClassDef, module: SuiteModule, around: _Place) -> Iterator[TaskError]:
    """Yield what is wrong with the tests of a class, its own and those that it inherits."""
    lineage = list(_lineage(node, module))
    is_marked = around.is_marked or any(_is_marked_class(each, owner) for each, owner in lineage)
    place = replace(around, prefix=f"{around.prefix}{node.name}.", is_marked=is_marked)
    seen: set[str] = set()
    for each, owner in lineage:
        # What is inherited is named at the class that inherits it, because that is where pytest comes upon it.
        here = place if each is node else replace(place, line=place.line or node.lineno)
        for statement in statements(each.body):
            if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if statement.name in seen:
                    continue
                seen.add(statement.name)
                if isinstance(statement, ast.ClassDef):
                    if _is_collected(statement.name, statement, owner):
                        yield from _of_class(statement, owner, here)
                elif statement.name.startswith("test"):
                    yield from _of_function(statement, owner, here)


def _of_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, module: SuiteModule, place: _Place
) -> Iterator[TaskError]:
    decorators = node.decorator_list
    if place.is_marked or any(_is_fixture(each) or _is_mark(Named(module, each, 0)) for each in decorators):
        return
    name = place.prefix + node.name
    unmarked = next((line for each in decorators if (line := _unmarked_parameter(each, module))), 0)
    if unmarked and not place.line:
        message = f"{name} has a parameter without a requirement, while others have one; give it marks, too"
        yield TaskError(message, module.file.path, unmarked)
        return
    if place.line:
        name += f", from {module.file.path}:{node.lineno},"
    message = f"{name} has no requirement, while other tests of the task have one; {_ADVICE}"
    yield TaskError(message, place.module.file.path, place.line or node.lineno)


def _lineage(node: ast.ClassDef, module: SuiteModule) -> Iterator[tuple[ast.ClassDef, SuiteModule]]:
    """Yield a class and the classes of the suite that it inherits from, each with its module."""
    queue, seen = [(node, module)], {node}
    while queue:
        each, owner = queue.pop(0)
        yield each, owner
        for base in each.bases:
            named = _resolve(base, owner)
            if named and isinstance(named.node, ast.ClassDef) and named.node not in seen:
                seen.add(named.node)
                queue.append((named.node, named.module))


def _is_collected(name: str, node: ast.ClassDef, module: SuiteModule) -> bool:
    """Return whether pytest looks for tests in a class, by its name or because it is unittest's."""
    lineage = list(_lineage(node, module))
    for each, _ in lineage:
        if (wanted := _assigned(each, "__test__")) is not None:
            if isinstance(wanted, ast.Constant) and not wanted.value:
                return False
            break
    bases = {ast.unparse(base).rpartition(".")[2] for each, _ in lineage for base in each.bases}
    return name.startswith("Test") or any(base.endswith("TestCase") for base in bases)


def _is_marked_class(node: ast.ClassDef, module: SuiteModule) -> bool:
    own = _assigned(node, "pytestmark")
    marks = [*node.decorator_list, *([own] if own is not None else [])]
    return any(_is_mark(Named(module, mark, 0)) for mark in marks)


def _assigned(node: ast.ClassDef, name: str) -> ast.expr | None:
    """Return the value that a class gives a name."""
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return statement.value
    return None


def _resolve(node: ast.expr, module: SuiteModule) -> Named | None:
    """Return what a name stands for; None where that is not of the suite."""
    return module.names.get(node.id) if isinstance(node, ast.Name) else None


def _is_mark(named: Named) -> bool:
    """Return whether a mark, or a list of marks, gives a requirement, or may do so."""
    node, module = named.node, named.module
    if not isinstance(node, ast.expr):
        # A decorator of the suite's own.
        return _mentions(node)
    if requirement_marker(node) is not None:
        return True
    if isinstance(node, ast.List | ast.Tuple):
        return any(_is_mark(Named(module, each, 0)) for each in node.elts)
    if _is_parametrize(node):
        values = _parameters(node, module)
        if values is None:
            return _mentions(node)
        return bool(values) and all(_has_marks(*value) for value in values)
    target = node.func if isinstance(node, ast.Call) else node
    found = _resolve(target, module)
    return found is not None and found.node is not node and _is_mark(found)


def _is_parametrize(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parametrize"


def _parameters(node: ast.expr, module: SuiteModule) -> Sequence[tuple[ast.expr, SuiteModule]] | None:
    """Return the sets of parameters of a ``parametrize``; None where they are not written out."""
    assert isinstance(node, ast.Call)
    given = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "argvalues")]
    if given and (found := _resolve(given[0], module)) is not None and isinstance(found.node, ast.expr):
        given, module = [found.node], found.module
    if not given or not isinstance(given[0], ast.List | ast.Tuple):
        return None
    if any(isinstance(value, ast.Starred) for value in given[0].elts):
        return None
    return [(value, module) for value in given[0].elts]


def _has_marks(value: ast.expr, module: SuiteModule) -> bool:
    """Return whether a set of parameters has marks with a requirement."""
    if (found := _resolve(value, module)) is not None and isinstance(found.node, ast.expr):
        value, module = found.node, found.module
    marks = [each.value for each in value.keywords if each.arg == "marks"] if isinstance(value, ast.Call) else []
    return any(_is_mark(Named(module, mark, 0)) for mark in marks)


def _unmarked_parameter(node: ast.expr, module: SuiteModule) -> int:
    """Return the line of the first parameter without marks of a ``parametrize`` in which others have them, or 0."""
    values = (_parameters(node, module) if _is_parametrize(node) else None) or ()
    unmarked = [value for value, owner in values if not _has_marks(value, owner)]
    return unmarked[0].lineno if 0 < len(unmarked) < len(values) else 0


def _is_fixture(node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(target).rpartition(".")[2] == "fixture"


def _makes_marks(module: SuiteModule) -> bool:
    """Return whether a hook or a fixture of a test module may add marks to tests."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.name.startswith("pytest_") or any(map(_is_fixture, node.decorator_list)))
        and _mentions(node)
        for node in (ast.walk(module.tree) if module.tree else ())
    )


def _mentions(node: ast.AST) -> bool:
    """Return whether the requirement marker is named anywhere in a part of a syntax tree."""
    return any(
        (isinstance(each, ast.Attribute) and each.attr == "requirement")
        or (isinstance(each, ast.Constant) and each.value == "requirement")
        for each in ast.walk(node)
    )
