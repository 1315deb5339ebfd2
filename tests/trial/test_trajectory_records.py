"""Trajectories: ATIF as others write it, and what is counted in it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pytest_evocode.trajectory import Trajectory

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


@pytest.mark.parametrize("missing", ["session_id", "agent"])
def test_what_every_trajectory_has_is_required(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        Trajectory.model_validate({name: value for name, value in WRITTEN.items() if name != missing})
