"""Tell why a command failed: the product, its tests, a scratch script, the environment, or a typo in the shell.

What decides is what the shell and the runner said, the kind of the error, and in whose file it was raised. In doubt it
is the product, because an assertion that fails is a failure of the product.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from pytest_evocode.process.rules import FAULTS
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.outputs import without_escapes

_ROLES = FileRoles()


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """A place in a file that an output names."""

    path: str
    at: int
    """The offset in the output."""

    @property
    def in_tests(self) -> bool:
        """Whether the file belongs to tests, by its name."""
        return is_test_file(self.path)


def is_test_file(path: str) -> bool:
    """Return whether a path is that of a test, wherever the workspace is."""
    return FAULTS.find(path, "supports_tests") or _ROLES.of(path.lstrip("/").removeprefix("../")) == "tests"


def named_places(rule: str, output: str, begin: int = 0) -> list[OutputPlace]:
    """Return the places of the project that a rule finds in an output, in its order.

    ``python_places`` are those in tracebacks of Python, the innermost of each last, ``frames`` those of all languages,
    the innermost of each error first, and ``complaints`` those that compilers complain about.
    """
    found = []
    for match in FAULTS[rule].finditer(output, begin):
        groups = match.groupdict()
        java_class = groups.pop("java_class", None)
        path = next(filter(None, groups.values()))
        if not FAULTS.find(path, "foreign") and not (java_class and FAULTS.find(java_class, "foreign_package")):
            found.append(OutputPlace(path, match.start()))
    return found


def _innermost(output: str) -> OutputPlace | None:
    """Return the place of the project that an error was raised in; None where the output names none."""
    found = named_places("python_places", output)[-1:] or named_places("frames", output)[:1]
    return found[0] if found else None


def is_a_compilers(output: str) -> bool:
    """Return whether a compiler, or an interpreter that cannot read a file, complains about a place in the project."""
    return FAULTS.find(output, "compiler") and bool(named_places("complaints", output))


def complains_about_tests_only(output: str) -> bool:
    """Return whether a compiler stopped in test files, about something that is not the product's to have."""
    places = named_places("complaints", output)
    if FAULTS.find(output, "asserted_by_xctest"):
        return False
    if not is_a_compilers(output) or not all(place.in_tests for place in places):
        return False
    return FAULTS.find(output, "not_imported") or not FAULTS.find(output, "product_lacks")


