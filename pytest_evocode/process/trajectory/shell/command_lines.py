"""Parse shell command lines into the simple commands that they run, without wrappers such as ``timeout 20``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from pytest_evocode.process.trajectory.shell.syntax import CommandLine, SimpleCommand, parse_syntax

#: Programs that run the command after them, with those of their options that take a value.
_PREFIXES = {
    "timeout": {"-k", "-s", "--signal", "--kill-after"}, "env": {"-u", "-C", "--unset", "--chdir"}, "nice": {"-n"},
    "sudo": {"-u", "-g"}, "time": {"-f", "-o"}, "nohup": set(), "exec": set(), "command": set(), "builtin": set(),
    "stdbuf": {"-i", "-o", "-e"}, "xargs": {"-n", "-I", "-P", "-d", "-L"}, "then": set(), "do": set(), "else": set(),
    "uv": set(), "poetry": set(), "pipenv": set(), "hatch": set(), "pdm": set(), "bundle": set(), "coverage": set(),
    "valgrind": set(), "xvfb-run": {"-s", "-e", "-n"}, "nyc": set(), "c8": set(), "cross-env": set(), "setsid": set(),
    "ionice": {"-c", "-n"}, "unbuffer": set(), "doas": {"-u"}, "rye": set(), "pixi": {"-e"}, "mise": set(),
    "conda": {"-n", "-p"}, "micromamba": {"-n", "-p"}, "pipx": set(), "uvx": {"--from", "--with"},
    "dotenv": {"-f", "-e"}, "chronic": set(), "direnv": set(),
    "strace": {"-e", "-o"}, "taskset": {"-c"}, "parallel": {"-j"},
}  # fmt: skip
_RUNNERS = {
    "uv", "poetry", "pipenv", "hatch", "pdm", "bundle", "rye", "pixi", "mise", "conda", "micromamba", "pipx", "direnv",
}  # fmt: skip
#: Options of runners of which the value is a word of its own.
_VALUES_OF_RUNNERS = {"--with", "--extra", "--group", "--python", "-p", "--env-file", "--directory", "--project", "-C"}
#: Programs that run a command in a container or on another machine; it follows a name behind these words.
_CONTAINERS = {
    "docker": {"exec", "run"}, "podman": {"exec", "run"}, "docker-compose": {"exec", "run"}, "kubectl": {"exec"},
    "nerdctl": {"exec", "run"}, "ddev": {"exec"}, "lando": {"ssh"}, "vagrant": {"ssh"}, "ssh": {""},
}  # fmt: skip
#: Their options that take a value.
_VALUES_OF_CONTAINERS = {
    "-w", "-e", "-u", "-v", "-p", "-f", "-n", "-c", "-i", "-o", "-l", "--workdir", "--env", "--user", "--volume",
    "--name", "--network", "--file", "--env-file", "--entrypoint", "--mount", "--platform", "--project-directory",
    "--namespace", "--container", "--memory", "--cpus", "--index", "--profile",
}  # fmt: skip
_SHELLS = {"bash", "sh", "dash", "zsh"}


def parse_line(text: str) -> CommandLine:
    """Parse a line or script for bash into the commands that it runs.

    Raises:
        UsageError: The parser is not installed.
    """
    line = parse_syntax(text)
    return replace(line, commands=tuple(inner for command in line.commands for inner in _unwrapped(command)))


def _unwrapped(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """Yield the commands that a command runs, without ``timeout 20``, ``env A=b``, ``bash -c`` and the like."""
    words = command.words
    while words and posixpath.basename(words[0] or "") in _PREFIXES:
        rest = _without_prefix(words)
        if rest is None:
            break
        words = rest
    inside = _in_container(words)
    if isinstance(inside, tuple):
        yield from _unwrapped(replace(command, words=inside, cwd=None))
        return
    if isinstance(inside, str) or (words and posixpath.basename(words[0] or "") in _SHELLS):
        script = inside if isinstance(inside, str) else _script_of(words)
        if script is not None:
            inner = parse_line(script).commands
            for number, each in enumerate(inner):
                cwd = None if command.cwd is None or each.cwd is None else posixpath.join(command.cwd, each.cwd)
                last = number == len(inner) - 1
                redirects = (*each.redirects, *command.redirects) if last else each.redirects
                stdin = each.stdin if each.stdin is not None else command.stdin
                after = command.after if last else each.after
                yield replace(each, cwd=cwd, redirects=redirects, stdin=stdin, after=after)
            return
    yield replace(command, words=words)


def _without_prefix(words: tuple[str | None, ...]) -> tuple[str | None, ...] | None:
    name = posixpath.basename(words[0] or "")
    rest = list(words[1:])
    if name in _RUNNERS or name == "coverage":
        while name in _RUNNERS and len(rest) > 1 and rest[0] in _VALUES_OF_RUNNERS:
            rest = rest[2:]
        if rest[:1] not in (["run"], ["exec"], ["x"]):
            return None
        rest = rest[2:] if name == "direnv" else rest[1:]
        while name in _RUNNERS and rest and rest[0] in _VALUES_OF_RUNNERS:
            rest = rest[2:]
        if name == "coverage":  # It runs Python: `coverage run -m pytest`.
            rest = ["python", *rest]
    while rest:
        word = rest[0] or ""
        if word in _PREFIXES[name]:
            rest = rest[2:]
        elif name != "coverage" and (word.startswith("-") or (name in ("env", "cross-env") and "=" in word)):
            rest = rest[1:]
        else:
            break
    if name == "timeout":
        rest = rest[1:]
    return tuple(rest) or None


def _in_container(words: tuple[str | None, ...]) -> tuple[str | None, ...] | str | None:
    """Return the words, or the script, that a command runs in a container or on another machine; None for none."""
    name = posixpath.basename(words[0] or "") if words else ""
    verbs = _CONTAINERS.get(name)
    if verbs is None:
        return None
    rest = [*words[1:]] if name != "ssh" else ["", *words[1:]]
    while rest and rest[0] not in verbs:
        if rest[0] is None or (rest[0] not in ("compose",) and not rest[0].startswith("-")):
            return None
        rest = rest[2:] if rest[0] in _VALUES_OF_CONTAINERS else rest[1:]
    rest = rest[1:]
    entry = next((after for option, after in pairwise(rest) if option == "--entrypoint"), None)
    script = "--" not in rest and name in ("vagrant", "lando") and "-c" in rest[:-1]
    if script:
        return rest[rest.index("-c") + 1] or ""
    while rest and (rest[0] or "").startswith("-"):
        rest = rest[2:] if rest[0] in _VALUES_OF_CONTAINERS and "=" not in (rest[0] or "") else rest[1:]
    rest = rest if name == "ddev" else rest[1:]  # The name of the container, service, image or machine.
    if "--" in rest[:3]:
        rest = rest[rest.index("--") + 1 :]
    if not rest:
        return None
    if name == "ssh":
        return " ".join(word or "" for word in rest)
    return (entry, *rest) if entry else tuple(rest)


def _script_of(words: tuple[str | None, ...]) -> str | None:
    for position, word in enumerate(words[1:], 1):
        if word is None or not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word:
            return words[position + 1] if position + 1 < len(words) else None
    return None
