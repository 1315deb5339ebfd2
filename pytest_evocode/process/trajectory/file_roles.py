"""Tell the role of a file by its path: the product's source, its tests, prose, or something else."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Literal

from pytest_evocode.tasks import matches_glob

FileRole = Literal["source", "tests", "prose", "other"]

_TEST_DIRECTORY = re.compile(
    r"(^|/)(tests?|Tests?|__tests__|specs?|testing|e2e|cypress|androidTest|[\w.]+\.Tests?|\w+Tests)/"
)
_TEST_NAME = re.compile(
    r"(^|/)(test_[^/]*\.(py|c|cc|cpp|rb|lua|jl)|[^/]*_(test|tests|unittest)\.(py|go|c|cc|cpp|rb|exs|dart|lua|erl|ml)|"
    r"tests?\.(py|js|ts|rs|sh|c|cc|cpp|rb)|conftest\.py|[^/]*\.(test|spec|cy)\.[cm]?[jt]sx?|[^/]*_spec\.(rb|lua|cr)|"
    r"[^/]*(Tests?|TestCase|IT)\.(java|kt|cs|php|groovy|scala|swift)|[^/]*(Spec|Suite)\.(scala|groovy|kt|hs)|"
    r"[^/]*\.bats|"
    r"test[_-][^/]*\.sh|[^/]*\.t)$"
)
_PROSE = {".md", ".markdown", ".rst", ".txt", ".adoc", ".org", ".tex"}
_PROSE_NAMES = {"README", "NOTES", "TODO", "PLAN", "CHANGELOG", "CHANGES", "LICENSE", "AUTHORS", "HISTORY"}
_CODE = {
    ".py", ".pyi", ".pyx", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cc", ".cpp",
    ".cxx", ".hpp", ".java", ".kt", ".scala", ".rb", ".php", ".cs", ".fs", ".swift", ".m", ".mm", ".lua", ".pl",
    ".pm", ".r", ".jl", ".ex", ".exs", ".erl", ".hs", ".ml", ".mli", ".clj", ".dart", ".zig", ".nim", ".v", ".sv",
    ".vhd", ".sh", ".bash", ".zsh", ".scss", ".vue", ".svelte", ".proto", ".graphql", ".s", ".asm",
}  # fmt: skip
#: Suffixes of files that are written by hand as often as by programs.
_DATA = {
    ".sql", ".html", ".css", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".xml", ".gradle", ".cmake", ".mk",
    ".tf", ".jinja", ".j2", ".tmpl",
}  # fmt: skip
_SOURCE = _CODE | _DATA
_SOURCE_NAMES = {
    "Makefile", "GNUmakefile", "makefile", "Dockerfile", "CMakeLists.txt", "Rakefile", "Gemfile", "justfile",
}  # fmt: skip
_LEFT_BEHIND = re.compile(
    r"(^|/)(\.git|__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|node_modules|target|dist|\.tox|\.venv|venv|"
    r"htmlcov|coverage|\.idea|[^/]*\.egg-info)(/|$)|\.(pyc|pyo|o|so|class|log|tmp|swp|orig|rej)$|(^|/)\.coverage$"
)


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
        if _LEFT_BEHIND.search(path):
            return "other"
        if not self.tests and _is_test(path):
            return "tests"
        if self.source:
            return "prose" if _is_prose(path) else "other"
        name = posixpath.basename(path)
        if name in _SOURCE_NAMES or posixpath.splitext(name)[1].lower() in _SOURCE:
            return "source"
        if _is_prose(path):
            return "prose"
        return "source" if text is not None and text.startswith("#!") else "other"


def _is_test(path: str) -> bool:
    if _TEST_NAME.search(path):
        return True
    return posixpath.splitext(path)[1].lower() in _SOURCE and _TEST_DIRECTORY.search(path) is not None


def may_be_output(path: str) -> bool:
    """Return whether a file may be the output of a program, by its name.

    >>> may_be_output("state.json"), may_be_output("state.py")
    (True, False)
    """
    return posixpath.splitext(path)[1].lower() not in _CODE and posixpath.basename(path) not in _SOURCE_NAMES


def _is_prose(path: str) -> bool:
    name, suffix = posixpath.splitext(posixpath.basename(path))
    return name not in _SOURCE_NAMES and (suffix.lower() in _PROSE or (not suffix and name.upper() in _PROSE_NAMES))


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
