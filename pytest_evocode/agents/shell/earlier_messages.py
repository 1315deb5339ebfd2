"""Turns a conversation that a task gives into messages that any provider accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_evocode.llm.protocol import Message, RequestedCall
from pytest_evocode.trajectories.atif import Step, Trajectory

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NO_RESULT = "[No result was recorded.]"


def earlier_messages(trajectory: Trajectory) -> Iterator[Message]:
    """Yield the messages of a trajectory, without those of the system: the agent has its own.

    The first is a user's, as providers ask for, and every call is answered.
    """
    begun = False
    for step in trajectory.steps:
        if step.source == "system":
            continue
        if not begun and step.source == "agent":
            yield Message("user", "Begin.")
        begun = True
        if step.source == "user":
            yield Message("user", _text(step.message))
        else:
            yield from _of_agent(step)


def _of_agent(step: Step) -> Iterator[Message]:
    text = _text(step.message)
    calls = tuple(
        # Providers allow few characters in these, and an id once.
        RequestedCall(f"task-{step.step_id}-{number}", _name(call.function_name), call.arguments)
        for number, call in enumerate(step.tool_calls or (), 1)
    )
    if not text and not calls:
        return
    yield Message("assistant", text, calls)
    results = step.observation.results if step.observation else ()
    for call, written in zip(calls, step.tool_calls or (), strict=True):
        of_call = [_text(result.content) for result in results if result.source_call_id == written.tool_call_id]
        yield Message("tool", "\n".join(of_call) or _NO_RESULT, call_id=call.id)
    of_none = [_text(result.content) for result in results if result.source_call_id is None]
    if any(of_none):
        yield Message("user", "\n".join(of_none))


def _name(function: str) -> str:
    return _NOT_IN_NAMES.sub("_", function)[:64] or "tool"


def _text(content: Any) -> str:
    """Return a text, or those in a list of parts."""
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return "" if content is None else str(content)
