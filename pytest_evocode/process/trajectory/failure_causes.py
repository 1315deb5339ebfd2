"""Tell why a command failed: because of the product, its tests, the environment, or a typo in the shell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

FailureCause = Literal["product", "test", "environment", "shell typo"]

_TYPOS = (
    re.compile(r": command not found$", re.MULTILINE),
    re.compile(r"syntax error near unexpected token|unexpected EOF while looking for|unterminated quoted string"),
    re.compile(
        r"\b(unrecognized arguments?|no such option|unknown option|invalid option|unknown flag|illegal option)\b"
    ),
    re.compile(
        r"^(usage|error): .*\b(unrecognized|the following arguments are required)\b", re.MULTILINE | re.IGNORECASE
    ),
    re.compile(r"ERROR: (file or directory )?not found: |can't open file '|Cannot find module '/.*'$", re.MULTILINE),
    re.compile(r"no tests ran\b|collected 0 items|No tests found|no test files\b|Ran 0 tests"),
    re.compile(r"(bash|sh): line \d+: .*: No such file or directory"),
    re.compile(r"No rule to make target|Missing script: "),
)
#: Programs that an image may lack; any other that is not found was mistyped.
_TOOL_NOT_FOUND = re.compile(
    r"\b(python3?|pytest|pip3?|node|npm|npx|yarn|pnpm|go|cargo|rustc|make|cmake|gcc|g\+\+|cc|clang|java|javac|mvn|gradle|"
    r"ruby|bundle|php|git|jq|rg|curl|wget|tox|ruff|mypy|black|flake8|tsc|jest|sqlite3|bc|tree|xxd|file|strace|docker)"
    r": (command )?not found$",
    re.MULTILINE,
)
_ENVIRONMENT = (
    re.compile(r"No module named '?(pytest|pip|coverage|unittest2|nose|tox|mypy|ruff)'?\b"),
    re.compile(r"Could not resolve host|Name or service not known|Temporary failure in name resolution"),
    re.compile(r"Network is unreachable|Connection (timed out|refused)|Read timed out|ETIMEDOUT|ENOTFOUND|EAI_AGAIN"),
    re.compile(r"No space left on device|Cannot allocate memory|Read-only file system|Too many open files"),
    re.compile(r"Permission denied|EACCES|Operation not permitted"),
    re.compile(r"Could not find a version that satisfies|npm ERR! code E404|unable to access 'http"),
    re.compile(r"(executable file|program|compiler|interpreter) not found|is not installed\b", re.IGNORECASE),
    re.compile(r"no required module provides package|failed to (download|get) ", re.IGNORECASE),
)
_MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?")
_CRASH = re.compile(
    r"^Traceback \(most recent call last\):|^panic: |thread '.*' panicked at|Segmentation fault|core dumped|"
    r"Unhandled(Promise)?Rejection|^\s+at .+:\d+:\d+\)?$|Exception in thread|^Fatal error|^Uncaught ",
    re.MULTILINE,
)
_PYTHON_FILE = re.compile(r'^  File "([^"]+)", line \d+', re.MULTILINE)
_BROKEN_TEST = re.compile(
    r"^E\s+fixture '.*' not found|^E\s+(SyntaxError|IndentationError|NameError)\b|^(SyntaxError|IndentationError): ",
    re.MULTILINE,
)
_COLLECTION_ERROR = re.compile(r"^_+ ERROR collecting (\S+) _+$", re.MULTILINE)


def failure_cause(output: str, *, exit_code: int | None, has_run: bool, is_ours: Callable[[str], bool]) -> FailureCause:
    """Return why a build, a test run or a program failed, by what it printed.

    Args:
        output: What it printed.
        exit_code: Its exit code; None where that is unknown.
        has_run: Whether it got as far as running tests or the program, whose output then is not the shell's.
        is_ours: Whether a top-level Python module belongs to the workspace.
    """
    if not has_run:
        if exit_code in (126, 127) or any(pattern.search(output) for pattern in _TYPOS):
            return "environment" if _TOOL_NOT_FOUND.search(output) else "shell typo"
        if any(pattern.search(output) for pattern in _ENVIRONMENT):
            return "environment"
    missing = _MISSING_MODULE.search(output)
    if missing and not is_ours(missing[1].partition(".")[0]):
        return "environment"
    if _in_the_tests_own_code(output):
        return "test"
    return "product"


def _in_the_tests_own_code(output: str) -> bool:
    if not _BROKEN_TEST.search(output):
        return False
    collected = _COLLECTION_ERROR.search(output)
    files = _PYTHON_FILE.findall(output)
    last = files[-1] if files else (collected[1] if collected else "")
    name = last.rpartition("/")[2]
    return name.startswith(("test_", "conftest")) or name.endswith("_test.py") or "fixture '" in output


def crashed(output: str, exit_code: int | None) -> bool:
    """Return whether a program crashed: by a traceback, a panic or a signal. An exit code alone may be intended.

    >>> crashed("Traceback (most recent call last):", 1), crashed("error: no such account", 1), crashed("", 139)
    (True, False, True)
    """
    by_signal = exit_code is not None and exit_code > 128 and exit_code not in (130, 137, 143)
    return by_signal or _CRASH.search(output) is not None
