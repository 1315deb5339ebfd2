"""Tell which commands build, test or start the product.

A project whose task does not say how it is built and tested is recognised: with pytest, npm, go, cargo or make.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise, takewhile
from typing import Literal

from pytest_evocode.process.rules import COMMANDS
from pytest_evocode.process.trajectory.failure_causes import meant_program
from pytest_evocode.process.trajectory.shell.commands import SimpleCommand, parse_line
from pytest_evocode.tasks import ProcessConfig

CommandPurpose = Literal["build", "test", "program"]


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
        if command.program in COMMANDS.words["package_managers"] and prepares(command):
            return None
        if command.program in ("psql", "mysql", "mariadb", "sqlite3"):
            scripts = [*words, *(each.target or "" for each in command.redirects if each.operator == "<")]
            return "program" if any(word.endswith(".sql") for word in scripts) else None
        return _purpose(command.program, words)

    def key(self, command: SimpleCommand) -> str:
        """Return a key that is equal for two runs of the same command: its words without the output options."""
        words = [word for word in command.words if word is not None and not COMMANDS["output_option"].fullmatch(word)]
        name = posixpath.basename(words[0]) if words else ""
        if COMMANDS["interpreters"].fullmatch(name):
            words[0] = "python" if name.startswith(("python", "pypy")) else name
            if words[1:3] in (["-m", "pytest"], ["-m", "unittest"]):
                words = words[2:]
        return " ".join([posixpath.basename(words[0]), *words[1:]] if words else words)

    def runs_all_tests(self, command: SimpleCommand) -> bool:
        """Return whether a test run selects no tests, so that it covers every other test run."""
        declared = parse_line(self.test).commands if self.test else ()
        keys = {self.key(each) for each in declared}
        key = self.key(command)
        return key in keys or COMMANDS["run_option"].sub("", key) in COMMANDS.words["all_tests"]


def _is_declared(words: Sequence[str], declared: str) -> bool:
    return any(
        len(words) >= len(each.words) and list(each.words) == list(words[: len(each.words)]) and each.program != "cd"
        for each in parse_line(declared).commands
    )


#: By purpose, the rule for command lines whose words say it.
_BY_WORDS: Mapping[CommandPurpose, str] = {
    "test": "line_of_tests",
    "build": "line_of_a_build",
    "program": "line_of_a_start",
}


def _purpose(program: str, words: Sequence[str]) -> CommandPurpose | None:
    plain = [word for word in words[1:] if not word.startswith("-")]
    first = plain[0] if plain else ""
    if _lists(program, words):
        return None
    if program in ("npx", "bunx", "pnpx") and plain:
        return _purpose(first, [first, *words[words.index(first) + 1 :]])
    wrapped = program.rpartition("-")[2] in ("mocha", "jest", "pytest", "phpunit", "vitest")
    if program in COMMANDS.words["test_tools"] or wrapped or words[1:3] in (["-m", "pytest"], ["-m", "unittest"]):
        return "test"
    line = " ".join([program, *words[1:]])
    if told := next((purpose for purpose, rule in _BY_WORDS.items() if COMMANDS.find(line, rule)), None):
        return told
    managed = program.startswith("python") and posixpath.basename(first) == "manage.py"
    if managed or program in ("manage.py", "django-admin"):
        return "test" if any(word == "test" or _meant(word, {"test"}) for word in plain[:2]) else "program"
    if program in COMMANDS.words["shells"]:
        named = COMMANDS.find(posixpath.basename(first), "named_test")
        return "test" if named else _of_script(first) if COMMANDS.find(first, "script") else None
    if program in COMMANDS.words["build_tools"]:
        return "test" if program in ("ninja", "cmake") and {"test", "check"}.intersection(plain) else "build"
    if program in COMMANDS.words["package_managers"]:
        return _of_package_manager(_without_places(words))
    if program in COMMANDS.words["toolchains"]:
        purpose = _of_toolchain(program, plain)
        return "build" if purpose == "test" and _only_builds(program, words) else purpose
    if program in COMMANDS.words["task_runners"] or (program, first) == ("deno", "task"):
        return _of_package_manager([word for word in plain if word not in ("task", "run", "affected", "run-many")])
    if program in COMMANDS.words["servers"]:
        return "program" if first else None
    if program in COMMANDS.words["makes"]:
        cleans = plain and COMMANDS.words["cleans"].issuperset(plain)
        if cleans or COMMANDS.words["makes_nothing"].intersection(words):
            return None
        return "test" if any(COMMANDS.find(word, "named_test") for word in plain) else "build"
    if COMMANDS["interpreters"].fullmatch(program):
        return _of_interpreter(words)
    if "/" in words[0] and COMMANDS.find(program, "named_test"):
        return "test"
    if words[0].startswith(("./", "../")) or (COMMANDS.find(words[0], "script") and "/" in words[0]):
        return _of_script(words[0])
    meant = meant_program(program) if "/" not in words[0] else None
    return _purpose(meant, [meant, *words[1:]]) if meant else None


def script_of(command: SimpleCommand, text_of: Callable[[str], str | None]) -> str | None:
    """Return the shell lines that a command runs: of a script, of package.json or of a target; None where unknown.

    >>> script_of(parse_line("npm run ci").commands[0], {"package.json": '{"scripts": {"ci": "jest"}}'}.get)
    'jest'
    """
    words = [word or "" for word in command.words]
    plain = [word for word in words[1:] if not word.startswith("-")]
    if command.program in COMMANDS.words["package_managers"]:
        task = next((word for word in plain if word not in ("run", "run-script")), "")
        scripts = _scripts_in(text_of("package.json") or "")
        return scripts.get(task)
    if command.program in COMMANDS.words["makes"]:
        texts = filter(None, map(text_of, ("Makefile", "makefile", "justfile")))
        target = re.escape(plain[0]) if plain else "(?!)"
        recipe = re.search(rf"^{target}\s*:.*\n((?:[\t ]+.*\n?)+)", next(texts, ""), re.MULTILINE)
        return re.sub(r"(?m)^\s+[@-]*", "", recipe[1]) if recipe else None
    path = plain[0] if command.program in COMMANDS.words["shells"] and plain else (words[0] if words else "")
    text = text_of(path) if "/" in path or path != command.program else None
    return text if text and (path != words[0] or COMMANDS.find(text, "of_the_shell")) else None


def _scripts_in(package: str) -> Mapping[str, str]:
    try:
        scripts = json.loads(package or "{}").get("scripts", {})
    except (ValueError, AttributeError):
        return {}
    return {name: line for name, line in scripts.items() if isinstance(line, str)} if isinstance(scripts, dict) else {}


def only_shows(command: SimpleCommand) -> bool:
    """Return whether a program only reads, prints, fetches or moves, whatever it is given, or lists.

    >>> [only_shows(parse_line(line).commands[0]) for line in ("cat a.log", "docker logs db", "bin/all")]
    [True, True, False]
    """
    words = [word or "" for word in command.words]
    if not words:
        return True
    shows = command.program in COMMANDS.words["runs_nothing"] or command.program in COMMANDS.tables["readers"]
    logs = COMMANDS.tables["shows_logs"].get(command.program, frozenset())
    return shows or not logs.isdisjoint(words[1:3]) or prepares(command) or _lists(command.program, words)


def prepares(command: SimpleCommand) -> bool:
    """Return whether a command installs or fetches all that the project declares, and no package by its name.

    >>> [prepares(parse_line(line).commands[0]) for line in ("npm ci", "pip install -r a.txt", "pip install rich")]
    [True, True, False]
    """
    words = [word or "" for word in command.words]
    plain = [word for word in words[1:] if not word.startswith("-")]
    program = re.sub(r"[\d.]+$", "", command.program)
    if program == "python" and words[1:3] == ["-m", "pip"]:
        program, plain, words = "pip", plain[1:], words[2:]
    if (program, plain[:1]) == ("uv", ["pip"]):
        program, plain = "pip", plain[1:]
    if program == "pip":
        return plain[:1] == ["install"] and bool({"-r", "-e", ".", "--requirement", "--editable"}.intersection(words))
    alone = program == "yarn" and not words[1:]
    return alone or " ".join(plain) in COMMANDS.tables["preparations"].get(program, ())


def _lists(program: str, words: Sequence[str]) -> bool:
    """Return whether a tool lists or explains, and runs nothing."""
    tool = "python" if program.startswith("python") else program
    kinds = ("test_tools", "build_tools", "toolchains", "package_managers", "makes")
    known = words[1:3] in (["-m", "pytest"], ["-m", "unittest"])
    if known or any(program in COMMANDS.words[kind] for kind in kinds):
        starts = program in COMMANDS.words["toolchains"] and words[1:2] != ["test"]
        own = words[: words.index("--")] if "--" in words and starts else words
        if COMMANDS.words["lists"].intersection(own):
            return True
    # Further words are the script's.
    behind = words[1:2] if COMMANDS["interpreters"].fullmatch(program) else words[1:4]
    own = list(takewhile(lambda word: word not in ("run", "--"), behind))
    return bool(COMMANDS.tables["lists_of"].get(tool, set()).intersection(own))


def _only_builds(program: str, words: Sequence[str]) -> bool:
    """Return whether a command that has to do with tests builds and runs none."""
    without_tests = ("-x", "test") in pairwise(words) or (program == "go" and "-c" in words)
    return without_tests or bool(COMMANDS.words["builds_only"].intersection(words))


def _without_places(words: Sequence[str]) -> list[str]:
    """Return what a package manager is to do, without the options that say in which package."""
    plain: list[str] = []
    rest = list(words[1:])
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word in COMMANDS.words["places"] or (word == "workspace" and not plain):
            rest = rest[1:]
        elif not word.startswith("-") and (word, plain) not in (("recursive", []), ("workspaces", []), ("foreach", [])):
            plain.append(word)
    return plain


def _of_package_manager(plain: Sequence[str]) -> CommandPurpose | None:
    called = plain[1] if plain[:1] in (["exec"], ["dlx"], ["x"]) and len(plain) > 1 else (plain[0] if plain else "")
    if called in COMMANDS.words["test_tools"] or called in COMMANDS.words["build_tools"]:
        return "test" if called in COMMANDS.words["test_tools"] else "build"
    script = plain[1] if plain[:1] in (["run"], ["run-script"]) and len(plain) > 1 else (plain[0] if plain else "")
    if len(plain) > 1 and plain[1].startswith("test") and _meant(plain[0], {"run"}):
        return "test"
    named = COMMANDS.find(script, "named_test")
    if script in ("t", "tst") or named or script.startswith("test") or _meant(script, {"test"}):
        return "test"
    if script.startswith("build") or script in COMMANDS.words["build_scripts"] or _meant(script, {"build"}):
        return "build"
    return "program" if script in ("start", "dev", "serve") else None


def _of_toolchain(program: str, plain: Sequence[str]) -> CommandPurpose | None:
    if plain[:1] == ["run"] and program != "composer":
        return "program"
    if plain and plain[0] in COMMANDS.words["makes_files"]:
        return None
    goals = {goal.rpartition(":")[2] for goal in plain[:3]} | {goal.partition(":")[0] for goal in plain[:3]}
    builds_by_checking = program == "cargo" and plain[:1] == ["check"]
    if goals & COMMANDS.words["test_goals"] and not builds_by_checking:
        return "test"
    if goals & COMMANDS.words["build_goals"] and program != "composer":
        return "build"
    if any(COMMANDS.find(goal, "starts") for goal in plain[:2]):
        return "program"
    first = plain[0] if plain else ("test" if program == "rake" else "")
    if first.startswith(("assemble", "build")):
        return "build"
    if first.startswith(("test", "compile")) or _meant(first, {"test", "verify"}):
        return "build" if first.startswith("compile") else "test"
    return "build" if _meant(first, {"build", "compile"}) else None


def _meant(word: str, goals: set[str]) -> bool:
    """Return whether a word is one of some goals with two letters exchanged, or nearly so."""
    return word not in COMMANDS.words["no_slips"] and bool(get_close_matches(word, goals, 1, 0.75))


def _of_interpreter(words: Sequence[str]) -> CommandPurpose | None:
    rest = list(words[1:])
    if rest and COMMANDS.words["says_what_it_is"].issuperset(rest):
        return None
    if "--test" in rest:
        return "test"
    while rest:
        word = rest.pop(0)
        if word == "-m" and rest:
            module = rest[0].partition(".")[0]
            is_test = module in COMMANDS.words["test_modules"] or _meant(module, {"pytest", "unittest"})
            if is_test or rest[:2] == ["django", "test"]:
                return "test"
            if module in ("coverage", "trace", "cProfile", "pdb"):  # They run another module or a script.
                rest = [word for word in rest[1:] if word != "run" and not word.startswith("--")]
                continue
            if module in COMMANDS.words["build_modules"]:
                return "build"
            return None if module in ("pip", "venv", "http", "json", "ensurepip", "site") else "program"
        if f"{posixpath.basename(words[0])} {word}" in COMMANDS.words["checks"]:
            return "build"
        if word in ("-c", "-e", "-"):
            return "test" if rest and COMMANDS.find(rest[0], "calls_tests") else "program"
        if word in ("-W", "-X", "-r"):
            rest = rest[1:]
        elif not word.startswith("-"):
            name = posixpath.basename(word)
            if name in ("artisan", "setup.py", "Build"):
                return "test" if rest[:1] == ["test"] else "program"
            return "test" if name in COMMANDS.words["test_tools"] else _of_script(word)
    return "program"


def _of_script(path: str) -> CommandPurpose:
    return "test" if COMMANDS.find(posixpath.basename(path), "script_of_tests") else "program"


@dataclass(frozen=True, slots=True)
class Project:
    """A kind of project, with the shell lines that build and test it; None where there is none."""

    kind: str
    build: str | None
    test: str | None


def recognise_project(texts: Mapping[str, str]) -> Project | None:
    """Return the kind of a project by the texts of its files, those nearest to the top first.

    >>> recognise_project({"go.mod": "", "main.go": ""})
    Project(kind='go', build='go build ./...', test='go test ./...')
    """
    ranked = sorted(texts, key=lambda path: (path.count("/"), path))

    def nearest(*names: str) -> str | None:
        return next((path for path in ranked if posixpath.basename(path) in names), None)

    if nearest("Cargo.toml"):
        return Project("cargo", "cargo build --offline", "cargo test --offline")
    if nearest("go.mod"):
        return Project("go", "go build ./...", "go test ./...")
    if (path := nearest("package.json")) and (project := _npm(texts[path])):
        return project
    compiled = "python3 -m compileall -q -x '(^|/)[.]' ."
    if any(_has_pytest(path, text) for path, text in texts.items()):
        return Project("pytest", compiled, "python3 -m pytest -q")
    if path := nearest("Makefile", "makefile", "GNUmakefile"):
        return _make(texts[path])
    return Project("python", compiled, None) if any(path.endswith(".py") for path in texts) else None


def _npm(text: str) -> Project | None:
    scripts = _scripts_in(text)
    build = "npm run build" if "build" in scripts else None
    has_tests = "test" in scripts and "no test specified" not in scripts["test"]
    return Project("npm", build, "npm test" if has_tests else None) if build or has_tests else None


def _has_pytest(path: str, text: str) -> bool:
    name = posixpath.basename(path)
    configured = name in ("pyproject.toml", "setup.cfg", "tox.ini") and "pytest" in text
    return configured or re.fullmatch(r"test_\w+\.py|\w+_test\.py|pytest\.ini|conftest\.py", name) is not None


def _make(text: str) -> Project:
    targets = re.findall(r"^([\w.-]+)\s*:(?!=)", text, re.MULTILINE)
    test = next((target for target in ("test", "check", "tests") if target in targets), None)
    first = next((target for target in targets if not target.startswith(".")), None)
    build = "make" if first and first != test else None
    return Project("make", build, f"make {test}" if test else None)


def purposes_of(declared: ProcessConfig, project: Project | None) -> CommandPurposes:
    """Return the build and test commands that a task declares, or else those of the kind of project."""
    return CommandPurposes(
        build=declared.build or (project.build if project else None),
        test=declared.test or (project.test if project else None),
    )
