"""Trajectories: ATIF as others write it, and what is counted in it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall, Trajectory, actions_of
from pytest_evocode.trajectories.recorder import Action, Recorder
from tests import atif

WRITTEN = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s",
    "agent": {"name": "a", "version": "1", "model_name": "m", "tool_definitions": [{"name": "bash"}]},
    "steps": [
        {"step_id": 1, "source": "system", "message": "be good"},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "do"}], "tool_calls": None},
        {
            "step_id": 3,
            "timestamp": "2026-01-02T03:04:05Z",
            "source": "agent",
            "message": "",
            "tool_calls": [
                {"tool_call_id": "1", "function_name": "bash", "arguments": {"command": "ls", "limit": None}},
                {"tool_call_id": "2", "function_name": "bash"},
            ],
            "observation": {"results": [{"source_call_id": "1", "content": "a.txt"}, {"content": None}]},
            "metrics": {"prompt_tokens": 10, "completion_tokens": 2, "cost_usd": 0.001, "cached_tokens": 5},
            "extra": {"evocode": {"exit_code": 0}},
        },
        {"step_id": 4, "source": "agent", "tool_calls": [{"tool_call_id": "3", "function_name": "edit"}]},
        {"step_id": 5, "source": "agent", "message": "done", "tool_calls": []},
    ],
    "final_metrics": {"total_prompt_tokens": 10, "total_steps": 5},
    "notes": "of a later version",
}


def test_tool_calls_of_all_the_agents_steps_are_counted() -> None:
    assert Trajectory.model_validate(WRITTEN).tool_call_count == 3
    assert Trajectory.model_validate({**WRITTEN, "steps": []}).tool_call_count == 0


def test_a_users_tool_calls_are_not_the_agents() -> None:
    steps = [{"step_id": 1, "source": "user", "tool_calls": [{"tool_call_id": "1", "function_name": "f"}]}]
    assert Trajectory.model_validate({**WRITTEN, "steps": steps}).tool_call_count == 0


def test_what_a_later_version_adds_is_kept() -> None:
    trajectory = Trajectory.model_validate(WRITTEN)
    again = trajectory.model_dump(mode="json")
    assert (again["notes"], again["agent"]["tool_definitions"]) == ("of a later version", [{"name": "bash"}])
    assert again["steps"][2]["metrics"]["cached_tokens"] == 5
    assert again["final_metrics"]["total_steps"] == 5
    assert Trajectory.model_validate(again) == trajectory


def test_every_trajectory_says_who_acted() -> None:
    with pytest.raises(ValidationError, match="agent"):
        Trajectory.model_validate({name: value for name, value in WRITTEN.items() if name != "agent"})


def test_what_a_recorder_writes_is_valid_from_the_first_step_to_the_last() -> None:
    written: list[Trajectory] = []
    recorder = Recorder(AgentInfo(name="a", version="1", model_name="m"), "session", write=written.append)
    recorder.say("system", "be good")
    recorder.say("user", "do")
    calls = [ToolCall(tool_call_id=name, function_name="bash", arguments={"command": "ls"}) for name in "12"]
    usage = Usage(prompt_tokens=10, cached_tokens=5, completion_tokens=2, cost_usd=0.001, requests=1)
    recorder.reply("now", calls, reasoning="hm", usage=usage, extra={"request_id": "r"})
    recorder.observe("1", "a.txt", Action(exit_code=0, seconds=0.25))
    recorder.observe("2", "", Action(timed_out=True))
    recorder.reply("done", usage=usage)
    recorder.end(timed_out=False, stopped="budget: turns 2 of 2 used")
    recorder.close()
    written.append(recorder.trajectory())
    assert [atif.violations(each.model_dump(mode="json", exclude_none=True)) for each in written] == [[]] * len(written)
    whole = written[-1]
    assert whole.final_metrics is not None
    assert (whole.final_metrics.total_cached_tokens, whole.final_metrics.total_steps) == (10, 4)
    assert whole.extra == {"evocode": {"timed_out": False, "stopped": "budget: turns 2 of 2 used"}}
    assert [action["timed_out"] for action in actions_of(whole.steps[2])] == [False, True]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"source": "user", "message": "", "metrics": {}}, "False schema does not allow"),
        ({"source": "agent", "message": "", "llm_call_count": 0, "reasoning_content": "hm"}, "False schema does not"),
        ({"source": "agent", "message": "", "tool_calls": [{"tool_call_id": "1"}]}, "'function_name' is a required"),
        ({"source": "agent", "message": [{"type": "text"}]}, "not valid under any"),
        ({"source": "agent", "message": "", "exit_code": 0}, "'exit_code' was unexpected"),
        ({"source": "agent", "message": "", "observation": {"results": [{"source_call_id": "x"}]}}, "observes x"),
    ],
)
def test_the_schema_that_all_this_is_held_against_refuses_what_is_wrong(wrong: dict[str, Any], why: str) -> None:
    agent = {"name": "a", "version": "1"}
    steps = [{"step_id": 1, **wrong}]
    violation, *_ = atif.violations({"schema_version": "ATIF-v1.7", "agent": agent, "steps": steps})
    assert why in violation
