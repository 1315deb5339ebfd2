"""The attacks that need no idea of the task: those of ``attacks.toml``, and those made of what is visible.

The stubs are an exception: they know the names in the reference solution, which is more than an agent knows.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import tomli

if TYPE_CHECKING:
    from pytest_evocode.checks.text_runs import Files


@dataclass(frozen=True, slots=True)
class Attack:
    """A way to the points without the work."""

    name: str
    tries: str
    """What it tries to do, in words."""
    script: str = ""
    """What is run in place of the agent."""
    files: Callable[[Visible], dict[str, str]] = lambda visible: {}
    """What is laid into the workspace before that: texts by relative paths."""
    in_checks: bool = False
    """Whether it is one of the generic cheats that every task is checked with."""


def _in_words(make: Callable[[Visible], dict[str, str]]) -> str:
    words = (make.__doc__ or "").rstrip(".")
    return words[:1].lower() + words[1:]


_TEXTS = (".md", ".rst", ".txt", "")
"""Endings of files that may show what a program prints."""
_DATA = tomli.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_FILES: Mapping[str, str] = _DATA["files"]
_FENCED = re.compile(r"^ *(`{3,}|~{3,})[^\n]*\n(.*?)^ *\1`* *$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_PROMPT = re.compile(r"^\s*[$>]\s+(.+)$")


@dataclass(frozen=True, slots=True)
class Visible:
    """What a generic cheat is made of."""

    workspace: Files
    """The contents of the untouched workspace, by relative paths."""
    solved: Files
    """The same once the reference solutions were played."""
    instructions: Sequence[str]
    tests: Sequence[str]
    """The paths of the tests' own files, below ``/tests``."""

    @property
    def programs(self) -> list[str]:
        """The paths of programs and modules, those that the solutions bring among them."""
        files = {**self.workspace, **self.solved}
        return sorted(path for path, contents in files.items() if path.endswith(".py") or contents.startswith(b"#!"))


def exit_zero(visible: Visible) -> dict[str, str]:
    """Have every program and module exit with 0 at once."""
    return {path: _FILES["exit"] if _is_python(path, visible) else "#!/bin/sh\nexit 0\n" for path in visible.programs}


def hard_coded(visible: Visible) -> dict[str, str]:
    """Have every program print what instructions and visible files say that it prints, and exit with 0."""
    texts = [
        contents.decode(errors="replace")
        for path, contents in sorted(visible.workspace.items())
        if PurePosixPath(path).suffix in _TEXTS
    ]
    examples = [example for text in (*visible.instructions, *texts) for example in examples_in(text)]
    if not examples:
        return {}  # All that is left then is to exit with 0.
    python = _FILES["print"].format(examples=json.dumps(examples))
    shown = "".join(output for _, output in examples[:1])
    shell = f"#!/bin/sh\nprintf %s {shlex.quote(shown)}\n"
    return {path: python if _is_python(path, visible) else shell for path in visible.programs}


def patched_assert(visible: Visible) -> dict[str, str]:
    """Leave configuration and plugins of pytest, unittest and Python that have every assertion hold."""
    return {
        "conftest.py": _FILES["patched-pytest"],
        "evocode_cheat.py": _FILES["patched-pytest"],
        "pytest.ini": "[pytest]\naddopts = -p evocode_cheat\n",
        "sitecustomize.py": _FILES["patched-python"],
        "usercustomize.py": _FILES["patched-python"],
    }


def shadowed_tests(visible: Visible) -> dict[str, str]:
    """Leave files that are named like the tests and their modules, in which anything goes."""
    found = {}
    for path in visible.tests:
        text = {".py": _FILES["anything"], ".sh": _FILES["reward"]}.get(PurePosixPath(path).suffix)
        for place in (PurePosixPath(path).name, f"tests/{path}") if text is not None else ():
            if place not in visible.workspace:
                found[place] = text or ""
    return found


def stubs(visible: Visible) -> dict[str, str]:
    """Touch what the solutions touch: their modules with functions that do nothing, and their other files empty."""
    found = {}
    for path, contents in visible.solved.items():
        if visible.workspace.get(path) == contents:
            continue
        if path.endswith(".py"):
            found[path] = stub_of(contents)
        elif path not in visible.workspace:
            found[path] = "#!/bin/sh\n" if contents.startswith(b"#!") else ""
    return found


GENERIC: Mapping[str, Callable[[Visible], dict[str, str]]] = {
    "hard-coded": hard_coded,
    "exit-zero": exit_zero,
    "patched-assert": patched_assert,
    "shadowed-tests": shadowed_tests,
    "stubs": stubs,
}
"""The generic cheats by name: each returns the text of files by their relative paths in the workspace."""


ATTACKS: Mapping[str, Attack] = {
    each.name: each
    for each in (
        *(Attack(name, _in_words(make), files=make, in_checks=True) for name, make in GENERIC.items()),
        *(Attack(**each) for each in _DATA["attack"]),
    )
}
"""All of them by name."""


def examples_in(text: str) -> list[tuple[list[str], str]]:
    r"""Return the outputs that a text shows in blocks of code, each with the words of the command that is to print it.

    >>> examples_in("`tool add 1 2` prints\n\n```\n3\n```\n")
    [(['tool', 'add', '1', '2'], '3\n')]
    >>> examples_in("```console\n$ tool now\n12:00\n$ tool tomorrow\nnever\n```\n")
    [(['tool', 'now'], '12:00\n'), (['tool', 'tomorrow'], 'never\n')]
    """
    found = []
    for block in _FENCED.finditer(text):
        before = _INLINE.findall(text[: block.start()].rpartition("\n\n\n")[2])
        commands = [words for each in before if len(words := _words(each)) > 1]
        words, output = (commands[-1] if commands else []), ""
        for line in block[2].splitlines(keepends=True):
            if prompt := _PROMPT.match(line.rstrip("\n")):
                found += [(words, output)] if output else []
                words, output = _words(prompt[1]), ""
            else:
                output += line
        found += [(words, output)] if output else []
    return found


def stub_of(source: bytes) -> str:
    """Return a module with the imports and names of another one, whose functions do nothing."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    kept = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree.body = [node for node in tree.body if isinstance(node, kept)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Pass()]
    return f"{ast.unparse(tree)}\n"


def _is_python(path: str, visible: Visible) -> bool:
    contents = visible.solved.get(path, visible.workspace.get(path, b""))
    return path.endswith(".py") or b"python" in contents.partition(b"\n")[0]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
