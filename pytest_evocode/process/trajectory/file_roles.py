"""Tell the role of a file by its path: the product's source, its tests, prose, or something else."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Literal

from pytest_evocode.process.rules import FILES
from pytest_evocode.tasks import ProcessConfig, matches_glob

FileRole = Literal["source", "tests", "prose", "other"]


@dataclass(frozen=True, slots=True)
class FileRoles:
    """Tells the role of a file, by the task's patterns, and by its name where the task declares none."""

    source: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def of(self, path: str, text: str | None = None) -> FileRole:
        """Return the role of a relative path; the text helps with scripts without a suffix.

        >>> roles = FileRoles()
        >>> roles.of("src/a.py"), roles.of("tests/test_a.py"), roles.of("plan.md"), roles.of("a.pyc")
        ('source', 'tests', 'prose', 'other')
        """
        if path.startswith(("/", "../", "~")):
            return "other"
        if self.tests and matches_glob(path, self.tests):
            return "tests"
        if self.source and matches_glob(path, self.source):
            return "source"
        if FILES.find(path, "left_behind"):
            return "other"
        if not self.tests and _is_test(path):
            return "tests"
        if self.source:
            return "prose" if _is_prose(path) else "other"
        if _is_code(path) or posixpath.splitext(path)[1].lower() in FILES.words["data"]:
            return "source"
        if _is_prose(path):
            return "prose"
        return "source" if text is not None and text.startswith("#!") else "other"


def _is_test(path: str) -> bool:
    suffix = posixpath.splitext(path)[1].lower()
    in_source = suffix in FILES.words["code"] or suffix in FILES.words["data"]
    return FILES.find(path, "test_name") or (in_source and FILES.find(path, "test_directory"))


def _is_code(path: str) -> bool:
    name, suffix = posixpath.basename(path), posixpath.splitext(path)[1].lower()
    return suffix in FILES.words["code"] or name in FILES.words["source_names"]


def may_be_output(path: str) -> bool:
    """Return whether a file may be the output of a program, by its name.

    >>> may_be_output("state.json"), may_be_output("state.py")
    (True, False)
    """
    return not _is_code(path)


def _is_prose(path: str) -> bool:
    name, suffix = posixpath.splitext(posixpath.basename(path))
    is_name = not suffix and name.upper() in FILES.words["prose_names"]
    return name not in FILES.words["source_names"] and (suffix.lower() in FILES.words["prose"] or is_name)


def roles_of(declared: ProcessConfig) -> FileRoles:
    """Return the roles of files as a task declares them."""
    return FileRoles(declared.source, declared.tests)


def relative(path: str, workdir: str | None) -> str:
    """Return a path relative to the working directory, if it is below it.

    >>> relative("/app/src/../a.py", "/app"), relative("./b.py", "/app"), relative("/etc/hosts", "/app")
    ('a.py', 'b.py', '/etc/hosts')
    """
    path = posixpath.normpath(path)
    if workdir and workdir != "/" and path.startswith(f"{workdir.rstrip('/')}/"):
        return path[len(workdir.rstrip("/")) + 1 :]
    if workdir and path == workdir.rstrip("/"):
        return "."
    if workdir == "/" and path.startswith("/"):
        return path[1:]
    return path
