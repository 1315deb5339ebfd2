"""Tell what a tool call reads, writes, runs or plans, for the tools of many agents."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_evocode.process.rules import COMMANDS
from pytest_evocode.process.trajectory.file_texts import TextChange, read_patch

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What a tool call is asked to do; paths are as the agent wrote them."""

    kind: Literal["shell", "read", "search", "write", "plan", "ask", "other"]
    line: str = ""
    """The command line for a shell, or the pattern of a search."""
    cwd: str = ""
    """The directory in which a shell is asked to start."""
    reads: tuple[str, ...] = ()
    changes: tuple[TextChange, ...] = ()
    plan: str = ""
    """The plan's steps, one on each line."""
    adds_to_plan: bool = False
    """Whether the plan is one more step of a list that earlier calls began."""
    question: str = ""


def tool_use(name: str, arguments: Arguments) -> ToolUse:
    """Return what a call is asked to do, by the tool's name or, for an unknown tool, by its arguments.

    >>> tool_use("Read", {"file_path": "/app/a.py"}).reads, tool_use("bash", {"command": "ls"}).line
    (('/app/a.py',), 'ls')
    """
    key = _plain(name.rpartition("__")[2] or name)
    # A server's name may be half of the tool's: todo__write.
    named = (
        kind for plain in (_plain(name), key) for kind, tools in COMMANDS.tables["tools"].items() if plain in tools
    )
    kind = next(named, "")
    return _READERS[kind](arguments) if kind else _by_arguments(key, arguments)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _by_arguments(key: str, arguments: Arguments) -> ToolUse:
    """Return what a call of an unknown tool is asked to do, by its arguments."""
    path = _given(arguments, "path_arguments")
    if _given(arguments, "command_arguments") and not path:
        return _shell(arguments)
    if path and any(part in key for part in ("read", "view", "open", "cat")):
        return _read(arguments)
    changes = path and (_given(arguments, "content_arguments") or _given(arguments, "old_arguments"))
    return _write(arguments) if changes else ToolUse("other")


def _given(arguments: Arguments, rule: str) -> str:
    """Return the text of the first of the arguments that a rule names."""
    return _text(arguments, *COMMANDS.ordered[rule])


def _text(arguments: Arguments, *names: str) -> str:
    return next((value for name in names if isinstance(value := arguments.get(name), str) and value), "")


def _shell(arguments: Arguments) -> ToolUse:
    command: Any = next((arguments[name] for name in COMMANDS.ordered["command_arguments"] if arguments.get(name)), "")
    if isinstance(command, list):
        words = [str(word) for word in command]
        if words[:1] == ["apply_patch"]:
            return _patch({"input": words[1] if len(words) > 1 else ""})
        # A script that is one argument of a shell stays one, because quoting would spoil its here-documents.
        script = words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else None
        command = script if script is not None else shlex.join(words)
    return ToolUse("shell", line=str(command), cwd=_given(arguments, "cwd_arguments"))


def _read(arguments: Arguments) -> ToolUse:
    many = arguments.get("paths") or arguments.get("file_paths") or arguments.get("include")
    paths = map(str, many) if isinstance(many, list) else [_given(arguments, "path_arguments")]
    return ToolUse("read", reads=tuple(path for path in paths if path))


def _search(arguments: Arguments) -> ToolUse:
    return ToolUse("search", line=_text(arguments, "pattern", "query", "regex"))


def _write(arguments: Arguments) -> ToolUse:
    path = _given(arguments, "path_arguments")
    edits = arguments.get("edits")
    pieces = edits if isinstance(edits, list) else [arguments]
    replacements = tuple(
        (_given(piece, "old_arguments"), _given(piece, "new_arguments"))
        for piece in pieces
        if isinstance(piece, dict) and _given(piece, "old_arguments")
    )
    if replacements:
        return ToolUse("write", changes=(TextChange(path, "modified", replacements=replacements),))
    names = (*COMMANDS.ordered["content_arguments"], *COMMANDS.ordered["new_arguments"])
    content = next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)
    # The call does not say whether the file existed, so "added" is left to the reader.
    return ToolUse("write", changes=(TextChange(path, "modified", content=content),) if path else ())


def _patch(arguments: Arguments) -> ToolUse:
    patch = _given(arguments, "patch_arguments")
    return ToolUse("write", changes=tuple(read_patch(patch)))


def _editor(arguments: Arguments) -> ToolUse:
    """Read a call of an editor with its own commands, as in OpenHands, SWE-agent and Anthropic's text editor."""
    command = arguments.get("command")
    if command == "view":
        return _read(arguments)
    if command in ("create", "write", "str_replace"):
        return _write({name: value for name, value in arguments.items() if name != "command"})
    if command in ("insert", "undo_edit"):
        return ToolUse("write", changes=(TextChange(_given(arguments, "path_arguments"), "modified"),))
    return ToolUse("other")


def _plan(arguments: Arguments) -> ToolUse:
    if arguments.get("command") in ("view", "lookup", "load", "complete", "remove"):
        return ToolUse("plan")
    steps = next((arguments[name] for name in COMMANDS.ordered["plan_arguments"] if arguments.get(name)), None)
    if isinstance(steps, str):
        try:
            steps = json.loads(steps)
        except ValueError:
            return ToolUse("plan", plan=steps)
    if not isinstance(steps, list):
        return ToolUse("plan", plan=_text(arguments, "plan", "subject", "description", "content", "text"))
    lines = [
        step if isinstance(step, str) else _given(step, "step_arguments")
        for step in steps
        if isinstance(step, str | dict)
    ]
    return ToolUse("plan", plan="\n".join(f"- {line}" for line in lines if line))


def _add_task(arguments: Arguments) -> ToolUse:
    """Read a call that adds one task to a list; what the task says of itself stands after its subject."""
    subject, more = _text(arguments, "subject", "title", "task", "name"), _text(arguments, "description")
    line = f"{subject}: {more}" if subject and more and len(more) < 200 else subject or more
    return ToolUse("plan", plan=f"- {' '.join(line.split())}" if line else "", adds_to_plan=True)


def _change_task(arguments: Arguments) -> ToolUse:
    """Read a call that changes a task: a new subject is a step more, a new state is none."""
    subject = _text(arguments, "subject", "title")
    return ToolUse("plan", plan=f"- {subject}" if subject else "", adds_to_plan=True)


def _ask(arguments: Arguments) -> ToolUse:
    questions = arguments.get("questions")
    if isinstance(questions, list):
        texts = [each if isinstance(each, str) else _text(each, "question", "text") for each in questions]
        return ToolUse("ask", question="\n".join(texts))
    return ToolUse("ask", question=_text(arguments, "question", "message", "text"))


_READERS: Mapping[str, Callable[[Arguments], ToolUse]] = {
    "shell": _shell, "read": _read, "search": _search, "write": _write, "patch": _patch, "editor": _editor,
    "plan": _plan, "add_task": _add_task, "change_task": _change_task, "ask": _ask,
}  # fmt: skip
