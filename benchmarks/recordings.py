"""Read the turns of public recordings of agents: messages and commands, in order, in one shape for all harnesses.

Recordings are named by repository, commit and path, and read from a directory with clones or bare mirrors, each called
``OWNER+NAME``, in itself or in its ``repo``. Nothing of theirs is kept here.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

_HEAD, _TAIL = 1500, 2500
_FENCE = re.compile(r"```(?:bash|mswea_bash_command)[ \t]*\n(.*?)\n```", re.DOTALL)
_RETURNED = re.compile(r"<returncode>(-?\d+)</returncode>\s*<output>\n?(.*?)\n?</output>", re.DOTALL)
_WRITTEN = re.compile(
    r"(?:>>?\s*|tee\s+(?:-a\s+)?|sed\s+-i\S*\s+(?:'[^']*'|\"[^\"]*\")\s+|\bopen\(['\"]|Path\(['\"]|\*\*\* \w+ File: |"
    r"^(?:edit|create|open)\s+)([\w./-]+\.\w+)",
    re.MULTILINE,
)
_EDITED = re.compile(r"(?:edit_file_by_\w+|append_file|insert_content_at_line|create_file)\(\s*'([^']+)'")
_NEW_TEXT = ("content", "file_text", "new_str", "new_string", "new_content", "code")


@dataclass(frozen=True)
class Deed:
    """A command that was run, or a file that was written."""

    path: str
    """Empty for a command."""
    text: str = ""
    """The command, or what is known of what was written."""


@dataclass(frozen=True)
class Turn:
    """One message, or one command with what it printed."""

    kind: str
    """``message`` or ``command``."""
    text: str
    """What was said, or the command line."""
    output: str = ""
    exit_code: int | None = None
    """None if the recording does not say."""
    later: tuple[Deed, ...] = ()
    """What was done after it in the same recording, in order."""
    deeds: tuple[Deed, ...] = ()

    def digest(self) -> str:
        """Return what tells that a recording still says the same."""
        return sha256("\0".join((self.kind, self.text, self.output)).encode()).hexdigest()[:16]


def read_recording(directory: Path, repository: str, commit: str, path: str) -> list[Turn]:
    """Return the turns of a recording; a line of a file with many is named as ``path#line``."""
    file, _, line = path.partition("#")
    text = _show(directory / repository.replace("/", "+"), commit, file)
    if line:
        text = text.splitlines()[int(line)]
    return list(_with_later(_reader(file)(text)))


@cache
def _show(clone: Path, commit: str, path: str) -> str:
    git_directory = clone / "repo" if (clone / "repo").exists() else clone
    command = ["git", "-C", str(git_directory), "show", f"{commit}:{path}"]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode(errors="replace")


def _reader(path: str) -> Callable[[str], Iterator[Turn]]:
    if path.endswith(".traj"):
        return _swe_agent
    if path.endswith(".traj.json"):
        return _mini_swe_agent
    if path.endswith("output.jsonl"):
        return _openhands
    if "/rollout-" in path:
        return _codex
    return _claude_code if path.endswith(".jsonl") else _atif


def _swe_agent(text: str) -> Iterator[Turn]:
    for step in json.loads(text).get("trajectory", ()):
        if step.get("thought", "").strip():
            yield _message(step["thought"])
        if (action := step["action"].strip()) and not action.startswith("submit"):
            yield _command(action, step["observation"])


def _mini_swe_agent(text: str) -> Iterator[Turn]:
    recording = json.loads(text)
    messages = recording["messages"] if isinstance(recording, dict) else recording
    for message, answer in zip(messages[2:], [*messages[3:], {"content": ""}], strict=True):
        if message["role"] == "assistant" and isinstance(message["content"], str):
            yield _message(_FENCE.sub("", message["content"]))
            returned = _RETURNED.search(str(answer["content"]))
            if returned:
                for command in _FENCE.findall(message["content"]):
                    yield _command(command, returned[2], int(returned[1]))


