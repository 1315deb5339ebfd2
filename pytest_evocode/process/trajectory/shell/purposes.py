"""Tell which commands build, test or start the product."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise, takewhile
from typing import Literal

from pytest_evocode.process.trajectory.command_mistakes import meant_program
from pytest_evocode.process.trajectory.shell.command_lines import parse_line
from pytest_evocode.process.trajectory.shell.syntax import SimpleCommand

CommandPurpose = Literal["build", "test", "program"]

_TEST_TOOLS = {
    "pytest", "py.test", "tox", "nox", "jest", "vitest", "mocha", "ava", "rspec", "phpunit", "bats", "ctest", "karma",
    "nose2", "nosetests", "playwright", "cypress", "prove", "busted", "pest", "paratest", "codecept", "behat",
    "cucumber",
    "behave", "robot", "jasmine", "tap", "uvu", "testem", "minitest", "gotestsum", "ginkgo", "richgo", "trial", "ward",
    "green", "stestr", "wtr", "web-test-runner", "newman", "shellspec", "roundup", "shunit2", "testthat", "kaocha",
    "qunit", "lab", "tape", "borp", "hardhat", "wdio", "detox", "simple-phpunit", "prove6",
}  # fmt: skip
_TEST_MODULES = {"pytest", "unittest", "nose2", "tox", "doctest", "nox"}
_BUILD_TOOLS = {
    "gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "tsc", "vue-tsc", "rustc", "cmake", "ninja", "msbuild",
    "webpack",
    "kotlinc", "scalac", "swiftc", "ghc", "ocamlfind", "elixirc", "erlc", "nasm", "esbuild", "rollup", "mypy",
    "pyright",
}  # fmt: skip
_BUILD_MODULES = {"compileall", "py_compile", "build", "mypy"}
#: Programs whose first words say what they do.
_TOOLCHAINS = {
    "go", "cargo", "dotnet", "mvn", "mvnw", "gradle", "gradlew", "mix", "swift", "zig", "flutter", "dart", "stack",
    "cabal",
    "sbt", "lein", "bazel", "rebar3", "dune", "meson", "xcodebuild", "gleam", "crystal", "ant", "rake", "rails",
    "composer",
    "terraform", "vite", "next", "nuxt", "astro", "ng", "parcel", "gatsby", "expo", "svelte-kit",
}  # fmt: skip
_TEST_GOALS = {"test", "tests", "nextest", "verify", "check", "spec", "runtest", "eunit", "ct"}
_BUILD_GOALS = {
    "build", "check", "vet", "clippy", "compile", "package", "assemble", "install", "analyze", "validate", "plan",
}  # fmt: skip
#: Options with which an interpreter only checks a file's syntax.
_CHECKS = {
    ("perl", "-c"),
    ("perl", "-wc"),
    ("ruby", "-c"),
    ("ruby", "-wc"),
    ("php", "-l"),
    ("node", "-c"),
    ("node", "--check"),
}
#: Options with which a test runner lists or explains, and runs nothing.
_LISTS = {
    "--collect-only", "--co", "--version", "--help", "-h", "--fixtures", "--markers", "--listTests", "--list",
    "--list-tests", "--list-suites", "--list-groups", "--dry-run", "--showConfig", "--show-config", "--clearCache",
    "--setup-plan", "--setup-only", "--show-only", "--just-print", "--list-envs", "--listenvs", "--fixtures-per-test",
    "--notest",
}  # fmt: skip
#: By program, the short options, and the words behind the first, with which it lists or explains.
_LISTS_OF = {
    "go": {"-list", "-n", "help"}, "ctest": {"-N"}, "make": {"-n"}, "gmake": {"-n"}, "just": {"-n", "-l"},
    "cargo": {"list", "help"}, "vitest": {"list"}, "gradle": {"tasks", "-m"}, "gradlew": {"tasks", "-m"},
    "dotnet": {"-t"}, "bats": {"-c", "--count"}, "rspec": {"-v"}, "tox": {"list", "-l", "config"}, "nox": {"-l"},
    "rake": {"-T", "-n"}, "mvn": {"dependency:tree", "help:effective-pom"}, "bazel": {"query"}, "prove": {"-D"},
    "tsc": {"-v", "--init", "--showConfig"}, "node": {"-v"}, "python": {"-V"}, "playwright": {"install"},
    "cypress": {"open", "verify", "install"}, "meson": {"introspect"}, "java": {"-version"}, "php": {"-v", "-m", "-i"},
}  # fmt: skip
#: Options with which a test tool builds its tests and runs none.
_BUILDS_ONLY = {"--no-run", "-DskipTests", "-Dmaven.test.skip", "-DskipTests=true", "-Dmaven.test.skip=true"}
#: Options that say where a package manager works, with a value as a word of its own.
_PLACES = {
    "--prefix", "-w", "--workspace", "-C", "--dir", "--filter", "-F", "--cwd", "--scope", "--filter-prod", "--project",
}  # fmt: skip
#: Options with which make builds nothing, and with which an interpreter only says what it is.
_MAKES_NOTHING = {"-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "--version", "-v", "--help", "-h"}
_SAYS_WHAT_IT_IS = {"-V", "-VV", "--version", "-v", "--help", "-h"}
#: Targets that build nothing.
_CLEANS = {"clean", "distclean", "mrproper", "help"}
#: Programs that start the product or bring its database up to date, and are not the product's own.
_SERVERS = {"uvicorn", "gunicorn", "hypercorn", "flask", "alembic", "streamlit", "nodemon", "knex", "prisma"}
_SHELLS = {"bash", "sh", "dash", "zsh"}
_PACKAGE_MANAGERS = {"npm", "yarn", "pnpm", "bun"}
_INTERPRETERS = re.compile(
    r"(python(\d(\.\d+)?)?|pypy3?|node|nodejs|ruby|perl|php|lua|deno|bun|java|ts-node|tsx|"
    r"Rscript|julia|luajit|lua5\.\d|elixir|groovy)"
)
_SCRIPT = re.compile(r"\.(py|js|mjs|cjs|ts|rb|pl|php|lua|sh|jar|R|jl|exs)$")
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
        if command.program in ("psql", "mysql", "mariadb", "sqlite3"):
            scripts = [*words, *(each.target or "" for each in command.redirects if each.operator == "<")]
            return "program" if any(word.endswith(".sql") for word in scripts) else None
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
        return key in keys or _RUN_OPTION.sub("", key) in _ALL_TESTS


#: Options that change how tests are run, but not which.
_RUN_OPTION = re.compile(
    r" (?:-race|-count=\d+|--offline|--locked|--workspace|--all|--run|--runInBand|--ci|--noinput|--keepdb|"
    r"--parallel(?:=\w+)?|-j\d*|-n ?(?:auto|\d+)|-B|-f)(?= |$)"
)
_ALL_TESTS = {
    "pytest", "pytest tests", "pytest tests/", "pytest .", "unittest", "unittest discover", "npm test", "npm run test",
    "yarn test", "pnpm test", "go test ./...", "cargo test", "make test", "make check", "ctest", "tox", "bun test",
    "python manage.py test", "manage.py test", "python ./manage.py test", "cargo nextest run", "npx jest", "jest",
    "npx vitest run", "vitest run", "npx mocha", "mocha", "node --test", "nox", "mvn test", "mvn verify", "gradle test",
    "gradlew test", "dotnet test", "mix test", "swift test", "rspec", "bundle exec rspec", "phpunit", "deno test",
    "mvnw test", "mvnw verify", "gradle check", "gradlew check", "gradle build", "gradlew build", "rake", "rake test",
    "rake spec", "rails test", "composer test", "php artisan test", "php vendor/bin/phpunit", "pest", "flutter test",
    "dart test", "stack test", "cabal test", "sbt test", "lein test", "prove", "prove -l", "prove -lr", "bats test",
    "bats tests",
    "bats test/", "bats tests/", "meson test -C build", "ninja -C build test", "ctest --test-dir build",
    "bazel test //...",
}  # fmt: skip


def _is_declared(words: Sequence[str], declared: str) -> bool:
    return any(
        len(words) >= len(each.words) and list(each.words) == list(words[: len(each.words)]) and each.program != "cd"
        for each in parse_line(declared).commands
    )


def _purpose(program: str, words: Sequence[str]) -> CommandPurpose | None:
    plain = [word for word in words[1:] if not word.startswith("-")]
    first = plain[0] if plain else ""
    if _lists(program, words):
        return None
    if program in ("npx", "bunx", "pnpx") and plain:
        return _purpose(first, [first, *words[words.index(first) + 1 :]])
    wrapped = program.rpartition("-")[2] in ("mocha", "jest", "pytest", "phpunit", "vitest")
    if program in _TEST_TOOLS or wrapped or words[1:3] in (["-m", "pytest"], ["-m", "unittest"]):
        return "test"
    if program in ("clojure", "clj", "bb") and any(re.match(r"-[MXA].*:test\b|test$", word) for word in words[1:]):
        return "test"
    if program in ("manage.py", "django-admin") or (
        program.startswith("python") and posixpath.basename(first) == "manage.py"
    ):
        return "test" if any(word == "test" or _meant(word, {"test"}) for word in plain[:2]) else "program"
    if program in _SHELLS:
        if "-n" in words[1:3]:
            return "build"  # It checks the syntax.
        return None if not first or not _SCRIPT.search(first) else "test" if _is_test_file(first) else "program"
    if program in _BUILD_TOOLS:
        return "test" if program in ("ninja", "cmake") and {"test", "check"}.intersection(plain) else "build"
    if program in _PACKAGE_MANAGERS:
        return _of_package_manager(_without_places(words))
    if program in _TOOLCHAINS:
        purpose = _of_toolchain(program, plain)
        return "build" if purpose == "test" and _only_builds(program, words) else purpose
    if program == "deno" and first in ("test", "check", "compile"):
        return "test" if first == "test" else "build"
    if program in _TASK_RUNNERS or (program, first) == ("deno", "task"):
        return _of_package_manager([word for word in plain if word not in ("task", "run", "affected", "run-many")])
    if program in ("test", "tests") and len(words) == 1:
        return "test"  # A task of that name, as the shell's own ``test`` has arguments.
    if program in _SERVERS:
        return "program" if first else None
    if program in ("docker", "podman", "docker-compose") and "build" in plain[:2]:
        return "build"
    if program in ("hatch", "pdm", "poe", "pixi", "mise"):
        return "test" if first.startswith("test") else None
    if program in ("sail", "artisan"):
        return "test" if "test" in plain[:2] else "program"
    if program in ("make", "gmake", "just"):
        if (plain and _CLEANS.issuperset(plain)) or _MAKES_NOTHING.intersection(words):
            return None
        return "test" if any(word in ("test", "tests", "check") for word in plain) else "build"
    if _INTERPRETERS.fullmatch(program):
        return _of_interpreter(words)
    if words[0].startswith(("./", "../")) or (_SCRIPT.search(words[0]) and "/" in words[0]):
        return "test" if _is_test_file(words[0]) else "program"
    meant = meant_program(program) if "/" not in words[0] else None
    return _purpose(meant, [meant, *words[1:]]) if meant else None


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
    return plain in _PREPARATIONS.get(program, ()) or (program == "yarn" and not plain and not words[1:])


#: By program, what it is told to install or fetch everything.
_PREPARATIONS: Mapping[str, Sequence[list[str]]] = {
    "npm": (["ci"], ["install"], ["i"]), "pnpm": (["install"], ["i"]), "yarn": (["install"],), "bun": (["install"],),
    "uv": (["sync"],), "poetry": (["install"],), "pdm": (["install"], ["sync"]), "pipenv": (["install"], ["sync"]),
    "composer": (["install"],), "bundle": (["install"], []), "mix": (["deps.get"],), "cargo": (["fetch"],),
    "go": (["mod", "download"], ["mod", "tidy"]), "dotnet": (["restore"],), "swift": (["package", "resolve"],),
    "dart": (["pub", "get"],), "flutter": (["pub", "get"],), "rebar3": (["get-deps"],),
}  # fmt: skip


def _lists(program: str, words: Sequence[str]) -> bool:
    """Return whether a tool lists or explains, and runs nothing."""
    tool = "python" if program.startswith("python") else program
    known = program in (_TEST_TOOLS | _BUILD_TOOLS | _TOOLCHAINS | _PACKAGE_MANAGERS | {"make", "gmake", "just"})
    if words[1:3] == ["-m", "pytest"] or words[1:3] == ["-m", "unittest"] or known:
        own = words[: words.index("--")] if "--" in words and program in _TOOLCHAINS else words
        if _LISTS.intersection(own):
            return True
    behind = words[1:2] if _INTERPRETERS.fullmatch(program) else words[1:4]  # Further words are the script's.
    own = list(takewhile(lambda word: word not in ("run", "--"), behind))
    return bool(_LISTS_OF.get(tool, set()).intersection(own))


def _only_builds(program: str, words: Sequence[str]) -> bool:
    """Return whether a command that has to do with tests builds and runs none."""
    without_tests = ("-x", "test") in list(pairwise(words))
    return bool(_BUILDS_ONLY.intersection(words)) or (program == "go" and "-c" in words) or without_tests


def _without_places(words: Sequence[str]) -> list[str]:
    """Return what a package manager is to do, without the options that say in which package."""
    plain: list[str] = []
    rest = list(words[1:])
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word in _PLACES or (word == "workspace" and not plain):
            rest = rest[1:]
        elif not word.startswith("-") and (word, plain) not in (("recursive", []), ("workspaces", []), ("foreach", [])):
            plain.append(word)
    return plain


def _of_package_manager(plain: Sequence[str]) -> CommandPurpose | None:
    called = plain[1] if plain[:1] in (["exec"], ["dlx"], ["x"]) and len(plain) > 1 else (plain[0] if plain else "")
    if called in _TEST_TOOLS or called in _BUILD_TOOLS:
        return "test" if called in _TEST_TOOLS else "build"
    script = plain[1] if plain[:1] in (["run"], ["run-script"]) and len(plain) > 1 else (plain[0] if plain else "")
    if len(plain) > 1 and plain[1].startswith("test") and _meant(plain[0], {"run"}):
        return "test"
    if script in ("t", "tst") or script.startswith("test") or _meant(script, {"test"}):
        return "test"
    if (
        script.startswith("build")
        or script in ("compile", "typecheck", "type-check", "tsc")
        or _meant(script, {"build"})
    ):
        return "build"
    return "program" if script in ("start", "dev", "serve") else None


def _of_toolchain(program: str, plain: Sequence[str]) -> CommandPurpose | None:
    if plain[:1] == ["run"] and program != "composer":
        return "program"
    if plain and plain[0] in _MAKES_FILES:
        return None
    goals = {goal.rpartition(":")[2] for goal in plain[:3]} | {goal.partition(":")[0] for goal in plain[:3]}
    builds_by_checking = program == "cargo" and plain[:1] == ["check"]
    if goals & _TEST_GOALS and not builds_by_checking:
        return "test"
    if goals & _BUILD_GOALS and program != "composer":
        return "build"
    if any(_STARTS.search(goal) for goal in plain[:2]):
        return "program"
    first = plain[0] if plain else ("test" if program == "rake" else "")
    if first.startswith(("assemble", "build")):
        return "build"
    if first.startswith(("test", "compile")) or _meant(first, {"test", "verify"}):
        return "build" if first.startswith("compile") else "test"
    return "build" if _meant(first, {"build", "compile"}) else None


#: First words of tool chains that write or fetch files, whatever these are called.
_MAKES_FILES = {"new", "init", "create", "generate", "g", "add", "remove", "mod"}
#: Goals that start the product, or bring its database up to date.
_STARTS = re.compile(
    r":(?:run|exec|java|dev|start)$|^(?:bootRun|runserver|runner|server|phx\.server)$|"
    r"^(?:db|ecto):(?:migrate|setup|reset|seed|rollback|prepare|create)|^ecto\.\w+$"
)


def _meant(word: str, goals: set[str]) -> bool:
    """Return whether a word is one of some goals with two letters exchanged, or nearly so."""
    return word not in _NO_SLIPS and bool(get_close_matches(word, goals, 1, 0.75))


#: Programs that run tasks under names of the project.
_TASK_RUNNERS = {"task", "go-task", "mage", "invoke", "inv", "nx", "turbo", "lerna", "rushx", "gulp", "grunt", "moon"}
#: Goals and scripts that look like others.
_NO_SLIPS = {"rest", "best", "latest", "text", "nest"}


#: What runs tests in a script that is typed in.
_CALLS_TESTS = re.compile(
    r"Pkg\.test\(|testthat::|test_(?:dir|file|local)\(|devtools::test|pytest\.main|unittest\.main"
)


def _of_interpreter(words: Sequence[str]) -> CommandPurpose | None:
    rest = list(words[1:])
    if rest and _SAYS_WHAT_IT_IS.issuperset(rest):
        return None
    if "--test" in rest:
        return "test"
    while rest:
        word = rest.pop(0)
        if word == "-m" and rest:
            module = rest[0].partition(".")[0]
            if module in _TEST_MODULES or _meant(module, {"pytest", "unittest"}) or rest[:2] == ["django", "test"]:
                return "test"
            if module in _BUILD_MODULES:
                return "build"
            return None if module in ("pip", "venv", "http", "json", "ensurepip", "site") else "program"
        if (posixpath.basename(words[0]), word) in _CHECKS:
            return "build"
        if word in ("-c", "-e", "-"):
            return "test" if rest and _CALLS_TESTS.search(rest[0]) else "program"
        if word in ("-W", "-X", "-r"):
            rest = rest[1:]
        elif not word.startswith("-"):
            name = posixpath.basename(word)
            if name == "artisan":
                return "test" if rest[:1] == ["test"] else "program"
            return "test" if name in _TEST_TOOLS or _is_test_file(word) else "program"
    return "program"


def _is_test_file(path: str) -> bool:
    name = posixpath.basename(path)
    if name.startswith(("test_", "test-", "test.", "tests.", "run_tests", "run-tests")) or name.endswith(
        ("_test", ".t")
    ):
        return True
    return any(mark in name for mark in ("_test.", ".test.", ".spec.", "_spec."))
