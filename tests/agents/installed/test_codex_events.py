"""What the events of ``codex exec --json`` come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.codex import CodexReader
from tests.agents.installed.conftest import Told

Tell = Callable[..., Told]
BEGIN = ({"type": "thread.started", "thread_id": "t-1"}, {"type": "turn.started"})


def item(moment: str, number: int, kind: str, **values: Any) -> dict[str, Any]:
    return {"type": f"item.{moment}", "item": {"id": f"item_{number}", "type": kind, **values}}


def command(number: int, line: str, code: int = 0, output: str = "") -> list[dict[str, Any]]:
    shown = {"command": f"/bin/bash -lc {line}", "aggregated_output": ""}
    ended = {**shown, "aggregated_output": output, "exit_code": code, "status": "completed" if code == 0 else "failed"}
    return [
        item("started", number, "command_execution", **shown, exit_code=None, status="in_progress"),
        item("completed", number, "command_execution", **ended),
    ]


def test_what_was_thought_and_said_belongs_to_the_next_call(told: Tell) -> None:
    found = told(
        CodexReader,
        *BEGIN,
        item("completed", 0, "error", message="Model metadata not found."),
        item("completed", 1, "reasoning", text="**Looking**"),
        item("completed", 2, "agent_message", text="I look."),
        *command(3, "'ls -a; false'", 1, "a\n"),
        item("completed", 4, "agent_message", text="Done."),
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 200, "cached_input_tokens": 100, "output_tokens": 30},
        },
    )
    first, last = found.steps
    assert (first["message"], first["reasoning_content"]) == ("I look.", "**Looking**")
    assert first["tool_calls"] == [
        {"tool_call_id": "item_3", "function_name": "shell", "arguments": {"command": "ls -a; false"}}
    ]
    assert first["observation"]["results"] == [{"source_call_id": "item_3", "content": "a\n"}]
    assert found.actions == [{"tool_call_id": "item_3", "exit_code": 1, "timed_out": False}]
    assert last["message"] == found.reader.final == "Done."
    cost = (100 * 1 + 100 * 0.5 + 30 * 10) / 1e6
    assert found.used == {
        "prompt_tokens": 200,
        "cached_tokens": 100,
        "completion_tokens": 30,
        "cache_write_tokens": 0,
        "reasoning_tokens": None,
        "cost_usd": pytest.approx(cost),
        "requests": None,
    }
    assert (found.spending.spent.tokens, found.spending.spent.turns) == (230, 2)
    assert found.reader.session == "t-1"


def test_calls_of_one_answer_are_one_step(told: Tell) -> None:
    (first, first_end), (second, second_end) = command(1, "one"), command(2, "two")
    found = told(CodexReader, *BEGIN, first, second, second_end, first_end)
    (step,) = found.steps
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["item_1", "item_2"]
    assert [action["tool_call_id"] for action in found.actions] == ["item_2", "item_1"]
    assert found.between == [False] * 5 + [True]


def test_other_actions_are_calls_by_the_names_that_codex_has_for_them(told: Tell) -> None:
    changes = [{"path": "a.py", "kind": "update"}]
    found = told(
        CodexReader,
        *BEGIN,
        item("completed", 1, "file_change", changes=changes, status="completed"),
        item("started", 2, "mcp_tool_call", server="docs", tool="find", arguments={"q": "x"}, status="in_progress"),
        item("completed", 2, "mcp_tool_call", server="docs", tool="find", error={"message": "gone"}, status="failed"),
        item("completed", 3, "web_search", query="how to"),
    )
    called = [(call["function_name"], call["arguments"]) for step in found.steps for call in step["tool_calls"]]
    assert called == [
        ("apply_patch", {"changes": changes}),
        ("docs.find", {"q": "x"}),
        ("web_search", {"query": "how to"}),
    ]
    assert [step["observation"]["results"][0]["content"] for step in found.steps] == ["completed", "gone", ""]


def test_a_plan_is_a_call_each_time_it_changes_and_never_keeps_the_budget_waiting(told: Tell) -> None:
    def plan(moment: str, done: bool) -> dict[str, Any]:
        return item(moment, 1, "todo_list", items=[{"text": "look", "completed": done}])

    found = told(CodexReader, *BEGIN, plan("started", False), plan("updated", True), plan("completed", True))
    plans = [call["arguments"]["plan"] for step in found.steps for call in step["tool_calls"]]
    assert plans == [[{"step": "look", "completed": False}], [{"step": "look", "completed": True}]]
    assert found.between[-1]


@pytest.mark.parametrize("said", ["unexpected status 401 Unauthorized", "stream disconnected"])
def test_a_turn_that_failed_is_an_error_in_the_providers_words(told: Tell, said: str) -> None:
    found = told(
        CodexReader,
        *BEGIN,
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "turn.failed", "error": {"message": said}},
    )
    assert (found.reader.failure, found.reader.trouble) == (said, "Reconnecting... 1/5")


def test_a_conversation_that_is_too_long_ends_the_turn_and_is_no_error(told: Tell) -> None:
    said = "Codex ran out of room in the model's context window."
    found = told(CodexReader, *BEGIN, {"type": "turn.failed", "error": {"message": said}})
    assert found.reader.failure == ""
    assert found.reader.stopped == f"context: the conversation is longer than the model takes ({said})"