def not_found(output: str, command: str) -> Literal["mistyped", "missing", "within"] | None:
    """Tell of a program that was not found whether its name was mistyped or it is missing; None if all were found.

    One that a script of the project misspells is wrong ``within`` that script.

    >>> not_found("bash: line 1: pyhton: command not found", "pyhton a.py")
    'mistyped'
    >>> not_found("bash: line 1: valgrind: command not found", "valgrind ./a")
    'missing'
    >>> not_found("./deploy.sh: line 3: rsycn: command not found", "./deploy.sh")
    'within'
    """
    match = FAULTS["not_found"].search(output)
    if match is None:
        return None
    name = match["name"] or match["zsh_name"] or match["made"] or match["env"]
    slip = is_slip(name)
    if match["made"] and match["made"] in re.split(r"[\s=]+", command):
        return "mistyped"  # The file of rules, or a target.
    of_script = match["who"] is not None and not FAULTS["shells"].match(match["who"])
    if of_script or (match["made"] and name not in command):
        # A name with an underscore is that of a function.
        return "within" if of_script and (slip or "_" in name or name in FAULTS.words["functions"]) else "missing"
    typed = bool(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", command)) or not command
    return "mistyped" if slip and typed else "missing"


def is_slip(name: str) -> bool:
    """Return whether a name is almost that of a well-known program, or that of a script without its directory.

    >>> is_slip("pytset"), is_slip("pytest"), is_slip("valgrind")
    (True, False, False)
    """
    name = posixpath.basename(name)
    script = re.search(r"\.(?:py|sh|js|rb|pl|bats)$", name) is not None
    return script or meant_program(name) is not None


def is_known(name: str) -> bool:
    """Return whether agents often call a program of this name, which then is no project's own."""
    return re.sub(r"-?[\d.]+$", "", name) in FAULTS.words["programs"]


@functools.lru_cache(maxsize=1024)  # Agents call the same programs again and again.
def meant_program(name: str) -> str | None:
    """Return the well-known program that a name is almost equal to; None if it is one, or almost none.

    >>> meant_program("pyhton"), meant_program("python3"), meant_program("valgrind")
    ('python', None, None)
    """
    if not name or name in FAULTS.words["programs"] or is_known(name):
        return None
    programs = sorted(FAULTS.words["programs"])
    swapped = [each for each in programs if len(name) == len(each) and sorted(name) == sorted(each)]
    close = swapped or get_close_matches(name, programs, 1, 0.8)
    return close[0] if close else None


def is_mistyped(output: str, command: str) -> bool:
    """Return whether the shell or a program says that the command line names something that is not there.

    Args:
        output: What was printed, by a command that got no further than its arguments.
        command: The command as it was written; empty if it is unknown.
    """
    option = FAULTS["configured_option"].search(output)
    if option and command and option[1] not in command:
        return False  # It stands in the configuration.
    named = FAULTS["named_option"].search(output)
    if named and command and named[1] not in command:
        return False  # A script or the configuration has it.
    if FAULTS.find(output, "mistyped"):
        return True
    return any(not command or path["path"] in command for path in FAULTS["no_path"].finditer(output))


def lacks_a_plugin(output: str, command: str) -> bool:
    """Return whether an option is unknown that the configuration asks for, or that a well-known plug-in has."""
    option = FAULTS["configured_option"].search(output)
    configured = option is not None and bool(command) and option[1] not in command
    return configured or FAULTS.find(output, "option_of_a_plugin", "command_of_a_plugin")


def names_no_test(output: str, command: str) -> bool:
    r"""Return whether unittest or RSpec found no module, class or file of tests of the name that the command has.

    >>> names_no_test("unittest.loader._FailedTest.b)\nNo module named 'tests.b'", "python -m unittest tests.b")
    True
    """
    if FAULTS.find(output, "path_as_module"):
        return True
    if "_FailedTest" in output and (missing := FAULTS["unfound_test"].search(output)) is not None:
        name = missing["module"] or missing["name"]
        return re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", command) is not None
    unloaded = FAULTS["unloaded_spec"].search(output)
    return unloaded is not None and unloaded[1] in command


def unfound_module(output: str) -> str | None:
    """Return the module that Python was to run and did not find; None for none.

    >>> unfound_module("/usr/bin/python3: No module named shop.crat")
    'shop.crat'
    """
    module = FAULTS["unfound_module"].search(output)
    return module[1] if module else None


def names_no_script(output: str, command: str) -> bool:
    """Return whether an interpreter did not find the script that the command names; any script without a command."""
    package = FAULTS["unknown_package"].search(output)
    if package is not None and package[1] in command and meant_program(package[1]) is not None:
        return True
    unfound = FAULTS["no_script"].search(output)
    if unfound is None or posixpath.basename(unfound[1]) not in (command or unfound[1]):
        return FAULTS.find(output, "unfound_script")
    return True


def is_environments(output: str, is_ours: Callable[[str], bool]) -> bool:
    """Return whether an output says that the environment is at fault.

    Args:
        output: What a command printed that failed.
        is_ours: Whether a top-level Python module belongs to the workspace.
    """
    output = FAULTS["notice"].sub("", output)
    if compares(output):
        return False  # What is printed may be what a test compares.
    if FAULTS.find(output, "environment", "system_header", "fixtures_of_plugins", "unreadable_library"):
        return True
    if FAULTS.find(output, "no_variable") and FAULTS.find(output, "os_environ"):
        return True
    if _breaks_in_a_plugin(output) or _is_lacking_a_module(output, is_ours) or _fails_to_import_a_library(output):
        return True
    if FAULTS.find(output, "assertion_failed", "raised_on_purpose"):
        return False
    lines = (line for line in output.splitlines() if FAULTS.find(line, "environment_in_an_error"))
    return any(not FAULTS.find(line, "assertion") for line in lines)


def compares(output: str) -> bool:
    """Return whether a runner says that an assertion failed, or shows what a test has compared.

    >>> compares("E   assert 1 == 2"), compares("a_test.go:5: Sum() = 1, want 2"), compares("E   KeyError: 'a'")
    (True, True, False)
    """
    return FAULTS.find(output, "compared")


def _fails_to_import_a_library(output: str) -> bool:
    """Return whether Python broke off in a library's own module that was being imported."""
    found = list(FAULTS["module_frame"].finditer(output))
    if not found:
        return False
    last = found[-1]
    return (last["of_file"] or last["of_short"]) == "<module>" and FAULTS.find(last["file"] or last["short"], "library")


def _gets_nowhere(output: str) -> bool:
    """Return whether a tool complains of what it works with, and got to no file and no test of the project.

    This is asked last, of outputs in unknown words.
    """
    return not FAULTS.find(output, "of_the_project", "assertion_failed") and FAULTS.find(output, "of_the_tool")


def _breaks_in_a_plugin(output: str) -> bool:
    """Return whether pytest itself broke off, in a library and in no file of the project."""
    lines = [line for line in output.splitlines() if line.startswith("INTERNALERROR>") and 'File "' in line]
    return bool(lines) and all("-packages/" in line or "/lib/python" in line for line in lines)


def _is_lacking_a_module(output: str, is_ours: Callable[[str], bool]) -> bool:
    """Return whether a library, or a name of it, is what an error is about."""
    for rule in ("missing_module", "missing_name"):
        missing = FAULTS[rule].search(output)
        name = next(filter(None, missing.groups()), "").partition(".")[0] if missing else ""
        if name and not is_ours(name) and name not in FAULTS.words["modules_of_tests"]:
            return True
    gem = FAULTS["missing_gem"].search(output)
    return FAULTS.find(output, "missing_package") or (
        gem is not None and not gem[1].endswith(("_helper", "helper")) and "LoadError" in output
    )


def is_raised_by_tests(output: str) -> bool:
    """Return whether a failure is a test's own, by the error and by the file it was raised in."""
    if FAULTS.find(output, "misused") or _lacks_a_file_of_tests(output) or _breaks_off_preparing(output):
        return True
    if FAULTS.find(output, "stand_in", "prepared") or _breaks_in_a_helper(output):
        return True
    if unreadable := FAULTS["unreadable"].search(output):
        return is_test_file(unreadable["path"])
    if not named_places("python_places", output) and (unread := _files_with_syntax_errors(output)):
        return all(map(is_test_file, unread))
    in_tests = (innermost := _innermost(output)) is not None and innermost.in_tests
    if in_tests and FAULTS.find(output, "no_such_file"):
        return True
    if (relative := FAULTS["relative_module"].search(output)) is not None:  # One of the product may come later.
        user, path = relative["user"], relative["path"]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(user), path))
        return is_test_file(user) and (FAULTS.find(path, "named_for_tests") or is_test_file(f"{target}.js"))
    if places := named_places("python_places", output):
        return places[-1].in_tests and _is_misspelt(output)
    scripts = list(FAULTS["script_error"].finditer(output))
    if scripts and all(_is_scripts(output, error) for error in scripts):
        return True
    return in_tests and FAULTS.find(output, "crashed_first_frame")


