"""Tell which of the files that an agent made are of use: the product's own, and new ones that something uses.

A new source file is of use when the request names it, or when a file that is of use imports or names it. A file of
tests is of use when a test in it can fail. Whatever else an agent leaves behind, such as scripts for a look at
something and files that nothing imports, is neither an edit of the product nor a state of it.
"""

from __future__ import annotations

import ast
import functools
import posixpath
import re
from collections.abc import Iterator

from pytest_evocode.process.tests_written.code_elements import WrittenTests
from pytest_evocode.process.tests_written.python import parse
from pytest_evocode.process.tests_written.written_tests import is_module
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles

#: Files that are used by their place or name alone.
_FOUND_BY_NAME = re.compile(
    r"(^|/)(conftest\.py|manage\.py|setup\.(py|cfg)|pyproject\.toml|Makefile|Dockerfile|package\.json|go\.mod|Cargo\.toml|"
    r"(main|index|app|lib|mod)\.[a-z]{1,4}|(migrations|versions)/[^/]+)$"
)
#: Languages in which the files of a directory see each other without naming a file.
_BY_DIRECTORY = (".go", ".java", ".kt", ".cs", ".swift", ".scala")


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
    speaking += [(edit.path, _added(edit.hunks)) for edit in activity.edits if edit.path in activity.lost]
    waiting = {path for path in new if not _FOUND_BY_NAME.search(path) and not _is_named(path, told)}
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


def _added(hunks: tuple[object, ...]) -> str:
    return "".join(line for hunk in hunks for line in getattr(hunk, "added", ()))


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
    if path.endswith(_BY_DIRECTORY) and posixpath.dirname(user) == posixpath.dirname(path):
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
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            shown = alias.asname or alias.name
            yield module, shown
            yield f"{module}.{alias.name}" if module.strip(".") else f"{module}{alias.name}", shown
