"""Tell why a command failed: the product, its tests, a scratch script, the environment, or a typo in the shell.

What decides is what the shell and the runner said, the kind of the error, and in whose file it was raised.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Literal

from pytest_evocode.process.trajectory.file_roles import FileRoles

FailureCause = Literal["product", "test", "scratch", "environment", "shell typo"]

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
    re.compile(
        r"No rule to make target|no (?:test|bench|bin|example) target named|"
        r"Missing script: |Start directory is not importable|flag provided but not defined"
    ),
    re.compile(r"Unknown (?:command|argument|option)|invalid choice: |no such command", re.IGNORECASE),
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
    re.compile(r"^make(?:\[\d+\])?: [\w.+-]+: (?:No such file or directory|(?:Command )?not found)$", re.MULTILINE),
    re.compile(r"no required module provides package|failed to (download|get) ", re.IGNORECASE),
)
#: What says that a checkout is not set up; found in the output of tests, too.
_NOT_SET_UP = re.compile(
    r"without building the extension modules|extension modules? (?:has|have) not been (?:built|compiled)|build_ext|"
    r"settings are not configured|ImproperlyConfigured: (?:Requested setting|The SECRET_KEY)|DJANGO_SETTINGS_MODULE|"
    r"Apps aren't loaded yet|undefined symbol: |cannot open shared object file|Cannot find native binding|"
    r"C.extensions? failed|error: linker `\S+` not found|Cannot find package '[^'./][^']*' imported from|"
    r"Browser was not found|Executable doesn't exist at|Cannot connect to the Docker daemon"
)
_NO_NETWORK = re.compile(
    r"name resolution|Name or service not known|Could not resolve host|getaddrinfo|Network is unreachable|ENOTFOUND|"
    r"EAI_AGAIN|Max retries exceeded|No space left on device|Cannot allocate memory|Too many open files"
)
#: A line with the error that a test or a program ended with.
_ERROR_LINE = re.compile(
    r"^(?:E\s+)?([\w.]*(?:Error|Exception|Warning|Interrupt|Refused|Configured))(?:: (.*))?$", re.MULTILINE
)
_MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError|Original error was): No module named '?([\w.]+)'?")
_MISSING_NAME = re.compile(
    r"ImportError: cannot import name '?\w+'? from (?:partially initialized module )?'?([\w.]+)'?|"
    r"AttributeError: module '([\w.]+)' has no attribute"
)
_MISSING_SCRIPT_MODULE = re.compile(r"Cannot find module '([^']+)' from '([^']+)'")
_MISSING_TOOL = re.compile(
    r"^(?:\S*sh|bash|/\S+): (?:line )?(?:\d+: )?([\w.-]+): (?:command )?not found$", re.MULTILINE
)
_CRASH = re.compile(
    r"^Traceback \(most recent call last\):|^panic: |thread '.*' panicked at|Segmentation fault|core dumped|"
    r"Unhandled(Promise)?Rejection|^[^\S\n]+at .+:\d+:\d+\)?$|Exception in thread|^Fatal error|^Uncaught ",
    re.MULTILINE,
)
#: What a shell says of the script that it runs, if its exit code says that something failed.
_SHELL_CRASH = re.compile(
    r"^(?!(?:\S*/)?(?:ba|da|z)?sh: )\S+: (?:line )?\d+: (?:syntax error|unexpected EOF|"
    r"\S+: (?:unbound variable|parameter not set))",
    re.MULTILINE | re.IGNORECASE,
)
#: The error and the innermost place of JavaScript's programs: the first one.
_SCRIPT_ERROR = re.compile(r"^[^\S\n]*(?:Uncaught )?(\w*Error)\b(?: \[\w+\])?: ", re.MULTILINE)
_SCRIPT_PLACE = re.compile(
    r"^[^\S\n]*(?:at (?:.* \()?|\u276f (?:.* )?)(?:file://)?(?P<path>[^\s():]+\.[cm]?[jt]sx?):\d+:\d+\)?\s*$",
    re.MULTILINE,
)
#: A script that node was given and did not find.
_NO_SCRIPT = re.compile(r"^Error: Cannot find module '/([^']+)'\n(?:.*\n)*.*requireStack: \[\]", re.MULTILINE)
#: A method or attribute that a test case lacks, and not the product.
_LACKING_TEST = re.compile(r"AttributeError: '(?:Test\w*|\w*Tests?|\w*TestCase)' object has no attribute ")
#: Places in files, as interpreters, pytest and compilers print them.
_PLACES = re.compile(
    r'^(?:E[^\S\n]+)?[^\S\n]*File "(?P<python>[^"<>]+)", line \d+|'
    r"^(?P<pytest>[\w./@+-]+\.py):\d+: (?:in \S+|[A-Z]\w*|)\s*$|"
    r"^[^\S\n]*--> (?P<rust>[^\s:]+):\d+:\d+|"
    r"^[^\S\n]*(?:\./)?(?P<compiled>[\w./@+-]+\.\w{1,5})(?::\d+(?::\d+)?:|\(\d+,\d+\):) ?(?=\S)|"
    r"^_+ ERROR collecting (?P<collected>\S+) _+$",
    re.MULTILINE,
)
_FOREIGN = re.compile(
    r"(^|/)(site-packages|dist-packages|node_modules|lib/python[\d.]+|\.cargo|go/pkg)/|^/(usr|opt)/|^<"
)
_TESTS = FileRoles()
#: Errors that a test makes by itself, when they are raised in its own file.
_OWN_ERRORS = ("NameError", "SyntaxError", "IndentationError", "TabError", "UnboundLocalError")


def failure_cause(
    output: str,
    *,
    exit_code: int | None,
    has_run: bool,
    is_ours: Callable[[str], bool],
    command: str = "",
    scratch: str = "",
) -> FailureCause:
    """Return why a build, a test run or a program failed, by what it printed.

    Args:
        output: What it printed.
        exit_code: Its exit code; None where that is unknown.
        has_run: Whether it got as far as running tests or the program, whose output then is not the shell's.
        is_ours: Whether a top-level Python module belongs to the workspace.
        command: The command as it was written.
        scratch: The script that was run, if it is none of the workspace's.
    """
    if not has_run:
        if exit_code in (126, 127) or any(pattern.search(output) for pattern in _TYPOS):
            missing = _MISSING_TOOL.search(output)
            called_within = missing is not None and bool(command) and missing[1] not in command
            return "environment" if called_within or _TOOL_NOT_FOUND.search(output) else "shell typo"
        if any(pattern.search(output) for pattern in _ENVIRONMENT):
            return "environment"
    unfound = _NO_SCRIPT.search(output)
    if unfound and posixpath.basename(unfound[1]) in command:
        return "shell typo"
    last = _last_own_place(output)
    if scratch and (not last or last == scratch):
        return "scratch"
    if _NOT_SET_UP.search(output) or _is_lacking(output, is_ours):
        return "environment"
    return "test" if _in_the_tests_own_code(output, last) else "product"


def _is_lacking(output: str, is_ours: Callable[[str], bool]) -> bool:
    """Return whether a module, a name of a library or the network is what an error is about."""
    missing = _MISSING_MODULE.search(output)
    if missing and not is_ours(missing[1].partition(".")[0]):
        return True
    lacking = _MISSING_NAME.search(output)
    if lacking and not is_ours((lacking[1] or lacking[2]).partition(".")[0]):
        return True
    unfound = _MISSING_SCRIPT_MODULE.search(output)
    if unfound and not unfound[1].startswith((".", "/")):
        return True
    errors = list(_ERROR_LINE.finditer(output))
    return bool(errors) and errors[-1][2] is not None and _NO_NETWORK.search(errors[-1][2]) is not None


def _own_places(output: str) -> list[str]:
    """Return the files of the workspace in which errors were raised or found, in the order of the output."""
    places = [next(filter(None, match.groups())) for match in _PLACES.finditer(output)]
    return [place for place in places if not _FOREIGN.search(place)]


def _last_own_place(output: str) -> str:
    places = _own_places(output)
    return places[-1] if places else ""


def _is_test_file(path: str) -> bool:
    return _TESTS.of(path.lstrip("/")) == "tests"


def _in_the_tests_own_code(output: str, last: str) -> bool:
    if re.search(r"^E\s+fixture '.*' not found", output, re.MULTILINE):
        return True
    unfound = _MISSING_SCRIPT_MODULE.search(output)
    if unfound:
        return _is_test_file(unfound[2])
    if _is_raised_in_a_script_of_tests(output) or (_LACKING_TEST.search(output) and _is_test_file(last)):
        return True
    errors = [match[1].rpartition(".")[2] for match in _ERROR_LINE.finditer(output)]
    if errors and errors[-1] not in _OWN_ERRORS:
        return False
    if errors:
        return _is_test_file(last)
    # A compiler names the file of each error.
    places = _own_places(output)
    return bool(places) and _COMPILER.search(output) is not None and all(map(_is_test_file, places))


def _is_raised_in_a_script_of_tests(output: str) -> bool:
    """Return whether all errors are names that tests in JavaScript do not have, or their syntax."""
    errors = list(_SCRIPT_ERROR.finditer(output))
    for error in errors:
        places = (match["path"] for match in _SCRIPT_PLACE.finditer(output, error.end()))
        innermost = next((place for place in places if not _FOREIGN.search(place)), "")
        if error[1] not in ("ReferenceError", "SyntaxError") or not _is_test_file(innermost):
            return False
    return bool(errors)


_COMPILER = re.compile(r"^error(?:\[E\d+\])?: |\[build failed\]|: error TS\d+: |: error: |: undefined: ", re.MULTILINE)


def crashed(output: str, exit_code: int | None) -> bool:
    """Return whether a program crashed: by a traceback, a panic or a signal. An exit code alone may be intended.

    >>> crashed("Traceback (most recent call last):", 1), crashed("error: no such account", 1), crashed("", 139)
    (True, False, True)
    """
    by_signal = exit_code is not None and exit_code > 128 and exit_code not in (130, 137, 143)
    of_shell = exit_code not in (None, 0) and _SHELL_CRASH.search(output) is not None
    return by_signal or of_shell or _CRASH.search(output) is not None