def _breaks_off_preparing(output: str) -> bool:
    """Return whether a test was still being prepared, outside of the product, when it broke off."""
    if FAULTS.find(output, "hook"):
        if is_environments(output, lambda _: True):
            return False
        return (innermost := _innermost(output)) is None or innermost.in_tests
    places = named_places("python_places", output)
    if not places or not places[-1].in_tests:
        return False
    preparing = [each for each in FAULTS["last_frame"].finditer(output) if is_test_file(each["path"])]
    errors = [match[1].rpartition(".")[2] for match in FAULTS["python_error"].finditer(output)]
    own = bool(errors) and errors[-1] in FAULTS.words["of_preparation"]
    library = output.rfind("-packages/") > places[-1].at
    return own and library and bool(preparing) and FAULTS["set_up"].match(preparing[-1]["function"]) is not None


def _breaks_in_a_helper(output: str) -> bool:
    """Return whether a file that helps tests broke off, called by another file of tests, and no assertion failed.

    So did a fixture of pytest's that got as far as a library. What the product does not have is the product's fault.
    """
    if (
        (callee := named_places("frames", output)[:1])
        and callee[0].in_tests
        and FAULTS["wrong_call_in_ruby"].search(output)
    ):
        return True
    if FAULTS.find(output, "asserted", "asks_for_more") or is_environments(output, lambda _: True):
        return False
    python = named_places("python_places", output)
    places = python[::-1] or named_places("frames", output)
    if not places or not places[0].in_tests:
        return False
    if python and FAULTS.find(output, "set_up_of_pytest"):
        return True
    if FAULTS.find(places[0].path, "support"):
        return True
    called_by = places[1] if len(places) > 1 else places[0]
    return called_by.in_tests and called_by.path != places[0].path


def _is_misspelt(output: str) -> bool:
    """Return whether the last error of Python is one that the code which raised it makes by itself."""
    found = list(FAULTS["python_error"].finditer(output))
    if not found:
        return False
    kind, says = found[-1][1].rpartition(".")[2], found[-1][2] or ""
    misspelt = kind in ("AttributeError", "ImportError", "KeyError", "TypeError") and "Did you mean" in says
    return misspelt or kind in FAULTS.words["own_errors"]


