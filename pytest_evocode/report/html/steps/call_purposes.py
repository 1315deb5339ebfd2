"""What a tool call of an agent is for, in one word, found cheaply and without the parsers that process scores need."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_evocode.process.trajectory.agent_tools import ToolUse, tool_use
from pytest_evocode.process.trajectory.shell.commands import SimpleCommand
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes

_LONGEST = 4000  # characters of a command line that are looked at
_MOST = 40  # commands of a line
_SPLIT = re.compile(r"&&|\|\||[;|\n]")
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_WRITES = re.compile(r"(?<![0-9&>])>{1,2}\s*(?![&\s]|/dev/)|\bsed\s+(-\w+\s+)*-i|\btee\s|\bapply_patch\b|\bpatch\s+-p")
_ASSIGNMENT = re.compile(r"\w+=")
_WRAPPERS = {"sudo", "env", "time", "nice", "exec", "command", "nohup", "xargs"}
_READ = {"cat", "head", "tail", "less", "more", "nl", "sed", "awk", "wc", "ls", "tree", "stat", "file", "diff", "pwd"}
_SEARCH = {"grep", "egrep", "fgrep", "rg", "ag", "find", "fd", "locate", "which"}
_ORDER = ("test", "build", "git", "edit", "search", "read")
_PURPOSES = CommandPurposes()


def use_of(name: str, arguments: Mapping[str, Any]) -> ToolUse:
    """Return what a call is asked to do; ``other`` where its arguments are not what its tool takes."""
    try:
        return tool_use(name, arguments)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return ToolUse("other")


def purpose_of(use: ToolUse, *, changed: bool | None) -> str:
    """Return what a call is for: ``edit``, ``test``, ``read``, ``search``, ``build``, ``git`` or ``other``.

    Args:
        use: What the call is asked to do.
        changed: Whether it changed files of the workspace; None where that was not recorded.

    >>> purpose_of(use_of("bash", {"command": "cd app && python -m pytest -q"}), changed=False)
    'test'
    """
    if use.kind == "write":
        return "edit"
    if use.kind in ("read", "search"):
        return use.kind
    if use.kind != "shell":
        return "edit" if changed else "other"
    line = use.line[:_LONGEST]
    found = set(_purposes(_HERE_DOCUMENT.sub("\n", line)))
    if changed or (changed is None and _WRITES.search(line)):
        found.add("edit")
    return next((each for each in _ORDER if each in found), "other")


def _purposes(line: str) -> Iterator[str]:
    for text in _SPLIT.split(line)[:_MOST]:
        try:
            words = shlex.split(text, comments=True)
        except ValueError:
            words = text.split()
        while words and (_ASSIGNMENT.match(words[0]) or words[0] in _WRAPPERS):
            del words[0]
        if words[:1] == ["timeout"]:
            words = [word for word in words[1:] if not word.startswith("-")][1:]
        if not words:
            continue
        command = SimpleCommand(tuple(words), text)
        program = command.program
        if program == "git":
            yield "git"
        elif (purpose := _PURPOSES.of(command)) in ("test", "build"):
            yield purpose
        elif program in _SEARCH:
            yield "search"
        elif program in _READ:
            yield "read"
