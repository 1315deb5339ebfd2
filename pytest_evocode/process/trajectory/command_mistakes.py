"""Tell whether a command was typed wrong: a program, an option, a target or a path that is not there."""

from __future__ import annotations

import posixpath
import re
from difflib import get_close_matches
from typing import Literal

#: Programs that agents call; what is almost one of these was mistyped.
_PROGRAMS = frozenset({
    "python", "pip", "pytest", "tox", "nox", "coverage", "poetry", "uv", "pipenv", "hatch", "pdm", "ruff", "mypy",
    "black", "flake8", "pylint", "isort", "django-admin", "manage.py", "node", "npm", "npx", "yarn", "pnpm", "bun",
    "deno", "tsc", "jest", "vitest", "mocha", "eslint", "prettier", "ts-node", "tsx", "webpack", "vite",
    "playwright", "cypress", "go", "gofmt", "cargo", "rustc", "rustup", "clippy", "make", "cmake", "ctest", "ninja",
    "meson", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "gdb", "valgrind", "bazel", "java", "javac",
    "mvn", "gradle", "gradlew", "ant", "sbt", "kotlinc", "scala", "lein", "ruby", "bundle", "bundler", "rake",
    "rspec", "rails", "gem", "rubocop", "php", "composer", "phpunit", "phpstan", "artisan", "dotnet", "msbuild",
    "nuget", "mix", "elixir", "iex", "rebar3", "swift", "swiftc", "xcodebuild", "dart", "flutter", "stack", "cabal",
    "ghc", "perl", "prove", "lua", "luajit", "busted", "julia", "zig", "nim", "bats", "shellcheck", "bash", "sh",
    "zsh", "git", "gh", "docker", "docker-compose", "podman", "kubectl", "helm", "terraform", "ansible", "psql",
    "mysql", "sqlite3", "redis-cli", "mongo", "curl", "wget", "ssh", "scp", "rsync", "tar", "gzip", "zip", "unzip",
    "grep", "egrep", "rg", "sed", "awk", "find", "xargs", "cat", "head", "tail", "less", "sort", "uniq", "wc",
    "cut", "tr", "tee", "diff", "patch", "ls", "cp", "mv", "rm", "mkdir", "chmod", "chown", "touch", "echo",
    "printf", "jq", "yq", "tree", "file", "strace", "ps", "kill", "timeout", "sudo", "apt", "apt-get", "brew",
    "apk", "dnf", "yum", "bc", "xxd", "date", "sleep", "which", "env", "export", "source", "test", "gotestsum",
    "bunx", "pnpx", "nextest", "shellspec", "uvx", "pipx", "scalac", "clang-tidy", "pre-commit",
})  # fmt: skip
#: Usual names of a script's own functions.
_FUNCTIONS = frozenset({
    "usage", "die", "log", "info", "warn", "error", "main", "fail", "cleanup", "help", "parse", "report", "debug",
    "abort", "run", "init",
})  # fmt: skip
#: The names of a program in these are searched in the PATH.
_NOT_FOUND = re.compile(
    r"^(?P<who>\S+?): (?:line )?(?:\d+: )?(?P<name>[\w.+/-]+): (?:(?:command )?not found|inaccessible or not found)$|"
    r"^(?P<zsh>zsh): command not found: (?P<zsh_name>[\w.+-]+)$|"
    r"^(?:/\S*/)?env: \W?(?P<env>[\w.+-]+)\W?: No such file or directory$|"
    r"^make(?:\[\d+\])?: (?P<made>[\w.+-]+): (?:No such file or directory|(?:Command )?not found)$",
    re.MULTILINE,
)
_SHELLS = re.compile(r"^(?:/\S*/)?(?:ba|da|z|k|a)?sh$")
_MISTAKES = (
    # The line itself.
    r"^(?:/\S*/)?(?:ba|da|z|k)?sh: .*(?:syntax error|unexpected EOF|unterminated quoted string|parse error|unmatched|"
    r"event not found|bad substitution|No such file or directory$|delimited by end-of-file|[Ii]llegal option|"
    r"\[\[: not found|source: not found|ambiguous redirect|too many arguments|conditional binary operator|"
    r"unary operator expected|not a valid identifier|Is a directory$|Not a directory$)|"
    r"^(?:\S*/)?zsh:(?:\d+:)? ?(?:parse error|no matches found|unmatched|bad pattern|unknown|no such file)|"
    r"^fish: |^eval: .*[Ss]yntax error|^syntax error near unexpected token|unexpected EOF while looking for matching",
    # Options and arguments.
    r"\b(?:unrecognized|unrecognised|unknown|invalid|illegal|unexpected|unsupported|"
    r"bad) (?:command[- ]line )?(?:long )?"
    r"(?:option|flag|switch|argument|parameter|subcommand|command|arguments|options)s?\b(?! of| to function| type)|"
    r"\bno such (?:option|command|subcommand)|flag provided but not defined|option .* (?:does not exist|not recognized|"
    r"requires (?:an?|\d) argument)|^(?:usage|error): .*\b(?:unrecognized|the following arguments are required)\b|"
    r"invalid choice: |requires at least \d+ arg|MSB1\d{3}: |There are no commands defined|"
    r"Could not find the selected project|Could not execute because the "
    r"specified command|is not a (?:\w+ )?command\b|Command \"\S+\" is not defined|Did you mean this\?",
    # Targets, tasks, scripts and tests.
    r"No rule to make target '?(?![^']*/)[\w-]+'?\.  Stop|no (?:test|bench|bin|example|such) (?:target|task|package)s? "
    r"(?:named|'|`)|Missing script: |Command \"\S+\" not found|Task '\S+' not found in|Unknown lifecycle phase|"
    r"Don't know how to build task|target '?\S+'? (?:does not exist|not found)|unknown target|No targets found|"
    r"Target \"\S+\" does not exist|The task \"\S+\" could not be found|no such (?:test|task|recipe)|"
    r"does not contain recipe|"
    r"No tests? (?:were )?(?:found|ran|matched|executed|match)|no tests? ran\b|collected 0 items|no test files\b|"
    r"Ran 0 tests|"
    r"No test files found|No examples found|No tests executed|Couldn't find recipe|No test matches|"
    r"None of the test targets|"
    r"package ID specification `.*` did not match|No workspaces found|Project '\S+' not found|No project found",
    r"Wrong expression passed to|Unrecognized CLI Parameter|Unrecognized option|Cannot open file \"|"
    r"Test (?:file|directory|suite) \"?\S+\"? (?:not found|does not exist)|Could not find (?:test|file|spec)s? |"
    r"(?<!executable )(?:file|path|directory|pattern) (?:\S+ )?(?:does not exist|did not match any|matched no|"
    r"not found)|"
    r"Cannot find any files matching|No files matching|Could not find any (?:test )?files|not found in any of|"
    r"Error: No (?:test files|tests) found|does not match any (?:files|packages|tests)|matched no packages|"
    r"No projects matched|No package found with|Unknown (?:workspace|project|task|script|environment)|"
    r"Workspace '?\S+'? not found|unknown environment|provided environments? not found|^Could not find '|"
    r"[Ss]ession\(?s?\)? not found|"
    r"No such (?:task|target|test|service|container|recipe)|[Ii]s not a valid (?:test|task|target|suite)|"
    r"no such service: |No such container: |Cannot (?:open|find|access) (?:input|source|spec|the)? ?file|"
    r"(?:module|package) \S+ is not (?:in|part of)|is not a (?:package|module) (?:in|of)|malformed import path|"
    r"can't load package|MISSING_TARGET|error: unable to find|Couldn't find a script named|Unknown command: |"
    # Files and directories.
    r"^ERROR: (?:file or directory )?not found: |can't open file '|Could not open input file|"
    r"^(?:ruby|perl|php|lua|node|deno|bun|gcc|cc|clang|g\+\+|c\+\+|javac|rustc|go|swiftc)\b.*: (?:\S+: )?"
    r"No such file or directory|^(?:ruby|perl): .*(?:No such file|Can't open)|Can't open perl script|"
    r"^error: file not found: |Start directory is not importable|^pattern \S+: (?:lstat|directory|stat|open) |"
    r"^(?:stat|no Go files in) \S+|no Go files in |(?:D|d)irectory not found|manifest path `.*` does not exist|"
    r"^make(?:\[\d+\])?: \*\*\* .*: No such file or directory\.|^make: \S+: No such file|No targets specified|"
    r"^Error: \S+ is not a directory|The source directory \"\S+\" does not exist|Module not found \"file:|"
    r"Could not find or load main class (?!org\.)|Unable to access jarfile|couldn't read `\S+`: No such|"
    r"could not find `Cargo\.toml`|could not determine executable|(?:cannot|can't) (?:cd|stat) |"
    r"psql: error: \S+: No such file|PG::\w+: could not open file|No such file or directory @ rb_sysopen - -|"
    r"The specified (?:path|file|project) .* (?:does not exist|was not found)|Project file does not exist|"
    r"LoadError\b.*cannot load such file -- /\S+_(?:spec|test)\b|"
    r"An error occurred while loading .*\n.*cannot load such file -- /",
)
_MISTYPED = re.compile("|".join(_MISTAKES), re.MULTILINE | re.IGNORECASE)
#: Options of a plug-in that pytest does not know, and the file they stand in.
_CONFIGURED_OPTION = re.compile(r"unrecognized arguments: (\S+).*\n\s+inifile: (?!None)")
_NAMED_OPTION = re.compile(r"^(?:[\w./-]+: )?(?:bad|unknown|unrecognized) option:? [`'\"]?(--[\w-]+)", re.M | re.I)
#: A package that the registry does not know.
_UNKNOWN_PACKAGE = re.compile(r"404 +'(\S+?)@")
_OPTION_OF_A_PLUGIN = re.compile(
    r"unrecognized arguments: (?:--(?:cov|timeout|asyncio-mode|html|reruns|benchmark|forked|json-report|ds|"
    r"numprocesses|"
    r"snapshot-update|randomly|flake8|mypy|pylint)\b|-n\b)"
)
#: Subcommands that are installed apart.
_COMMAND_OF_A_PLUGIN = re.compile(
    r"no such command: `(?:nextest|clippy|fmt|llvm-cov|tarpaulin|watch|audit|deny|fuzz|miri|expand|outdated|make|insta|"
    r"mutants|hack|udeps|criterion|leptos|tauri|wasi)`|'(?:compose|buildx)' is not a docker command"
)
_UNFOUND_TEST = re.compile(r"No module named '(?P<module>[\w.]+)'|module '[\w.]+' has no attribute '(?P<name>\w+)'")
_PATH_AS_MODULE = re.compile(r"No module named '\w[^']*/")
_UNLOADED_SPEC = re.compile(r"cannot load such file -- \S*/([\w-]+_(?:spec|test)(?:\.rb)?)\b")
_UNFOUND_MODULE = re.compile(r"^\S*(?:python|pypy)[\d.]*(?:\.exe)?: No module named '?([\w.]+)", re.MULTILINE)
#: A script that node was given and did not find.
_NO_SCRIPT = re.compile(r"^Error: Cannot find module '/([^']+)'\n(?:.*\n)*.*requireStack: \[\]", re.MULTILINE)
_UNFOUND_SCRIPT = re.compile(
    r"can't open file '|Could not open input file|^(?:ruby|perl|php|lua): .*(?:No such file|Can't open)|"
    r"Can't open perl script|Unable to access jarfile|Could not find or load main class (?!org\.)|"
    r"Module not found \"file:|"
    r"^\S*sh: (?:line \d+: |\d+: )?\S+: (?:No such file or directory|not found)$|can't find '__main__' module",
    re.MULTILINE,
)
_NO_PATH = re.compile(r"^(?:\S+: )?(?:line \d+: )?(?P<path>\.{0,2}/\S+): No such file or directory$", re.MULTILINE)


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
    match = _NOT_FOUND.search(output)
    if match is None:
        return None
    name = match["name"] or match["zsh_name"] or match["made"] or match["env"]
    slip = is_slip(name)
    if match["made"] and match["made"] in re.split(r"[\s=]+", command):
        return "mistyped"  # The file of rules, or a target.
    of_script = match["who"] is not None and not _SHELLS.match(match["who"])
    if of_script or (match["made"] and name not in command):
        # A name with an underscore is that of a function.
        return "within" if of_script and (slip or "_" in name or name in _FUNCTIONS) else "missing"
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
    return re.sub(r"-?[\d.]+$", "", name) in _PROGRAMS