def _files_with_syntax_errors(output: str) -> set[str]:
    """Return the files that could not be parsed: those that the first error names, or the line before or behind it."""
    for error in FAULTS["syntax"].finditer(output):
        before = output[: error.start()].splitlines()[-1:]
        behind = output[error.end() :].splitlines()[:3]
        for text in (error[0] + (behind[0] if behind else ""), *behind[1:], *before):
            paths = {match["path"] for match in FAULTS["line_of_file"].finditer(text)}
            if named := {path for path in paths if "node_modules" not in path}:
                return named
    return set()


def _is_scripts(output: str, error: re.Match[str]) -> bool:
    """Return whether an error in JavaScript is a name that a test does not have, or its syntax."""
    if error[1] not in FAULTS.words["script_own_errors"] or FAULTS.find(error[2], "lacking_export"):
        return False
    if named := FAULTS["named_file"].match(error[2]):
        return is_test_file(named[1])
    innermost = named_places("frames", output, error.end())[:1]
    return bool(innermost) and innermost[0].in_tests


def _lacks_a_file_of_tests(output: str) -> bool:
    """Return whether a file is missing that a test brings: data, a fixture, a helper."""
    missing = FAULTS["no_file"].search(output)
    if missing is None:
        return False
    path = missing["path"] or missing["opened"]
    data = FAULTS.find(path, "data_of_tests")
    return (data or is_test_file(f"{posixpath.splitext(path)[0]}.py")) and not path.endswith(("/autoload.php", ".h"))


FailureCause = Literal["product", "test", "scratch", "environment", "shell typo", "refusal"]
"""``refusal`` is a program that ended with an exit code and did not crash: it may be meant to refuse its input."""


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
    output = FAULTS["captured"].sub("", without_escapes(output))
    if has_run and not scratch and compares(output):
        return "product"  # Whatever else is printed may be what the test is about.
    missed = not_found(FAULTS["tap_comment"].sub("", output), command) if exit_code != 0 else None
    if missed == "within" and not is_raised_by_tests(output):
        return "scratch" if scratch else "product"
    if missed is not None and not FAULTS.find(output, "ran") and (not has_run or exit_code in (126, 127)):
        return "shell typo" if missed == "mistyped" else "environment"
    if lacks_a_plugin(output, command) or exit_code == 126:
        return "environment"
    if module := unfound_module(output):
        return "shell typo" if is_ours(module.partition(".")[0]) or is_slip(module) else "environment"
    started = (has_run and exit_code not in (126, 127)) or FAULTS.find(output, "ran")
    if (FAULTS.find(output, "scripts_lack") and is_environments(output, is_ours)) or (
        not FAULTS.find(output, "ran") and FAULTS.find(output, "of_a_library") and is_environments(output, is_ours)
    ):
        return "environment"
    if (
        names_no_test(output, command)
        or names_no_script(output, command)
        or (
            not started
            and not named_places("complaints", output)
            and (is_mistyped(output, command) or exit_code == 127)
        )
    ):
        return "shell typo"
    wrong = named_places("complaints", output)
    innermost = _innermost(output) or (wrong[-1] if wrong else None)
    if scratch and (innermost is None or posixpath.basename(innermost.path) == posixpath.basename(scratch)):
        return "scratch"
    if scratch and f"Require stack:\n- {scratch}" in output:
        return "scratch"
    if is_raised_by_tests(output):
        return "test"
    if is_environments(output, is_ours):
        return "environment"
    if not started and not innermost and _gets_nowhere(output):
        return "environment"
    return "test" if complains_about_tests_only(output) else "product"


def crashed(output: str, exit_code: int | None) -> bool:
    """Return whether a program crashed: by a traceback, a panic or a signal. An exit code alone may be intended.

    >>> crashed("Traceback (most recent call last):", 1), crashed("error: no such account", 1), crashed("", 139)
    (True, False, True)
    """
    by_signal = exit_code is not None and exit_code > 128 and exit_code not in (130, 137, 143, 255)
    of_shell = exit_code not in (None, 0) and FAULTS.find(output, "shell_crash", "unreached")
    unfound = exit_code != 0 and (names_no_script(output, "") or unfound_module(output) is not None)
    if exit_code != 0 and is_a_compilers(output):
        return True
    return by_signal or of_shell or unfound or exit_code in (126, 127) or FAULTS.find(output, "crash")
