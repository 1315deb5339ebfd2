"""The normal form of a source text, which stays the same where an edit changes nothing that a program does."""

from __future__ import annotations

import ast
import functools
import hashlib
import posixpath
import re

from pytest_evocode.process.trajectory.idle_names import without_names

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
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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
