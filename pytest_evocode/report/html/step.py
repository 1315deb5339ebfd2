"""A step of a trajectory as the viewer shows it, and what its calls are for: ``Step`` in ``viewer/data.d.ts``."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from pytest_evocode.errors import describe_validation
from pytest_evocode.process.trajectory.agent_tools import ToolUse, tool_use
from pytest_evocode.process.trajectory.file_roles import may_be_output
from pytest_evocode.process.trajectory.outputs import CallResult, call_results, text_of
from pytest_evocode.process.trajectory.shell.commands import SimpleCommand
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes
from pytest_evocode.report.html.bounded import bounded, bounded_value
from pytest_evocode.report.html.changes import changes_of_call, is_change
from pytest_evocode.trajectories.atif import Step, actions_of

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


#: Characters of a text, of all calls of a step together, and of a text beyond these.
_TEXT, _CALLS, _BEYOND = 200_000, 1_000_000, 2_000
_CUT_OUTPUT = 80_000  # characters, which an output has that was cut where calls were read
_REMARK = 300  # characters
_MOST_CALLS = 500  # of a step
_MOST_REMARKS = 20  # of a step
# What our recorder notes and the viewer shows elsewhere, or what says nothing to a reader.
_KNOWN_NOTES = {"actions", "request_id", "cached_tokens", "elided", "stop_reason", "ending", "seconds"}
_HEAVY = ("prompt_token_ids", "completion_token_ids", "logprobs")


@dataclass(slots=True)
class ShownStep:
    """A step for the viewer, and what it did to files."""

    data: dict[str, Any]
    tables: list[dict[str, Any]] = field(default_factory=list)
    """The recorded changes of its calls, in order."""
    edited: list[str] = field(default_factory=list)
    """The files that it edited, without what tests and builds wrote."""


def shown_step(raw: Any, id: int, *, model: str, watched: bool) -> ShownStep:
    """Return a step of a trajectory for the viewer; one that is not valid is shown as far as it can be.

    Args:
        raw: The step as the trajectory's JSON has it.
        id: The number that it gets.
        model: The agent's model, of steps that do not say.
        watched: Whether changes of files were recorded, so that they need not be taken from what calls say.
    """
    values = dict(raw) if isinstance(raw, dict) else {"message": raw}
    if isinstance(metrics := values.get("metrics"), dict):
        values["metrics"] = {key: value for key, value in metrics.items() if key not in _HEAVY}
    values["step_id"] = id
    try:
        return _valid(Step.model_validate(values), id, model, watched)
    except ValidationError as error:
        return _invalid(values, id, describe_validation(error))
    except RecursionError:
        return _invalid({"source": values.get("source")}, id, "it is nested too deep")


def _valid(step: Step, id: int, model: str, watched: bool) -> ShownStep:
    shown = ShownStep(_step_data(step, id, model))
    remarks = shown.data["remarks"]
    remarks += _notes(step)
    left = _CALLS
    seconds = {action.get("tool_call_id"): action.get("seconds") for action in actions_of(step)}
    lengths = _output_lengths(step)
    for number, result in enumerate(call_results(step)):
        if number == _MOST_CALLS:
            remarks.append(f"{len(step.tool_calls or ()) - number} more calls are left out")
            break
        limit = _TEXT if left > 0 else _BEYOND
        call = _call_data(result, id, limit, shown, watched)
        left_out = lengths.get(result.call.tool_call_id, 0) - len(result.output)
        if left_out > 0 and len(result.output) > _CUT_OUTPUT:
            remarks.append(f"{left_out:,} characters of an output of {call['name']} are left out")
        call["seconds"] = _number(seconds.get(result.call.tool_call_id))
        left -= len(call["output"]) + sum(len(change["diff"]) for change in call["changes"])
        left -= len(json.dumps(call["arguments"]))
        shown.data["calls"].append(call)
    shown.data["calls"] += _loose_results(step)
    del remarks[_MOST_REMARKS:]
    return shown


def _step_data(step: Step, id: int, model: str) -> dict[str, Any]:
    return {
        "id": id,
        "source": step.source,
        "time": bounded(step.timestamp, _REMARK) if step.timestamp else None,
        "model": bounded(step.model_name or (model if step.source == "agent" else ""), _REMARK),
        "text": bounded(text_of(step.message), _TEXT),
        "reasoning": bounded(step.reasoning_content or "", _TEXT),
        "calls": [],
        **{name: getattr(step.metrics, name, None) for name in ("prompt_tokens", "completion_tokens", "cost_usd")},
        "copied": bool(step.is_copied_context),
        "remarks": [],
    }


def _call_data(result: CallResult, step: int, limit: int, shown: ShownStep, watched: bool) -> dict[str, Any]:
    call = result.call
    use = use_of(call.function_name, call.arguments)
    arguments = dict(call.arguments)
    if use.kind == "shell" and not isinstance(arguments.get("command"), str):
        arguments = {"command": use.line, **{name: each for name, each in arguments.items() if name != "command"}}
    tables = [table for table in result.tables if is_change(table)]
    purpose = purpose_of(use, changed=bool(tables) if watched or tables else None)
    changes = changes_of_call(tables, step)
    for change in changes[_most_diffs(changes, limit) :]:
        change["diff"], change["note"] = "", "its diff is left out here, because the step has too many"
    shown.tables += tables
    # What tests and programs write is no edit, even where the agent started them.
    paths = [table["path"] for table in tables if purpose == "edit" or not may_be_output(table["path"])]
    if not watched and not tables:
        paths = [change.path for change in use.changes if change.path]
    shown.edited += paths
    if result.timed_out:
        shown.data["remarks"].append(f"{_name(call.function_name)} ran into its time limit")
    return _unnamed_call(bounded(call.tool_call_id, _REMARK), bounded(result.output, limit)) | {
        "name": bounded(call.function_name, _REMARK),
        "arguments": bounded_value(arguments, limit),
        "purpose": purpose,
        "exit_code": result.exit_code,
        "changes": changes,
    }


def _output_lengths(step: Step) -> dict[str | None, int]:
    results = step.observation.results if step.observation is not None else ()
    return {result.source_call_id: len(text_of(result.content)) for result in results}


def _most_diffs(changes: list[dict[str, Any]], limit: int) -> int:
    """Return how many of some changes have diffs that fit a limit together, four times that of a text."""
    left = 4 * limit
    for number, change in enumerate(changes):
        left -= len(change["diff"])
        if left < 0:
            return number
    return len(changes)


def _loose_results(step: Step) -> Iterator[dict[str, Any]]:
    """Yield results that belong to no call, as calls without a name."""
    results = step.observation.results if step.observation is not None else ()
    known = {call.tool_call_id for call in step.tool_calls or ()}
    loose = [each for each in results if each.source_call_id not in known]
    if known and not any(each.source_call_id for each in loose):
        return  # Those without an id are of the calls, in order.
    for result in loose[:_MOST_CALLS]:
        output = bounded(text_of(result.content), _BEYOND if len(loose) > 4 else _TEXT)
        yield _unnamed_call(bounded(result.source_call_id or "", _REMARK), output)


def _unnamed_call(id: str, output: str) -> dict[str, Any]:
    return {
        "id": id,
        "name": "",
        "arguments": {},
        "purpose": "other",
        "output": output,
        "exit_code": None,
        "seconds": None,
        "changes": [],
    }


def _notes(step: Step) -> Iterator[str]:
    """Yield what the recording says about a step beside its texts."""
    ours = (step.extra or {}).get("evocode")
    ours = ours if isinstance(ours, dict) else {}
    if isinstance(elided := ours.get("elided"), list):
        yield f"elided: from here on the conversation lacks the outputs of {len(elided)} earlier calls, to make room"
    if (ending := ours.get("ending")) not in (None, "done", "calls"):
        yield bounded(f"the reply ended: {ending} ({ours.get('stop_reason') or 'the provider does not say'})", _REMARK)
    if step.source == "agent" and step.llm_call_count is not None and step.llm_call_count != 1:
        yield "no model was asked" if step.llm_call_count == 0 else f"{step.llm_call_count} requests to the model"
    results = step.observation.results if step.observation is not None else ()
    parts = [part for content in (step.message, *(each.content for each in results)) for part in _parts(content)]
    kinds = [str(part.get("type")) for part in parts if part.get("type") not in ("text", None)]
    for kind in dict.fromkeys(kinds):
        yield f"not shown: {kinds.count(kind)} of type {_name(kind)}"
    for action in actions_of(step):
        yield from _notes_on_action(action)
    for reference in (each for result in results for each in result.subagent_trajectory_ref or ()):
        where = reference.trajectory_path or reference.trajectory_id or reference.session_id or "unknown"
        yield f"a subagent worked here; its trajectory is {_name(where)}"
    for table in (step.extra or {}, ours):
        for name, value in table.items():
            if name not in _KNOWN_NOTES and isinstance(value, str | int | float | bool):
                yield bounded(f"{name}: {value}", _REMARK)


def _notes_on_action(action: Mapping[str, Any]) -> Iterator[str]:
    commits = action.get("commits")
    for commit in commits if isinstance(commits, list) else ():
        if isinstance(commit, dict):
            yield bounded(f"commit {str(commit.get('id', ''))[:10]}: {commit.get('message', '')}", _REMARK)
    yield from unrecorded_notes(action.get("unrecorded"))


def unrecorded_notes(unrecorded: Any) -> Iterator[str]:
    """Yield what a recording says of changes that are not in it."""
    if not isinstance(unrecorded, dict):
        return
    if why := unrecorded.get("why"):
        yield bounded(str(why), _REMARK)
    if files := unrecorded.get("files"):
        yield bounded(f"{files} more changed files were not recorded, because there were too many", _REMARK)
    if contents := unrecorded.get("contents"):
        yield bounded(f"{contents} changed files were recorded without what they became", _REMARK)


def _parts(content: Any) -> list[dict[str, Any]]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _name(text: str) -> str:
    return bounded(text, _REMARK)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _invalid(values: Mapping[str, Any], id: int, why: str) -> ShownStep:
    source = values.get("source")
    known = {name: values.get(name) for name in ("tool_calls", "observation") if values.get(name)}
    calls: list[dict[str, Any]] = []
    if known:
        try:
            written = json.dumps(known, ensure_ascii=False, indent=1)
        except (TypeError, ValueError, RecursionError):
            written = "[... not shown ...]"
        calls.append(_unnamed_call("", bounded(written, _TEXT)))
    reasoning, time = values.get("reasoning_content"), values.get("timestamp")
    step = Step.model_construct(
        source=source if source in ("system", "user", "agent") else "system",
        timestamp=time if isinstance(time, str) else None,
        message=text_of(values.get("message")),
        reasoning_content=reasoning if isinstance(reasoning, str) else None,
        is_copied_context=bool(values.get("is_copied_context")),
    )
    remarks = [bounded(f"this step is not valid ATIF: {why}", _REMARK)]
    return ShownStep(_step_data(step, id, "") | {"calls": calls, "remarks": remarks})
