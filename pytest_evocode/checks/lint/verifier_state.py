"""Lint rule about what suites write where no later suite finds it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from pytest_evocode.checks.lint.sources import SourceFile, TaskSources, parse_python
from pytest_evocode.errors import TaskError

#: A suite's own, those of everybody, and those of the kernel.
_EXPECTED = ("/logs", "/tests", "/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run")
_PATH = r"""["']?(/[\w./-]*\w)"""
_SHELL = re.compile(rf"(?:(?:^|(?<=[\s;|)&]))[12&]?>>?\s*|\b(?:mkdir|touch|tee)\s+(?:-\w+\s+)*){_PATH}")
_WRITING = re.compile(r"[wax+]")
_METHODS = ("write_text", "write_bytes", "mkdir", "touch")


def find_lost_state(sources: TaskSources) -> Iterator[TaskError]:
    """Yield lines of suites that write outside of the workspace, /logs, /tests and /tmp, in tasks of several rounds."""
    task = sources.task
    if len(task.rounds) == 1 or task.in_place:
        return
    evocode = task.config.metadata.evocode
    fine = (*_EXPECTED, *evocode.verifier_state, *evocode.state, *sources.workspace_roots)
    for file in sources.tests:
        for path, line in _written(file):
            if not any(PurePosixPath(path).is_relative_to(each) for each in fine):
                message = (
                    f"writes {path}, which is gone when the suite has ended; where a later suite needs it, name its "
                    "directory in verifier_state of [metadata.evocode], else write below /tmp"
                )
                yield TaskError(message, file.path, line)
                break  # One note for each file will do.


def _written(file: SourceFile) -> Iterator[tuple[str, int]]:
    """Yield absolute paths that a file certainly writes when it is run, with their lines."""
    if file.path.suffix == ".py":
        tree = parse_python(file.content)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and (path := _written_by(node)).startswith("/"):
                yield path, node.lineno
    elif file.path.suffix == ".sh":
        for number, line in enumerate(file.text.splitlines(), 1):
            if not line.lstrip().startswith("#") and (found := _SHELL.search(line)):
                yield found[1], number


def _written_by(call: ast.Call) -> str:
    """Return the path that ``open(path, "w")``, ``os.makedirs(path)`` or ``Path(path).mkdir()`` writes, or nothing."""
    match call:
        case ast.Call(
            func=ast.Name(id="open"), args=[ast.Constant(value=str() as path), ast.Constant(value=str() as mode)]
        ):
            return path if _WRITING.search(mode) else ""
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="os"), attr="mkdir" | "makedirs"),
            args=[ast.Constant(value=str() as path), *_],
        ):
            return path
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(func=ast.Name(id="Path"), args=[ast.Constant(value=str() as path)]), attr=str() as method
            )
        ):
            return path if method in _METHODS else ""
    return ""
