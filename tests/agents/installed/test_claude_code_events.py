"""What Claude Code's stream of events comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.claude_code import ClaudeCodeReader
from tests.agents.installed.conftest import Told, answered

Tell = Callable[..., Told]
INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "s-1",
    "model": "claude-sonnet-4-5-20250929",
    "claude_code_version": "2.1.330",
}


def event(kind: str, parent: str | None = None, **values: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": "s-1", "parent_tool_use_id": parent, **values}


def block(message: str, content: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    body = {"id": message, "role": "assistant", "model": "claude-x", "content": [content]}
    return event("assistant", parent, message=body, request_id=f"req_of_{message}")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {"command": "true"}}


def result(call_id: str, content: Any = "", *, error: bool = False, ran: Any = None) -> dict[str, Any]:
    of_call = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": error}
    return event("user", message={"role": "user", "content": [of_call]}, tool_use_result=ran)


def streamed(kind: str, parent: str | None = None, **values: Any) -> dict[str, Any]:
    return event("stream_event", parent, event={"type": kind, **values})


def begin(message: str) -> dict[str, Any]:
    return streamed("message_start", message={"id": message, "model": "claude-x"})


FINISH = streamed("message_stop")


def test_the_blocks_of_one_answer_are_one_step_with_its_tokens(told: Tell) -> None:
    found = told(
        ClaudeCodeReader,
        INIT,
        begin("m1"),
        block("m1", {"type": "thinking", "thinking": "Hm.", "signature": "x"}),
        block("m1", text("I look.")),
        block("m1", call("c1", command="ls")),
        block("m1", call("c2", command="pwd")),
        answered(100),
        FINISH,
        result("c1", "a\nb", ran={"stdout": "a\nb"}),
        result("c2", [text("/app")], ran={"stdout": "/app"}),
        begin("m2"),
        block("m2", text("Done.")),
        answered(200),
        FINISH,
    )
    first, second = found.steps
    assert (first["message"], first["reasoning_content"]) == ("I look.", "Hm.")
    assert [each["arguments"] for each in first["tool_calls"]] == [{"command": "ls"}, {"command": "pwd"}]
    assert [each["content"] for each in first["observation"]["results"]] == ["a\nb", "/app"]
    assert first["extra"]["evocode"]["request_id"] == "req_of_m1"
    assert first["metrics"] == {"prompt_tokens": 100, "completion_tokens": 1, "cost_usd": 1.0}
    assert second["metrics"]["prompt_tokens"] == 200
    assert found.spending.spent.turns == 2
    assert found.reader.session == "s-1"
    assert found.recorder.agent.model_name == "claude-sonnet-4-5-20250929"
    assert found.recorder.agent.version == "2.1.330"


def test_why_a_reply_ended_and_which_model_gave_it_are_on_its_step(told: Tell) -> None:
    first = (begin("m1"), block("m1", call("c1")), answered(1, stop_reason="tool_use"), FINISH)
    second = (begin("m2"), block("m2", text("No.")), answered(2, stop_reason="refusal"), FINISH)
    found = told(ClaudeCodeReader, INIT, *first, result("c1"), *second)
    facts = [(step["model_name"], step["extra"]["evocode"]) for step in found.steps]
    assert [(model, fact["stop_reason"], fact["ending"]) for model, fact in facts] == [
        ("claude-x", "tool_use", "calls"),
        ("claude-x", "refusal", "refused"),
    ]
    assert found.reader.refused == "refusal"


def test_a_refusal_without_a_word_is_one(told: Tell) -> None:
    said = {"id": "x", "model": "<synthetic>", "content": [text("API Error: unable to respond.")], "usage": {}}
    end = event("result", subtype="success", is_error=True, result="API Error: unable to respond.")
    refusal = answered(100, stop_reason="refusal")
    found = told(ClaudeCodeReader, INIT, begin("m1"), event("assistant", message=said), refusal, FINISH, end)
    assert found.reader.refused == "refusal"
    [step] = found.steps
    assert (step["message"], step["extra"]["evocode"]["ending"]) == ("", "refused")
    assert found.used["prompt_tokens"] == 100


def test_what_a_helper_refused_is_no_refusal_of_the_turn(told: Tell) -> None:
    refusal = answered(2, stop_reason="refusal")
    inner = (block("h1", text("No."), "c1"), refusal, streamed("message_stop", "c1"))
    outer = (begin("m1"), block("m1", call("c1", "Task")), answered(1), FINISH)
    found = told(ClaudeCodeReader, INIT, *outer, *inner, result("c1"))
    assert found.steps[1]["extra"]["evocode"]["ending"] == "refused"
    assert found.reader.refused == ""


def test_requests_beside_the_conversation_count_with_the_step_after_them_or_the_last(told: Tell) -> None:
    first = (answered(5), begin("m1"), block("m1", call("c1")), answered(10), FINISH, result("c1"))
    second = (begin("m2"), block("m2", text("Done.")), answered(20), FINISH, answered(7))
    found = told(ClaudeCodeReader, INIT, *first, *second)
    assert [step["metrics"]["prompt_tokens"] for step in found.steps] == [15, 27]
    assert (found.used["prompt_tokens"], found.used["requests"]) == (42, 4)


def test_what_the_gateway_says_late_is_with_the_reply_that_it_is_about(told: Tell) -> None:
    first = (begin("m1"), block("m1", call("c1")), FINISH, answered(10), result("c1"))
    second = (begin("m2"), block("m2", call("c2")), FINISH, result("c2"), answered(20))
    last = (answered(30), block("m3", text("Done.")), FINISH)
    found = told(ClaudeCodeReader, INIT, *first, *second, *last)
    assert [step["metrics"]["prompt_tokens"] for step in found.steps] == [10, 20, 30]


def test_exit_codes_are_those_of_commands(told: Tell) -> None:
    found = told(
        ClaudeCodeReader,
        INIT,
        *(block("m1", call(f"c{number}")) for number in range(1, 6)),
        result("c1", "ok", ran={"stdout": "ok"}),
        result("c2", "Exit code 3\nno", error=True, ran="Error: Exit code 3\nno"),
        result("c3", "Exit code 143\nCommand timed out after 2m 0s", error=True),
        result("c4", "File created", ran={"type": "create"}),
        result("c5", "<tool_use_error>No such tool", error=True),
    )
    assert [action["exit_code"] for action in found.actions] == [0, 3, 143, None, None]
    assert [action["timed_out"] for action in found.actions] == [False, False, True, False, False]


def test_without_parts_of_answers_an_answer_ends_with_its_first_result(told: Tell) -> None:
    found = told(ClaudeCodeReader, INIT, block("m1", text("I look.")), block("m1", call("c1")), result("c1", "ok"))
    (step,) = found.steps
    assert (step["message"], len(step["tool_calls"])) == ("I look.", 1)


def test_what_a_helper_does_is_told_apart_and_the_call_of_the_helper_has_its_result(told: Tell) -> None:
    found = told(
        ClaudeCodeReader,
        INIT,
        block("m1", call("task", "Task", prompt="Look around.")),
        streamed("message_stop"),
        block("h1", call("inner", command="ls"), parent="task"),
        result("inner", "a"),
        result("task", "There is a."),
        block("m2", text("Done.")),
    )
    outer, inner, _ = found.steps
    assert outer["observation"]["results"] == [{"source_call_id": "task", "content": "There is a."}]
    assert inner["extra"]["evocode"]["helper_of"] == "task"


@pytest.mark.parametrize(
    ("end", "failure", "stopped"),
    [
        ({"subtype": "success", "is_error": True, "result": "API Error: 529"}, "API Error: 529", ""),
        ({"subtype": "error_during_execution", "is_error": True, "errors": ["No conversation"]}, "No conversation", ""),
        ({"subtype": "error_max_turns", "is_error": True}, "", "claude-code: max_turns reached"),
    ],
)
def test_how_it_ended(told: Tell, end: dict[str, Any], failure: str, stopped: str) -> None:
    found = told(ClaudeCodeReader, INIT, block("m1", text("Hm.")), event("result", **end))
    assert (found.reader.failure, found.reader.stopped) == (failure, stopped)


def test_what_the_program_says_of_an_error_is_no_answer_of_the_model(told: Tell) -> None:
    message = {"id": "x", "model": "<synthetic>", "content": [text("There is an issue with the model.")], "usage": {}}
    found = told(ClaudeCodeReader, INIT, event("assistant", message=message))
    assert (found.steps, found.reader.replies) == ([], 0)


def test_what_is_no_event_or_of_a_new_form_is_left_out_and_the_latter_noted(told: Tell) -> None:
    found = told(ClaudeCodeReader, "warning: no such thing", "[1]", INIT, event("assistant", message={"id": "m"}))
    notes = [step.message for step in found.recorder.trajectory().steps if step.source == "system"]
    assert len(notes) == 1
    assert notes[0].startswith("An event of unknown form was left out (KeyError('content')): ")
