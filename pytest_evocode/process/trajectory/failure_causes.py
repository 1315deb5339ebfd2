"""Tell why a command failed: the product, its tests, a scratch script, the environment, or a typo in the shell.

What decides is what the shell and the runner said, the kind of the error, and in whose file it was raised. In doubt it
is the product, because an assertion that fails is a failure of the product.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Literal

from pytest_evocode.process.trajectory.command_mistakes import (
    is_mistyped,
    is_slip,
    lacks_a_plugin,
    names_no_script,
    names_no_test,
    not_found,
    unfound_module,
)
from pytest_evocode.process.trajectory.environment_faults import compares, gets_nowhere, is_environments
from pytest_evocode.process.trajectory.error_places import (
    complains_about_tests_only,
    complaints,
    is_a_compilers,
    last_place,
)
from pytest_evocode.process.trajectory.faults_of_tests import is_raised_by_tests
from pytest_evocode.process.trajectory.runner_output import without_escapes

FailureCause = Literal["product", "test", "scratch", "environment", "shell typo", "refusal"]
"""``refusal`` is a program that ended with an exit code and did not crash: it may be meant to refuse its input."""

_CRASH = re.compile(
    r"^lua\S*: \S+:\d+: |"
    r"^Traceback \(most recent call last\):|^panic: |thread '.*' panicked at|Segmentation fault|core dumped|"
    r"Unhandled(Promise)?Rejection|^[^\S\n]+at .+:\d+:\d+\)?$|Exception in thread|^Fatal error|^Uncaught |"
    r"^(?:PHP )?Fatal error: |^Unhandled [Ee]xception|AddressSanitizer|^\*\* \([\w.]+\) |\.rb:\d+:in .*\(\w+(?:Error|"
    r"Exception)\)|"
    r"^psql:\S+: ERROR: |^(?:Parse|Runtime) error near line \d+|^Error: (?:near \"|in prepare|stepping)|"
    r"^ERROR \d+ \(\w+\) at line|"
    r"^[\w.]+Error: .+\Z|^\w+\.[\w.]*[A-Z]\w*(?:Error|Exception): |^Execution halted|^stack traceback:|"
    # What frameworks say, in place of a traceback, of a project that they cannot start or migrate.
    r"^SystemCheckError: |^CommandError: (?!Unknown|unrecognized)|^ERROR: Error loading ASGI app|"
    r"^ERROR:\s+\[Errno \d+\]|^\s*File \"\S+\", line \d+, in |^APPLICATION FAILED TO START$|^\S+ aborted!$|"
    # Laravel's page for an error: its name, what it says, and where.
    r"^[^\S\n]*[\w\\]*(?:Error|Exception)[^\S\n]*\n(?:.*\n){1,4}[^\S\n]*at \S+:\d+$|"
    r"^Error: (?:While importing|Failed to find Flask|Could not import) |SQLSTATE\[|"
    r"^(?:ERROR: )?LoadError: |^BEGIN failed|^error: Uncaught",
    re.MULTILINE,
)
#: What a shell says of the script that it runs, if its exit code says that something failed.
_SHELL_CRASH = re.compile(
    r"^(?!(?:\S*/)?(?:ba|da|z)?sh: )\S+: (?:line )?\d+: (?:[Ss]yntax error|unexpected EOF|"
    r"\S+: (?:unbound variable|parameter not set|command not found|not found))|^(?!(?:\S*/)?(?:ba|da|"
    r"z)?sh: )(?:\S+: line \d+: |\S+\.(?:sh|bash): \d+: )|"
    # A tool that the script calls.
    r"^(?:awk|gawk|mawk|sed|jq|cp|mv|rm|ls|cat|tar|mktemp|touch|tee|stat|du|df|dd|diff|patch|cmp|chown|readlink|"
    r"realpath|flock|date|cut|sort|find|chmod|mkdir|ln|bc|tr|head|tail|grep|printf|xargs|gzip): (?!\d)",
    re.MULTILINE,
)
#: What programs on the way to another machine say.
_UNREACHED = re.compile(
    r"^(?:ssh|scp|rsync|curl|wget|fatal): .*(?:resolve|refused|unreachable|timed out|unable to access|denied|"
    r"remote repository)|^\S+@\S+: Permission denied|"
    r"^Host key verification failed",
    re.MULTILINE,
)
#: Words of a test runner that got as far as running tests, whatever it is.
_RAN = re.compile(
    r"^\s*\S*\s?Tests run: \d+|\b[1-9]\d* (?:tests?|examples?|runs|specs?|scenarios?), |^Tests: +\d+|--- FAIL: |"
    r"^test result: |"
    r"^\[ +(?:FAILED|OK) +\]|^not ok \d+|^[^\S\n]*[\u2717\u2718\u2716\u2715] |<<< (?:FAILURE|ERROR)!|"
    r"^[^\S\n]*FAIL(?::|[^\S\n]+\S)|^\s*\u25cf (?!Validation|Unrecognized|Multiple|Deprecation)|"
    r"^\s*Test Files\s+\d|tests? (?:passed|completed), |^Executed \d+ tests?",
    re.MULTILINE,
)


#: What pytest shows of what a test printed: words of the product or of the test, and not of the runner.
_CAPTURED = re.compile(r"^-+ Captured (?:stdout|stderr|log) call -+\n(?:(?![-_=]{3}).*\n)*", re.MULTILINE)
_TAP_COMMENT = re.compile(r"^# +", re.MULTILINE)
#: What packages to be installed are missing, before anything else is looked for.
_SCRIPTS_LACK = re.compile(r"vendor/autoload\.php|node_modules missing|Error: Cannot find module '[\w@]")
#: What is missing is that of a library or of the tool.
_OF_A_LIBRARY = re.compile(r"/(?:node_modules|site-packages|dist-packages|gems|\.cargo|\.m2|vendor)/|[Ee]xtension\b")


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
    output = _CAPTURED.sub("", without_escapes(output))
    if has_run and not scratch and compares(output):
        return "product"  # Whatever else is printed may be what the test is about.
    missed = not_found(_TAP_COMMENT.sub("", output), command) if exit_code != 0 else None
    if missed == "within" and not is_raised_by_tests(output):
        return "scratch" if scratch else "product"
    if missed is not None and not _RAN.search(output) and (not has_run or exit_code in (126, 127)):
        return "shell typo" if missed == "mistyped" else "environment"
    if lacks_a_plugin(output, command) or exit_code == 126:
        return "environment"
    if module := unfound_module(output):
        return "shell typo" if is_ours(module.partition(".")[0]) or is_slip(module) else "environment"
    started = (has_run and exit_code not in (126, 127)) or _RAN.search(output) is not None
    if (_SCRIPTS_LACK.search(output) and is_environments(output, is_ours)) or (
        not _RAN.search(output) and _OF_A_LIBRARY.search(output) and is_environments(output, is_ours)
    ):
        return "environment"
    if (
        names_no_test(output, command)
        or names_no_script(output, command)
        or (not started and not complaints(output) and (is_mistyped(output, command) or exit_code == 127))
    ):
        return "shell typo"
    innermost = last_place(output)
    if scratch and posixpath.basename(innermost) in ("", posixpath.basename(scratch)):
        return "scratch"
    if scratch and f"Require stack:\n- {scratch}" in output:
        return "scratch"
    if is_raised_by_tests(output):
        return "test"
    if is_environments(output, is_ours):
        return "environment"
    if not started and not complaints(output) and not innermost and gets_nowhere(output):
        return "environment"
    return "test" if complains_about_tests_only(output) else "product"


def crashed(output: str, exit_code: int | None) -> bool:
    """Return whether a program crashed: by a traceback, a panic or a signal. An exit code alone may be intended.

    >>> crashed("Traceback (most recent call last):", 1), crashed("error: no such account", 1), crashed("", 139)
    (True, False, True)
    """
    by_signal = exit_code is not None and exit_code > 128 and exit_code not in (130, 137, 143, 255)
    of_shell = exit_code not in (None, 0) and (_SHELL_CRASH.search(output) or _UNREACHED.search(output)) is not None
    unfound = exit_code != 0 and (names_no_script(output, "") or unfound_module(output) is not None)
    if exit_code != 0 and is_a_compilers(output):
        return True
    return by_signal or of_shell or unfound or exit_code in (126, 127) or _CRASH.search(output) is not None
