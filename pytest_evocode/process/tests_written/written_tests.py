"""Find the agent's tests as they are at the end of a round, and the parts of the product that are reached and of use.

A new source file is of use when the request names it, or when a file that is of use imports or names it. A file of
tests is of use when a test in it can fail. Whatever else an agent leaves behind, such as scripts for a look at
something and files that nothing imports, is neither an edit of the product nor a state of it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from pytest_evocode.errors import NoGrammar
from pytest_evocode.process.rules import FILES
from pytest_evocode.process.tests_written import other_languages as others
from pytest_evocode.process.tests_written import python
from pytest_evocode.process.tests_written.code_elements import FunctionCall, Symbol, TestFunction, WrittenTests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.normal_forms import imported_by, parse

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
    # Whoever writes what cannot run, or what nobody can read beside a product that can be read, has written no tests.
    ours = {posixpath.splitext(path)[1] for path in activity.origin if roles.of(path) == "source"} - {".py"}
    unknown = {path for path in unread if path in activity.lost or posixpath.splitext(path)[1] in ours}
    return WrittenTests(tuple(functions), unread, frozenset(unknown))


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
            if posixpath.splitext(path)[1] in FILES.words["code_without_grammar"]:
                unread[path] = str(error)
    return symbols, unread


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


def used_files(activity: RoundActivity, roles: FileRoles, tests: WrittenTests) -> frozenset[str]:
    """Return the files of the product and its tests that are of use, of all that the attempt has changed."""
    changed = {**activity.origin, **{path: None for path in activity.before if path not in activity.origin}}
    texts = activity.workspace
    role = {path: roles.of(path, texts.get(path) or before) for path, before in changed.items()}
    new = {path for path in changed if role[path] == "source" and activity.origin.get(path) is None}
    new -= activity.lost  # They were there before: their texts are not known.
    verifying = tests.verifying_paths
    used = {path for path in changed if role[path] == "source" and path not in new}
    used |= {path for path in changed if role[path] == "tests" and _is_used_test(path, changed[path], verifying)}
    told = [activity.instruction, *activity.requests]
    speaking = [(path, text) for path, text in texts.items() if path not in changed or path in used]
    # Of a file whose text is not known, the lines that were added to it are.
    lost = [edit for edit in activity.edits if edit.path in activity.lost]
    speaking += [(edit.path, "".join(line for hunk in edit.hunks for line in hunk.added)) for edit in lost]
    waiting = {path for path in new if not FILES.find(path, "found_by_name") and not _is_named(path, told)}
    speaking += [(path, texts.get(path, "")) for path in new - waiting]
    used |= new - waiting
    while speaking:
        found = {path for path in waiting if any(_uses(user, text, path) for user, text in speaking)}
        waiting -= found
        used |= found
        speaking = [(path, texts.get(path, "")) for path in found]
    return frozenset(used)


def _is_used_test(path: str, before: str | None, verifying: set[str]) -> bool:
    return before is not None or path in verifying or posixpath.basename(path) in ("conftest.py", "__init__.py")


def _is_named(path: str, texts: list[str]) -> bool:
    name = re.escape(posixpath.basename(path))
    stem = re.escape(posixpath.splitext(posixpath.basename(path))[0])
    package = re.escape(posixpath.basename(posixpath.dirname(path)) or "\0")
    inside = stem in ("__init__", "__main__", "mod", "index", "doc")
    pattern = rf"(?<![\w-]){package}(?![\w-])" if inside else rf"(?<![\w.-]){name}\b|(?<![\w-])\w+\.{stem}\b(?!\.\w)"
    return any(re.search(pattern, text) for text in texts)


def _uses(user: str, text: str, path: str) -> bool:
    """Return whether a file imports another one, or names it."""
    if user == path:
        return False
    if path.endswith(".py") and user.endswith(".py"):
        imported, named = _python_uses(posixpath.basename(user) == "__init__.py", text)
        if posixpath.basename(path) in ("__init__.py", "__main__.py"):
            package = posixpath.basename(posixpath.dirname(path))
            return any(package in module.split(".") for module in (*imported, *named))
        return any(is_module(module, path) for module in imported) or any(_is_named(path, [each]) for each in named)
    if path.endswith(FILES.ordered["by_directory"]) and posixpath.dirname(user) == posixpath.dirname(path):
        return True
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return len(stem) > 1 and re.search(rf"(?<![\w-]){re.escape(stem)}(?![\w-])", text) is not None


@functools.lru_cache(maxsize=4096)
def _python_uses(reexports: bool, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the modules that a module imports names from and uses, and the strings that may name a file."""
    try:
        tree = parse(text)
    except SyntaxError:
        return tuple(re.findall(r"^\s*(?:from|import)\s+([\w.]+)", text, re.MULTILINE)), ()
    loaded = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    strings = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    listed = {value for value in strings if value.isidentifier()}
    imported = [
        module
        for node in ast.walk(tree)
        for module, name in _imports(node)
        if reexports or name == "*" or name in loaded or name in listed
    ]
    return tuple(imported), tuple(value for value in strings if "." in value and len(value) < 200)


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the modules that a statement may import, each with the local name."""
    for module, name, local in imported_by(node):
        yield module, local
        if name:
            yield f"{module}.{name}" if module.strip(".") else f"{module}{name}", local
