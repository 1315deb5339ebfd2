"""What the rules of process find in one labelled turn: the only place of the measurement that knows their interface.

A turn comes without its request. Whether a plan or a question is about the task is therefore not measured: the request
is made of the turn's own words, in alphabetical order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.recordings import Turn
from pytest_evocode.process.pillars.messages import (
    asks,
    assumes,
    claims,
    declines_what_was_asked,
    declining,
    request_words,
)
from pytest_evocode.process.pillars.planning import find_plan
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext, read_rounds
from pytest_evocode.trajectories.atif import AgentInfo, Observation, ObservationResult, Step, ToolCall, Trajectory
from pytest_evocode.trajectories.diffs import unified_diff

_MOST_FILES = 12


@dataclass(frozen=True)
class Found:
    """What the rules say of a turn; a label that is not in ``says`` has no extractor, or it could not read the turn."""

    says: dict[str, bool]
    items: tuple[int, ...] = ()
    """Where the steps of a plan begin in its text, -1 for one that does not stand there word for word."""


def find(turn: Turn) -> Found:
    """Return what the rules find in a turn, in the words of the labels."""
    return _in_command(turn) if turn.kind == "command" else _in_message(turn)


def _in_command(turn: Turn) -> Found:
    runs = [run for run in _activity(turn).runs if run.purpose == "test"]
    passed = runs[-1].passed if runs else None
    return Found({"test_run": bool(runs), "passed": passed is True, "failed": passed is False})


def _in_message(turn: Turn) -> Found:
    text = turn.text
    plan = find_plan(_activity(turn))
    gives_up = bool(declining(text)) and (not claims(text) or declines_what_was_asked(text))
    says = {
        "plan": plan is not None,
        "clarification": asks(text, request_words(text)),
        "abstention": gives_up,
        "uncertainty": assumes(text),
        "success": bool(claims(text)),
    }
    return Found(says, tuple(text.find(step.text[:40]) for step in plan.steps) if plan else ())


def _activity(turn: Turn) -> RoundActivity:
    request = " ".join(sorted(set(re.findall(r"[^\W_]+", turn.text)))) if turn.kind == "message" else "Do it."
    originals = {path.lstrip("/"): "" for path in turn.later[:_MOST_FILES]}
    trajectory = Trajectory(
        session_id="s", agent=AgentInfo(name="agent", version="1"), steps=tuple(_steps(turn, request, originals))
    )
    context = TaskContext(workdir="/app", originals=lambda path: [originals[path]] if path in originals else [])
    (activity,) = read_rounds([RecordedRound("round-1", 1, trajectory, request)], context)
    return activity


def _steps(turn: Turn, request: str, later: dict[str, str]) -> Iterator[Step]:
    yield Step(step_id=1, source="user", message=request)
    if turn.kind == "command":
        yield _call(2, turn.text, turn.output, {"exit_code": turn.exit_code, "changes": []})
        return
    yield Step(step_id=2, source="agent", message=turn.text)
    for step, path in enumerate(later, 3):
        text = f"changed {path}\n"
        change = {
            "path": path, "kind": "modified", "mode": "0644", "diff": unified_diff(path, "", text),
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
        }  # fmt: skip
        yield _call(step, "python3 - <<'EOF'\nEOF", "", {"exit_code": 0, "changes": [change]})


def _call(step: int, line: str, output: str, action: dict[str, object]) -> Step:
    return Step(
        step_id=step,
        source="agent",
        message="",
        tool_calls=(ToolCall(tool_call_id="c", function_name="bash", arguments={"command": line}),),
        observation=Observation(results=(ObservationResult(source_call_id="c", content=output),)),
        extra={"evocode": {"actions": [{"tool_call_id": "c", **action}]}},
    )
