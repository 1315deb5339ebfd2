"""The normal form of a source text, which stays the same where an edit changes nothing that a program does.

So does what only adds names to a Python module that nothing uses: with them, a program does what it did without.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_in(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a module, and those of its classes with the names of these: ``total``, ``Cart.total``."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, Function))


def imported_by(node: ast.AST) -> list[tuple[str, str, str]]:
    """Return what a statement imports: from which module, which name, empty for the module itself, and as what."""
    if isinstance(node, ast.Import):
        return [(alias.name, "", alias.asname or alias.name.partition(".")[0]) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return [(module, alias.name, alias.asname or alias.name) for alias in node.names]
    return []


def idle_names(before: str, versions: Iterable[str], used: frozenset[str]) -> frozenset[str]:
    r"""Return the names that some versions of a module have, the text before has not, and nothing uses.

    They are those of constants, of modules of Python, and of functions whose names begin with an underscore. Whatever
    else is defined may be meant for somebody outside.

    >>> sorted(idle_names("A = 1\n", ["A = 2\nB = 3\nC = 4\nimport os\n", "D = make()\n"], frozenset({"C"})))
    ['B', 'os']
    """
    added = frozenset().union(*(_droppable(text) for text in versions))
    return added - _droppable(before) - used


def names_used(texts: Iterable[str]) -> frozenset[str]:
    r"""Return all names that some Python modules use, strings that may be names among them.

    >>> sorted(names_used(["import os\n\nA = B.c\n__all__ = ['D']\nfrom e import f\n"]))
    ['B', 'D', 'c', 'f']
    """
    return frozenset().union(*map(_used, texts))


def without_names(tree: ast.Module, names: frozenset[str]) -> None:
    """Take the statements out of a module that only define some names."""
    if names:
        tree.body = [node for node in tree.body if not (bound := frozenset(_bound(node))) or not bound <= names]


@functools.lru_cache(maxsize=4096)
def _used(text: str) -> frozenset[str]:
    return frozenset(_uses(tree_of(text)))


def _uses(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (name for _, name, _ in imported_by(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value  # As in __all__, getattr or a table of commands.


@functools.lru_cache(maxsize=4096)
def _droppable(text: str) -> frozenset[str]:
    return frozenset(name for node in tree_of(text).body for name in _bound(node))


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines and that nobody outside is meant to use, if it does nothing else."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if all(isinstance(each, ast.Name) for each in targets) and _is_constant(node.value):
            yield from (each.id for each in targets if isinstance(each, ast.Name) and not _is_special(each.id))
    elif isinstance(node, Function):
        if not node.decorator_list and node.name.startswith("_") and not _is_special(node.name):
            yield node.name
    else:
        imports = imported_by(node)
        modules = {module.partition(".")[0] for module, _, _ in imports}
        if modules <= sys.stdlib_module_names - {"__future__"}:
            yield from (name for _, _, name in imports)


def _is_constant(value: ast.expr | None) -> bool:
    """Return whether to compute a value does nothing else."""
    if value is None:
        return True
    return not any(isinstance(each, ast.Call | ast.Await | ast.NamedExpr | ast.Yield) for each in ast.walk(value))


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def parse(text: str) -> ast.Module:
    """Parse a Python module; raises SyntaxError, also for what ``ast`` reports as another error."""
    try:
        return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error)) from None


def tree_of(text: str) -> ast.Module:
    """Return the tree of a Python module; an empty one if it cannot be parsed."""
    try:
        return parse(text)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


_COMMENT_LINE = re.compile(r"^\s*(?:#(?!!|include|define|if|else|endif|\[)|//|--(?= )|;;).*$", re.MULTILINE)


@functools.lru_cache(maxsize=8192)
def normal_form(path: str, text: str, idle: frozenset[str] = frozenset()) -> str:
    r"""Return a digest of a text without comments, blanks and, in Python, statements that do nothing.

    Args:
        path: The path of the file, which says in what language it is.
        text: Its text.
        idle: Names of a Python module that nothing uses; statements that only define these do nothing either.

    >>> normal_form("a.py", "x = 1  # one\n") == normal_form("a.py", "'Doc.'\n\nx = (1)\npass\n")
    True
    >>> normal_form("a.py", "x = 1\n") == normal_form("a.py", "x = 2\n")
    False
    >>> normal_form("a.py", "x = 1\n") == normal_form("a.py", "x = 1\ny = 2\n", frozenset({"y"}))
    True
    """
    suffix = posixpath.splitext(path)[1].lower()
    shown = _of_python(text, idle) if suffix in (".py", ".pyi") else None
    if shown is None:
        plain = text if suffix in (".md", ".rst", ".txt", ".csv", ".json") else _COMMENT_LINE.sub("", text)
        lines = (line.rstrip() for line in plain.splitlines())
        shown = "\n".join(line for line in lines if line)
    return hashlib.sha256(shown.encode("utf-8", "surrogateescape")).hexdigest()


def _of_python(text: str, idle: frozenset[str]) -> str | None:
    try:
        tree = parse(text)
    except SyntaxError:
        return None
    without_names(tree, idle)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                setattr(node, name, [each for each in body if not _does_nothing(each)])
    return ast.dump(tree)


def _does_nothing(node: ast.AST) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
