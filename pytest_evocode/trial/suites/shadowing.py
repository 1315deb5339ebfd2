"""Finds modules in the workspace that take the name of one that a suite may mean: ``/app/pytest.py``, ``/app/json.py``.

``python -m pytest`` and ``python3 -`` look in the working directory first, so that such a module decides what the suite
says, whatever the rest of its environment is like.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_evocode.environments import Environment

_TIMEOUT = 60.0  # seconds
_WHERE = r"(.*/(site-packages|dist-packages|lib-dynload|python3\.[0-9]+)|/tests)"


def find_shadowing(environment: Environment, modules: Sequence[str], tests: Sequence[Path]) -> list[str]:
    """Return those of some modules, by path, that have the name of one of Python's, of the suite's, or installed.

    Args:
        environment: Where the suite has run, with what it installed.
        modules: Modules that the agent made at the top of the workspace.
        tests: The directories of the suite. A word of its texts may be the name of a module that it runs or imports.

    Raises:
        EnvironmentFault: The environment failed.
    """
    by_name: dict[str, list[str]] = {}
    for path in modules:
        by_name.setdefault(path.rpartition("/")[2].partition(".")[0], []).append(path)
    names = {*sys.stdlib_module_names, *_words(tests)} & by_name.keys()
    if others := by_name.keys() - names:
        names |= _installed(environment, others)
    return sorted(path for name in names for path in by_name[name])


def _words(tests: Sequence[Path]) -> Iterator[str]:
    for directory in tests:
        for file in directory.rglob("*"):
            if file.suffix in (".sh", ".py") and file.is_file():
                yield from re.findall(r"\w+", file.read_text(encoding="utf-8", errors="replace"))


def _installed(environment: Environment, names: set[str]) -> set[str]:
    """Return which names modules have where Python looks after the working directory; all if nothing can tell."""
    same = rf"{_WHERE}/({'|'.join(map(re.escape, names))})(\.py|/__init__\.py|\..*\.so|\.so)"
    argv = ["find", "/", "-xdev", "-path", environment.workdir, "-prune", "-o"]
    argv += ["-regextype", "posix-extended", "-regex", same, "-print0"]
    with tempfile.TemporaryFile() as output:
        looked = environment.exec(argv, user="0", cwd="/", timeout=_TIMEOUT, stdout=output)
        output.seek(0)
        found = output.read().decode("utf-8", "replace").split("\0")[:-1]
    if looked.exit_code not in (0, 1):  # With 1 it complains of what it may not read, and tells of the rest.
        return names
    return {match[3] for path in found if (match := re.fullmatch(same, path))}
