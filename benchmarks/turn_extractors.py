"""What the rules of process find in one labelled turn: the only place of the measurement that knows their interface.

A turn comes without its request. Whether a plan or a question is about the task is therefore not measured: the request
is made of the turn's own words, in alphabetical order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.recordings import Turn
from pytest_evocode.process.pillars.messages import (
    asks,
    claims_success,
    doubts,
    gives_up,
    is_english,
    request_words,
)
from pytest_evocode.process.pillars.planning import PlanStep, find_plan, plan_steps
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext, read_rounds
from pytest_evocode.trajectories.atif import AgentInfo, Observation, ObservationResult, Step, ToolCall, Trajectory
from pytest_evocode.trajectories.diffs import unified_diff

#: Most of what was done after a message: a plan is about what comes next.
_MOST_DEEDS = 100
#: Most words by which a step is found in its text.
_MOST_WORDS = 6


@dataclass(frozen=True)
class Found:
    """What the rules say of a turn; a label that is not in ``says`` is not looked for in such a turn."""

    says: dict[str, bool | None]
    """None for what the rules say they cannot read."""
    items: tuple[int, ...] = ()
    """Where the steps of a plan begin in its text, -1 for one that does not stand there word for word."""


def find(turn: Turn, *, last: bool) -> Found:
    """Return what the rules find in a turn, in the words of the labels.

    As the pillars do, they look for plans in what is said before some work, and for all else in what is said last.
    """
    if turn.kind == "command":
        return _in_command(turn)
    return _in_final_message(turn.text) if last else _in_message_on_the_way(turn)


def _in_command(turn: Turn) -> Found:
    # A runner that could not start has run nothing.
    runs = [run for run in _activity(turn).runs if run.purpose == "test" and run.failure != "environment"]
    passed = runs[-1].passed if runs else None
    return Found({"test_run": bool(runs), "passed": passed is True, "failed": passed is False})


def _in_message_on_the_way(turn: Turn) -> Found:
    plan = find_plan(_activity(turn))
    return Found({"plan": plan is not None}, tuple(_places(turn.text, plan_steps(plan.text))) if plan else ())


def _places(text: str, steps: Iterable[PlanStep]) -> Iterator[int]:
    """Yield where steps begin: where as many of their first words as possible stand, after the step before."""
    plain = text.replace("\u2019", "'")
    after = 0
    for words in (step.text.split(" ") for step in steps):
        begins = (" ".join(words[:count]).strip(":") for count in range(min(len(words), _MOST_WORDS), 0, -1))
        place = next((found for begin in begins if (found := plain.find(begin, after)) >= 0), -1)
        after = max(after, place + 1)
        yield place


def _in_final_message(text: str) -> Found:
    question = asks(text, request_words(text))
    if not is_english(text):
        return Found({"clarification": question, "abstention": None, "uncertainty": None, "success": None})
    given_up = gives_up(text)
    says = {"abstention": given_up, "uncertainty": doubts(text), "success": claims_success(text)}
    return Found({"clarification": bool(question) and not given_up, **says})


def _activity(turn: Turn) -> RoundActivity:
    request = "Do it."
    originals = {deed.path.lstrip("/"): "" for deed in turn.later[:_MOST_DEEDS] if deed.path}
    trajectory = Trajectory(
        session_id="s", agent=AgentInfo(name="agent", version="1"), steps=tuple(_steps(turn, request))
    )
    context = TaskContext(workdir="/app", originals=lambda path: [originals[path]] if path in originals else [])
    (activity,) = read_rounds([RecordedRound("round-1", 1, trajectory, request)], context)
    return activity


def _steps(turn: Turn, request: str) -> Iterator[Step]:
    yield Step(step_id=1, source="user", message=request)
    if turn.kind == "command":
        yield _call(2, turn.text, turn.output, {"exit_code": turn.exit_code, "changes": []})
        return
    yield Step(step_id=2, source="agent", message=turn.text)
    texts: dict[str, str] = {}
    for step, deed in enumerate(turn.later[:_MOST_DEEDS], 3):
        if not deed.path:
            yield _call(step, deed.text, "", {"exit_code": None, "changes": []})
            continue
        path = deed.path.lstrip("/")
        before = texts.get(path, "")
        texts[path] = f"{before}{deed.text or f'changed {path}'}\n"
        change = {
            "path": path, "kind": "modified", "mode": "0644", "diff": unified_diff(path, before, texts[path]),
            "sha256": hashlib.sha256(texts[path].encode()).hexdigest(),
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