def meant_program(name: str) -> str | None:
    """Return the well-known program that a name is almost equal to; None if it is one, or almost none.

    >>> meant_program("pyhton"), meant_program("python3"), meant_program("valgrind")
    ('python', None, None)
    """
    plain = re.sub(r"-?[\d.]+$", "", name)
    if not name or name in _PROGRAMS or plain in _PROGRAMS:
        return None
    swapped = [each for each in sorted(_PROGRAMS) if sorted(name) == sorted(each)]
    close = swapped or get_close_matches(name, sorted(_PROGRAMS), 1, 0.8)
    return close[0] if close else None


def is_mistyped(output: str, command: str) -> bool:
    """Return whether the shell or a program says that the command line names something that is not there.

    Args:
        output: What was printed, by a command that got no further than its arguments.
        command: The command as it was written; empty if it is unknown.
    """
    option = _CONFIGURED_OPTION.search(output)
    if option and command and option[1] not in command:
        return False  # It stands in the configuration.
    named = _NAMED_OPTION.search(output)
    if named and command and named[1] not in command:
        return False  # A script or the configuration has it.
    if _MISTYPED.search(output):
        return True
    return any(not command or path["path"] in command for path in _NO_PATH.finditer(output))


def lacks_a_plugin(output: str, command: str) -> bool:
    """Return whether an option is unknown that the configuration asks for, or that a well-known plug-in has."""
    option = _CONFIGURED_OPTION.search(output)
    configured = option is not None and bool(command) and option[1] not in command
    return configured or any(each.search(output) for each in (_OPTION_OF_A_PLUGIN, _COMMAND_OF_A_PLUGIN))


