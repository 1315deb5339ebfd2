"""Find the agent's tests as they are at the end of a round, and the changed parts of the product they reach."""

from __future__ import annotations

import contextlib
import functools
import posixpath
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from pytest_evocode.errors import NoGrammar
from pytest_evocode.process.tests_written import other_languages as others
from pytest_evocode.process.tests_written import python
from pytest_evocode.process.tests_written.code_elements import FunctionCall, Symbol, TestFunction, WrittenTests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles

Element = TypeVar("Element", bound=Symbol)


def written_tests(activity: RoundActivity, roles: FileRoles) -> WrittenTests:
    """Return the tests that the agent wrote or changed in this round or an earlier one, as they are now."""
    functions: list[TestFunction] = []
    find = functools.partial(_find_tests, activity.workspace)
    unread: dict[str, str] = {}
    for path, before in sorted(activity.origin.items()):
        text = activity.workspace.get(path)
        if path in activity.lost and roles.of(path) == "tests":
            unread[path] = "what it came to was not recorded"
        if text is None or not (roles.of(path, text) == "tests" or path.endswith(".rs")) or text == before:
            continue
        try:
            functions += _changed(find, path, before, text)
        except SyntaxError as error:
            unread[path] = f"it does not parse: {error.msg}"
        except NoGrammar as error:
            unread[path] = str(error)
    return WrittenTests(tuple(functions), unread)


def _changed(
    find: Callable[[str, str], Mapping[str, tuple[Element, str]]], path: str, before: str | None, now: str
) -> list[Element]:
    """Return the tests or definitions in a file that were not there before, or not the same."""
    found = find(path, now)
    then: Mapping[str, tuple[Element, str]] = {}
    with contextlib.suppress(SyntaxError, NoGrammar):
        then = find(path, before or "")
    return [element for name, (element, body) in found.items() if name not in then or then[name][1] != body]


def _find_tests(workspace: Mapping[str, str], path: str, text: str) -> dict[str, tuple[TestFunction, str]]:
    if not path.endswith(".py"):
        return others.find_tests(path, text)
    return python.find_tests(path, text, tuple(_conftests(path, workspace)))


def _conftests(path: str, workspace: Mapping[str, str]) -> Iterator[str]:
    directory = posixpath.dirname(path)
    while True:
        found = workspace.get(posixpath.join(directory, "conftest.py"))
        if found is not None and posixpath.basename(path) != "conftest.py":
            yield found
        if not directory:
            return
        directory = posixpath.dirname(directory)


def changed_symbols(activity: RoundActivity, roles: FileRoles) -> tuple[list[Symbol], dict[str, str]]:
    """Return the product's functions and classes that this round added or changed, and the files not parsed.

    Names that begin with an underscore are left out, because they are tested through the others.
    """
    symbols: list[Symbol] = []
    unread: dict[str, str] = {}
    for path, before in sorted(activity.before.items()):
        after = activity.after.get(path)
        if roles.of(path, after or before) != "source":
            continue
        if path in activity.lost:
            unread[path] = "what it came to was not recorded"
        if after is None:
            continue
        try:
            symbols += _changed(_definitions, path, before, after)
        except SyntaxError:
            unread[path] = "it does not parse"
        except NoGrammar as error:
            if posixpath.splitext(path)[1] in _CODE_WITHOUT_GRAMMAR:
                unread[path] = str(error)
    return symbols, unread


_CODE_WITHOUT_GRAMMAR = {
    ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt",
    ".rb", ".php", ".cs", ".swift", ".scala", ".lua", ".pl", ".r", ".jl", ".ex", ".hs", ".ml", ".sh", ".bash", "",
}  # fmt: skip


def _definitions(path: str, text: str) -> dict[str, tuple[Symbol, str]]:
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python") or text.startswith("#!/usr/bin/python"):
        return python.definitions(path, text)
    return others.definitions(path, text)


def covers(test: TestFunction, symbol: Symbol) -> bool:
    """Return whether a test imports and calls a function or class, or a member of the class."""
    return _is_among(test.calls, symbol)


def refers_to(test: TestFunction, symbol: Symbol) -> bool:
    """Return whether a test imports and names a function or class, whether it calls it or not."""
    return _is_among(test.calls | test.uses, symbol)


def _is_among(calls: AbstractSet[FunctionCall], symbol: Symbol) -> bool:
    return any(is_module(call.module, symbol.path) for call in calls if call.name == symbol.name) or any(
        _is_member(call.module, symbol) for call in calls
    )


def _is_member(module: str | None, symbol: Symbol) -> bool:
    """Return whether a member of the class ``symbol``, imported from ``module``, is called."""
    parent, _, name = (module or "").rpartition(".")
    return name == symbol.name and is_module(parent, symbol.path)


def is_module(module: str | None, path: str) -> bool:
    """Return whether an imported module may be a file: the file's own module, or a package above that re-exports it.

    >>> is_module("shop.cart", "src/shop/cart.py"), is_module("shop", "src/shop/cart.py"), is_module("os", "a.py")
    (True, True, False)
    """
    if module is None:
        return True
    if not module:
        return False
    stem = posixpath.splitext(path)[0].removesuffix("/__init__").removesuffix("/index")
    if "/" in module or not path.endswith(".py"):
        return stem == module or stem.endswith(f"/{module}")
    if module.startswith("."):
        return module.strip(".") == "" or f"/{stem}".endswith("/" + module.lstrip(".").replace(".", "/"))
    wanted = module.split(".")
    parts = stem.split("/")
    # Any directory may be on the import path.
    return any(parts[start : start + len(wanted)] == wanted for start in range(len(parts)))