def _openhands(text: str) -> Iterator[Turn]:
    events = json.loads(text)["history"]
    for event, answer in zip(events, [*events[1:], {}], strict=True):
        args = {**event, **event.get("args", {})}
        action = event.get("action")
        by_agent = event.get("source", "agent") == "agent" and action not in (None, "system", "recall", "message")
        said = args.get("final_thought") or args.get("thought")
        if by_agent and isinstance(said, str):
            yield _message(said)
        if by_agent and action == "run" and args.get("command"):
            extras = answer.get("extras", {})
            exit_code = answer.get("exit_code", extras.get("metadata", {}).get("exit_code"))
            yield _command(args["command"], answer.get("content", ""), exit_code)
        elif by_agent and action == "edit":
            yield _edit(args.get("path", ""), args)
        elif by_agent and action == "run_ipython" and (edited := _EDITED.match(args["code"])):
            yield _edit(edited[1], args)


def _claude_code(text: str) -> Iterator[Turn]:
    entries = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    messages = [entry["message"] for entry in entries if entry.get("type") in ("assistant", "user")]
    parts = [part for each in messages if isinstance(each.get("content"), list) for part in each["content"]]
    results = {part["tool_use_id"]: part for part in parts if isinstance(part, dict) and "tool_use_id" in part}
    for message in messages:
        for part in message["content"] if message["role"] == "assistant" else ():
            if not isinstance(part, dict):
                continue
            if part.get("type") == "text":
                yield _message(part["text"])
            elif part.get("type") == "tool_use" and part["name"] == "Bash" and part["id"] in results:
                result = results[part["id"]]
                content = result.get("content") or ""
                said = content if isinstance(content, str) else "\n".join(each.get("text", "") for each in content)
                failed = re.match(r"Exit code (\d+)", said)
                exit_code = int(failed[1]) if failed else None if result.get("is_error") else 0
                yield _command(part["input"]["command"], said, exit_code)
            elif part.get("type") == "tool_use" and "file_path" in part["input"] and part["name"] != "Read":
                yield _edit(part["input"]["file_path"], part["input"])


def _codex(text: str) -> Iterator[Turn]:
    payloads = [json.loads(line).get("payload", {}) for line in text.splitlines() if line.strip()]
    outputs = {each["call_id"]: each["output"] for each in payloads if each.get("type") == "function_call_output"}
    for payload in payloads:
        if payload.get("type") == "agent_reasoning":
            yield _message(payload["text"])
        elif payload.get("type") == "message" and payload["role"] == "assistant":
            yield _message("\n".join(part.get("text", "") for part in payload["content"]))
        elif payload.get("type") == "function_call":
            arguments = json.loads(payload["arguments"])
            command = arguments.get("command") or [payload["name"], json.dumps(arguments)]
            said = outputs.get(payload["call_id"], "")
            output = json.loads(said) if said.startswith("{") else {"output": said}
            exit_code = output.get("metadata", {}).get("exit_code")
            line = command if isinstance(command, str) else command[-1] if command[0] == "bash" else " ".join(command)
            yield _command(line, output.get("output", ""), exit_code)


def _atif(text: str) -> Iterator[Turn]:
    for step in json.loads(text)["steps"]:
        if step["source"] != "agent":
            continue
        yield _message(step.get("message", ""))
        results = {each["source_call_id"]: each for each in step.get("observation", {}).get("results", ())}
        for call in step.get("tool_calls", ()):
            if command := call["arguments"].get("command"):
                yield _command(command, results.get(call["tool_call_id"], {}).get("content", ""))


def _message(text: str) -> Turn:
    return Turn("message", _clipped(text.strip()))


def _command(command: str, output: str | None, exit_code: int | None = None) -> Turn:
    return Turn(
        "command",
        _clipped(command.strip()),
        _clipped((output or "").strip()),
        exit_code,
        deeds=(*(Deed(path, command) for path in dict.fromkeys(_WRITTEN.findall(command))), Deed("", command)),
    )


def _edit(path: str, arguments: dict[str, Any]) -> Turn:
    """Return an edit by a tool, with the text that it wrote."""
    written = "\n".join(text for key, text in arguments.items() if isinstance(text, str) and key in _NEW_TEXT)
    return Turn("edit", "", deeds=(Deed(path, written),))


def _clipped(text: str) -> str:
    """Return the head and the tail of a long text: that is where a label is seen."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n[...]\n{text[-_TAIL:]}"


def _with_later(turns: Iterator[Turn]) -> Iterator[Turn]:
    listed = [turn for turn in turns if turn.text or turn.deeds]
    later: tuple[Deed, ...] = ()
    found = []
    for turn in reversed(listed):
        found.append(replace(turn, later=later))
        later = (*turn.deeds, *later)
    return (turn for turn in reversed(found) if turn.text)