def names_no_test(output: str, command: str) -> bool:
    r"""Return whether unittest or RSpec found no module, class or file of tests of the name that the command has.

    >>> names_no_test("unittest.loader._FailedTest.b)\nNo module named 'tests.b'", "python -m unittest tests.b")
    True
    """
    if _PATH_AS_MODULE.search(output):
        return True
    if "_FailedTest" in output and (missing := _UNFOUND_TEST.search(output)) is not None:
        name = missing["module"] or missing["name"]
        return re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", command) is not None
    unloaded = _UNLOADED_SPEC.search(output)
    return unloaded is not None and unloaded[1] in command


def unfound_module(output: str) -> str | None:
    """Return the module that Python was to run and did not find; None for none.

    >>> unfound_module("/usr/bin/python3: No module named shop.crat")
    'shop.crat'
    """
    module = _UNFOUND_MODULE.search(output)
    return module[1] if module else None


def names_no_script(output: str, command: str) -> bool:
    """Return whether an interpreter did not find the script that the command names; any script without a command."""
    package = _UNKNOWN_PACKAGE.search(output)
    if package is not None and package[1] in command and meant_program(package[1]) is not None:
        return True
    unfound = _NO_SCRIPT.search(output)
    if unfound is None or posixpath.basename(unfound[1]) not in (command or unfound[1]):
        return _UNFOUND_SCRIPT.search(output) is not None
    return True
