"""What the events of ``codex exec --json`` come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.codex import CodexReader
from tests.agents.installed.conftest import Told, answered

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
        answered(100),
        *command(3, "'ls -a; false'", 1, "a\n"),
        answered(200),
        item("completed", 4, "agent_message", text="Done."),
        {"type": "turn.completed"},
    )
    first, last = found.steps
    assert (first["message"], first["reasoning_content"]) == ("I look.", "**Looking**")
    assert first["tool_calls"] == [
        {"tool_call_id": "item_3", "function_name": "shell", "arguments": {"command": "ls -a; false"}}
    ]
    assert first["observation"]["results"] == [{"source_call_id": "item_3", "content": "a\n"}]
    assert found.actions == [{"tool_call_id": "item_3", "exit_code": 1, "timed_out": False}]
    assert last["message"] == found.reader.final == "Done."
    assert [step["metrics"]["prompt_tokens"] for step in found.steps] == [100, 200]
    assert found.spending.spent.turns == 2
    assert found.reader.session == "t-1"


def test_calls_of_one_answer_are_one_step(told: Tell) -> None:
    (first, first_end), (second, second_end) = command(1, "one"), command(2, "two")
    found = told(CodexReader, *BEGIN, first, second, second_end, first_end)
    (step,) = found.steps
    assert [call["tool_call_id"] for call in step["tool_calls"]] == ["item_1", "item_2"]
    assert [action["tool_call_id"] for action in found.actions] == ["item_2", "item_1"]


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


def test_a_plan_is_a_call_each_time_it_changes(told: Tell) -> None:
    def plan(moment: str, done: bool) -> dict[str, Any]:
        return item(moment, 1, "todo_list", items=[{"text": "look", "completed": done}])

    found = told(CodexReader, *BEGIN, plan("started", False), plan("updated", True), plan("completed", True))
    plans = [call["arguments"]["plan"] for step in found.steps for call in step["tool_calls"]]
    assert plans == [[{"step": "look", "completed": False}], [{"step": "look", "completed": True}]]


@pytest.mark.parametrize("said", ["unexpected status 401 Unauthorized", "stream disconnected"])
def test_a_turn_that_failed_is_an_error_in_the_providers_words(told: Tell, said: str) -> None:
    found = told(
        CodexReader,
        *BEGIN,
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "turn.failed", "error": {"message": said}},
    )
    assert found.reader.failure == said


def test_a_reply_that_was_cut_at_its_limit_stops_the_turn_and_is_no_error(told: Tell) -> None:
    said = "Incomplete response returned, reason: max_output_tokens"
    found = told(CodexReader, *BEGIN, *command(1, "ls"), {"type": "turn.failed", "error": {"message": said}})
    assert found.reader.failure == ""
    assert found.reader.stopped.startswith("cut off: ")


def tokens_of(found: Told) -> list[int | None]:
    """The prompt's tokens of each step; None for a step that counts none."""
    return [step.get("metrics", {}).get("prompt_tokens") for step in found.steps]


def test_a_request_of_which_there_is_no_event_is_a_step_of_its_own(told: Tell) -> None:
    ran = (answered(1, calls={"call_1": "exec_command"}), *command(2, "ls"))
    polled = answered(2, "I wait.", calls={"call_7": "write_stdin"})
    said = (item("completed", 3, "agent_message", text="I wait."), item("completed", 4, "agent_message", text="Done."))
    found = told(CodexReader, *BEGIN, *ran, polled, answered(3, "Done.", given={"call_7": "more"}), *said)
    assert tokens_of(found) == [1, 2, 3]
    unseen = found.steps[1]
    assert [call["function_name"] for call in unseen["tool_calls"]] == ["write_stdin"]
    assert unseen["observation"]["results"] == [{"source_call_id": "call_7", "content": "more"}]
    assert [step["message"] for step in found.steps] == ["", "I wait.", "Done."]
    assert found.spending.spent.turns == 3


def test_a_turn_that_ends_with_a_request_of_which_there_is_no_event_counts_it(told: Tell) -> None:
    found = told(CodexReader, *BEGIN, answered(1), *command(2, "ls"), answered(2, calls={"call_3": "wait"}))
    assert tokens_of(found) == [1, 2]


def test_a_reply_of_which_events_make_two_steps_is_counted_once(told: Tell) -> None:
    done = item("completed", 5, "agent_message", text="Done.")
    both = (answered(1), *command(2, "ls"), *command(3, "pwd"))
    found = told(CodexReader, *BEGIN, *both, answered(2), *command(4, "id"), answered(3), done)
    assert tokens_of(found) == [1, None, 2, 3]
