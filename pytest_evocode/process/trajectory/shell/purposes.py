"""Tell which commands build, test or start the product."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_evocode.process.trajectory.shell.command_lines import parse_line
from pytest_evocode.process.trajectory.shell.syntax import SimpleCommand

CommandPurpose = Literal["build", "test", "program"]

_TEST_TOOLS = {
    "pytest", "py.test", "tox", "nox", "jest", "vitest", "mocha", "ava", "rspec", "phpunit", "bats", "ctest", "karma",
    "nose2", "nosetests", "playwright", "cypress",
}  # fmt: skip
_TEST_MODULES = {"pytest", "unittest", "nose2", "tox", "doctest", "nox"}
_BUILD_TOOLS = {"gcc", "g++", "cc", "clang", "clang++", "javac", "tsc", "rustc", "cmake", "ninja", "msbuild", "webpack"}
_BUILD_MODULES = {"compileall", "py_compile", "build"}
#: Options with which a test runner lists or explains, and runs nothing.
_LISTS = {"--collect-only", "--co", "--version", "--help", "-h", "--fixtures", "--markers", "--listTests", "--list"}
#: Targets that build nothing.
_CLEANS = {"clean", "distclean", "mrproper", "help"}
_SHELLS = {"bash", "sh", "dash", "zsh"}
_PACKAGE_MANAGERS = {"npm", "yarn", "pnpm", "bun"}
_INTERPRETERS = re.compile(r"(python(\d(\.\d+)?)?|pypy3?|node|nodejs|ruby|perl|php|lua|deno|bun|java|ts-node|tsx)")
_SCRIPT = re.compile(r"\.(py|js|mjs|cjs|ts|rb|pl|php|lua|sh|jar)$")
#: Options that change what a test runner prints, but not what it runs.
_OUTPUT_OPTION = re.compile(
    r"-[qvsx]+|-r\w*|--tb(=.*)?|--quiet|--verbose|--no-header|--color(=.*)?|--durations(=.*)?|--maxfail(=.*)?|-p|"
    r"--silent|--nocapture|--cov.*|-W.*|--exitfirst|no:\w+|--showlocals|-l|-ra|--reporter(=.*)?"
)


@dataclass(frozen=True, slots=True)
class CommandPurposes:
    """Tells what a command is for, by the lines that the task declares and by the names of well-known tools."""

    build: str | None = None
    test: str | None = None

    def of(self, command: SimpleCommand) -> CommandPurpose | None:
        """Return what a command is for; None for one that runs nothing of the product.

        >>> purposes = CommandPurposes()
        >>> [purposes.of(parse_line(line).commands[0]) for line in ("python -m pytest -q", "go build ./...", "ls")]
        ['test', 'build', None]
        """
        words = [word or "" for word in command.words]
        if not words:
            return None
        if self.test and _is_declared(words, self.test):
            return "test"
        if self.build and _is_declared(words, self.build):
            return "build"
        return _purpose(command.program, words)

    def key(self, command: SimpleCommand) -> str:
        """Return a key that is equal for two runs of the same command: its words without the output options."""
        words = [word for word in command.words if word is not None and not _OUTPUT_OPTION.fullmatch(word)]
        name = posixpath.basename(words[0]) if words else ""
        if _INTERPRETERS.fullmatch(name):
            words[0] = "python" if name.startswith(("python", "pypy")) else name
            if words[1:3] in (["-m", "pytest"], ["-m", "unittest"]):
                words = words[2:]
        return " ".join([posixpath.basename(words[0]), *words[1:]] if words else words)

    def runs_all_tests(self, command: SimpleCommand) -> bool:
        """Return whether a test run selects no tests, so that it covers every other test run."""
        declared = parse_line(self.test).commands if self.test else ()
        keys = {self.key(each) for each in declared}
        key = self.key(command)
        return key in keys or key in _ALL_TESTS


_ALL_TESTS = {
    "pytest", "pytest tests", "pytest tests/", "pytest .", "unittest", "unittest discover", "npm test", "npm run test",
    "yarn test", "pnpm test", "go test ./...", "cargo test", "make test", "make check", "ctest", "tox", "bun test",
}  # fmt: skip


def _is_declared(words: Sequence[str], declared: str) -> bool:
    return any(
        len(words) >= len(each.words) and list(each.words) == list(words[: len(each.words)]) and each.program != "cd"
        for each in parse_line(declared).commands
    )


def _purpose(program: str, words: Sequence[str]) -> CommandPurpose | None:
    plain = [word for word in words[1:] if not word.startswith("-")]
    first = plain[0] if plain else ""
    if program == "npx" and plain:
        return _purpose(first, [first, *words[words.index(first) + 1 :]])
    if program in _TEST_TOOLS or words[1:3] in (["-m", "pytest"], ["-m", "unittest"]):
        return None if _LISTS.intersection(words) else "test"
    if program == "manage.py" or (program.startswith("python") and posixpath.basename(first) == "manage.py"):
        return "test" if "test" in plain[:2] else "program"
    if program in _SHELLS:
        return "program" if first and _SCRIPT.search(first) else None
    if program in _BUILD_TOOLS:
        return "build"
    if program in _PACKAGE_MANAGERS:
        return None if _LISTS.intersection(words) else _of_package_manager(plain)
    if program in ("go", "cargo", "dotnet", "mvn", "gradle", "gradlew", "mix", "swift", "zig"):
        return _of_toolchain(plain)
    if program in ("make", "gmake", "just"):
        if plain and _CLEANS.issuperset(plain):
            return None
        return "test" if any(word in ("test", "tests", "check") for word in plain) else "build"
    if _INTERPRETERS.fullmatch(program):
        return _of_interpreter(words)
    if words[0].startswith(("./", "../")) or (_SCRIPT.search(words[0]) and "/" in words[0]):
        return "test" if _is_test_file(words[0]) else "program"
    return None


def _of_package_manager(plain: Sequence[str]) -> CommandPurpose | None:
    called = plain[1] if plain[:1] in (["exec"], ["dlx"], ["x"]) and len(plain) > 1 else (plain[0] if plain else "")
    if called in _TEST_TOOLS or called in _BUILD_TOOLS:
        return "test" if called in _TEST_TOOLS else "build"
    script = plain[1] if plain[:1] in (["run"], ["run-script"]) and len(plain) > 1 else (plain[0] if plain else "")
    if script in ("t", "test", "tst") or script.startswith(("test:", "test-")):
        return "test"
    if script.startswith("build") or script in ("compile", "typecheck", "tsc"):
        return "build"
    return "program" if script in ("start", "dev", "serve") else None


def _of_toolchain(plain: Sequence[str]) -> CommandPurpose | None:
    goals = set(plain[:3])
    if goals & {"test", "nextest", "verify", "check"} and "check" not in plain[:1]:
        return "test"
    if goals & {"build", "check", "vet", "clippy", "compile", "package", "assemble", "install"}:
        return "build"
    return "program" if plain[:1] == ["run"] else None


def _of_interpreter(words: Sequence[str]) -> CommandPurpose | None:
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word == "-m" and rest:
            module = rest[0].partition(".")[0]
            if module in _TEST_MODULES or rest[:2] == ["django", "test"]:
                return "test"
            if module in _BUILD_MODULES:
                return "build"
            return None if module in ("pip", "venv", "http", "json", "ensurepip", "site") else "program"
        if word == "--test":
            return "test"
        if word in ("-c", "-e", "-"):
            return "program"
        if word in ("-W", "-X", "-r"):
            rest = rest[1:]
        elif not word.startswith("-"):
            return "test" if _is_test_file(word) else "program"
    return "program"


def _is_test_file(path: str) -> bool:
    name = posixpath.basename(path)
    return name.startswith(("test_", "test.", "tests.", "run_tests", "run-tests")) or "_test." in name
