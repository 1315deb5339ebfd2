"""Lint rules about leftovers of an editor, a merge or a run of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from pytest_evocode.checks.lint.mentions import without_fences
from pytest_evocode.checks.lint.sources import SourceFile, TaskSources, parse_python
from pytest_evocode.errors import TaskError

_BACKUPS = ("*~", "*.orig", ".#*", "*.swp")
_CONFLICT = re.compile(r"^<{7} .*\n(?:.*\n)*?^={7}\r?\n(?:.*\n)*?^>{7} ", re.MULTILINE)
_HERE_DOCUMENT = re.compile(r"<<-?\s*['\"]?\w")


def find_leftovers(sources: TaskSources) -> Iterator[TaskError]:
    """Yield unfinished merges in the author's files, backups anywhere, and compiled Python in the build context."""
    for file in (*sources.hidden, *sources.beside, *_dockerfile(sources)):
        if line := _conflict(file):
            yield TaskError("holds the markers of an unfinished merge; resolve it", file.path, line)
    for file in (*sources.given, *sources.hidden, *sources.beside):
        if any(fnmatchcase(file.path.name, pattern) for pattern in _BACKUPS):
            yield TaskError("looks like an editor's or a merge's backup; remove it", file.path)
    yield from _compiled(sources)


def _dockerfile(sources: TaskSources) -> Iterator[SourceFile]:
    """Return the Dockerfile; the rest of the build context may be a program that is broken on purpose."""
    return (file for file in sources.environment if file.place == "Dockerfile")


def _conflict(file: SourceFile) -> int:
    """Return the line of the first conflict, or 0 where there is none or the markers may be meant."""
    if file.path.suffix not in (".py", ".sh", ".md") and file.path.name != "Dockerfile":
        return 0
    text = without_fences(file.text) if file.path.suffix == ".md" else file.text
    found = _CONFLICT.search(text) if "<<<<<<< " in text else None
    if found is None:
        return 0
    # The test of a merge tool may have markers in a string or a here-document.
    if parse_python(text) is not None if file.path.suffix == ".py" else _HERE_DOCUMENT.search(text, 0, found.start()):
        return 0
    return text.count("\n", 0, found.start()) + 1


def _compiled(sources: TaskSources) -> Iterator[TaskError]:
    directories = dict.fromkeys(file.path.parent for file in sources.environment if "__pycache__/" in file.place)
    ignored = any(file.place == ".dockerignore" and "__pycache__" in file.text for file in sources.environment)
    if not ignored:
        for directory in directories:
            message = "compiled Python in the build context becomes part of the image; remove it"
            yield TaskError(message, directory)
