"""Lint rules about requirements and tests: tests without a requirement, and what is meant as a test and is none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pytest_evocode.checks.lint.sources import Definition, Named, SuiteModule, SuiteModules, TaskSources, statements
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


_OTHER_RULES = re.compile(r"pytest_pycollect|pytest_collect_file|python_(?:functions|classes)")
"""What a conftest.py mentions that has a say in what is collected."""


def find_uncollected(sources: TaskSources) -> Iterator[TaskError]:
    """Yield functions with a requirement, and classes with one or with tests, that pytest does not collect.

    Only in modules that pytest collects. Nothing is said of what another part of the suite may make a test of.
    """
    suite = SuiteModules(sources)
    uses = _Uses(suite)
    for module in suite.modules.values():
        has_rules = any(_OTHER_RULES.search(each.file.text) for each in suite.conftests(module))
        if is_test_module(PurePosixPath(module.place).name) and module.tree and not has_rules:
            yield from _uncollected(module.tree.body, module, uses)


class _Uses:
    """What the modules of native suites use, of all that they define."""

    def __init__(self, suite: SuiteModules) -> None:
        self.names: set[str] = set()
        self.values: set[str] = set()
        """The names that are used otherwise than to call them, which may give a function another name."""
        self.classes: set[ast.ClassDef] = set()
        """Those that pytest looks for tests in, and those that they inherit from."""
        for module in suite.modules.values():
            nodes = list(ast.walk(module.tree)) if module.tree else []
            called = {node.func for node in nodes if isinstance(node, ast.Call)}
            for node in nodes:
                if isinstance(node, ast.ClassDef) and _is_collected(node.name, node, module):
                    self.classes.update(each for each, _ in _lineage(node, module))
                elif isinstance(node, ast.Name | ast.Attribute):
                    name = node.id if isinstance(node, ast.Name) else node.attr
                    self.names.add(name)
                    if node not in called:
                        self.values.add(name)
                elif isinstance(node, ast.alias) and node.asname:
                    self.names.add(node.name)
                    self.values.add(node.name)


def _uncollected(body: Sequence[ast.stmt], module: SuiteModule, uses: _Uses, prefix: str = "") -> Iterator[TaskError]:
    for node in statements(body):
        message = ""
        if isinstance(node, ast.ClassDef) and node in uses.classes:
            if node.name not in uses.names and _has_tests(node, module) and _has_init(node, module):
                message = "has __init__, so that its tests are not collected; write a fixture in its place"
            else:
                yield from _uncollected(node.body, module, uses, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            if _has_tests(node, module) and not _is_meant(node, module, uses):
                message = f"has tests and is not collected; call it Test{node.name.lstrip('_')}"
        elif isinstance(node, Definition):
            is_called_so = node.name.startswith("test") or node.name in uses.values
            if not is_called_so and _has_requirement(node, module):
                message = f"has a requirement and is not collected; call it test_{node.name.lstrip('_')}"
        if message and isinstance(node, Definition):
            yield TaskError(f"{prefix}{node.name} {message}", module.file.path, node.lineno)


def _has_requirement(node: Definition, module: SuiteModule) -> bool:
    marks = node.decorator_list
    return any(_is_mark(Named(module, each, 0)) for each in marks) and not any(map(_is_fixture, marks))


def _has_tests(node: ast.ClassDef, module: SuiteModule) -> bool:
    """Return whether a class has a requirement, or a test of its own or of a class that it inherits from."""
    return _is_marked_class(node, module) or any(
        isinstance(inner, Definition)
        and not any(map(_is_fixture, inner.decorator_list))
        and (_has_requirement(inner, owner) or inner.name.startswith(("test", "Test")))
        for each, owner in _lineage(node, module)
        for inner in statements(each.body)
    )


def _has_init(node: ast.ClassDef, module: SuiteModule) -> bool:
    """Return whether pytest passes over a class that it would collect, because it cannot make objects of it."""
    lineage = [each for each, _ in _lineage(node, module)]
    bases = {ast.unparse(base).rpartition(".")[2] for each in lineage for base in each.bases}
    return not any(base.endswith("TestCase") for base in bases) and any(
        isinstance(inner, ast.FunctionDef) and inner.name in ("__init__", "__new__")
        for each in lineage
        for inner in each.body
    )


def _is_meant(node: ast.ClassDef, module: SuiteModule, uses: _Uses) -> bool:
    """Return whether a class that is not collected is used, opts out, or has a base that may be collected."""
    return (
        node.name in uses.names
        or any(_assigned(each, "__test__") is not None for each, _ in _lineage(node, module))
        or any(_resolve(base, module) is None for base in node.bases)
    )


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
