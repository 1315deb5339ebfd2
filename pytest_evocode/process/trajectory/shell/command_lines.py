"""Parse shell command lines into the simple commands that they run, without wrappers such as ``timeout 20``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace

from pytest_evocode.process.trajectory.shell.syntax import CommandLine, SimpleCommand, parse_syntax

#: Programs that run the command after them, with those of their options that take a value.
_PREFIXES = {
    "timeout": {"-k", "-s", "--signal", "--kill-after"}, "env": {"-u", "-C", "--unset", "--chdir"}, "nice": {"-n"},
    "sudo": {"-u", "-g"}, "time": {"-f", "-o"}, "nohup": set(), "exec": set(), "command": set(), "builtin": set(),
    "stdbuf": {"-i", "-o", "-e"}, "xargs": {"-n", "-I", "-P", "-d", "-L"}, "then": set(), "do": set(), "else": set(),
    "uv": set(), "poetry": set(), "pipenv": set(), "hatch": set(), "pdm": set(), "bundle": set(), "coverage": set(),
}  # fmt: skip
_RUNNERS = {"uv", "poetry", "pipenv", "hatch", "pdm", "bundle"}
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
    if words and posixpath.basename(words[0] or "") in _SHELLS:
        script = _script_of(words)
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
        if rest[:1] not in (["run"], ["exec"]):
            return None
        rest = rest[1:]
        if name == "coverage":  # It runs Python: `coverage run -m pytest`.
            rest = ["python", *rest]
    while rest:
        word = rest[0] or ""
        if word in _PREFIXES[name]:
            rest = rest[2:]
        elif name != "coverage" and (word.startswith("-") or (name == "env" and "=" in word)):
            rest = rest[1:]
        else:
            break
    if name == "timeout":
        rest = rest[1:]
    return tuple(rest) or None


def _script_of(words: tuple[str | None, ...]) -> str | None:
    for position, word in enumerate(words[1:], 1):
        if word is None or not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word:
            return words[position + 1] if position + 1 < len(words) else None
    return None
