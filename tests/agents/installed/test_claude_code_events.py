"""What Claude Code's stream of events comes to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.claude_code import ClaudeCodeReader
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder
from tests.agents.installed.conftest import Told

Tell = Callable[..., Told]
INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "s-1",
    "model": "claude-sonnet-4-5-20250929",
    "claude_code_version": "2.1.330",
}
ASKED = {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 85, "output_tokens": 1}


def event(kind: str, parent: str | None = None, **values: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": "s-1", "parent_tool_use_id": parent, **values}


def block(message: str, content: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    body = {"id": message, "role": "assistant", "model": "claude-x", "content": [content], "usage": ASKED}
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
    return streamed("message_start", message={"id": message, "model": "claude-x", "usage": ASKED})


def finish(tokens: int, reason: str | None = None) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason}
    return [streamed("message_delta", delta=delta, usage={**ASKED, "output_tokens": tokens}), streamed("message_stop")]


def test_the_blocks_of_one_answer_are_one_step_whose_tokens_count_once(told: Tell) -> None:
    found = told(
        ClaudeCodeReader,
        INIT,
        begin("m1"),
        block("m1", {"type": "thinking", "thinking": "Hm.", "signature": "x"}),
        block("m1", text("I look.")),
        block("m1", call("c1", command="ls")),
        block("m1", call("c2", command="pwd")),
        *finish(40),
        result("c1", "a\nb", ran={"stdout": "a\nb"}),
        result("c2", [text("/app")], ran={"stdout": "/app"}),
        begin("m2"),
        block("m2", text("Done.")),
        *finish(7),
    )
    first, second = found.steps
    assert (first["message"], first["reasoning_content"]) == ("I look.", "Hm.")
    assert [each["arguments"] for each in first["tool_calls"]] == [{"command": "ls"}, {"command": "pwd"}]
    assert [each["content"] for each in first["observation"]["results"]] == ["a\nb", "/app"]
    assert first["extra"]["evocode"]["request_id"] == "req_of_m1"
    cost = (10 * 1 + 85 * 0.5 + 5 * 2 + 40 * 10) / 1e6
    assert first["metrics"] == {
        "prompt_tokens": 100,
        "cached_tokens": 85,
        "completion_tokens": 40,
        "cost_usd": pytest.approx(cost),
        "extra": {"cache_write_tokens": 5},
    }
    assert second["metrics"]["completion_tokens"] == 7
    assert found.spending.spent.tokens == 247
    assert found.spending.spent.turns == 2
    assert found.reader.session == "s-1"
    assert found.recorder.agent.model_name == "claude-sonnet-4-5-20250929"
    assert found.recorder.agent.version == "2.1.330"


def test_a_reply_that_has_only_begun_is_known_to_be_used() -> None:
    reader = ClaudeCodeReader(Recorder(AgentInfo(name="a", version="0"), "session"))
    for each in (begin("m-1"), block("m-1", call("c-1")), *finish(20), begin("m-2")):
        reader.read(json.dumps(each).encode())
    assert reader.used is not None
    assert (reader.used.prompt_tokens, reader.used.completion_tokens, reader.used.requests) == (200, 21, 2)
    assert reader.replies == 1


def test_why_a_reply_ended_and_which_model_gave_it_are_on_its_step(told: Tell) -> None:
    first = (begin("m1"), block("m1", call("c1")), *finish(40, "tool_use"), result("c1"))
    found = told(ClaudeCodeReader, INIT, *first, begin("m2"), block("m2", text("No.")), *finish(7, "refusal"))
    facts = [(step["model_name"], step["extra"]["evocode"]) for step in found.steps]
    assert [(model, fact["stop_reason"], fact["ending"]) for model, fact in facts] == [
        ("claude-x", "tool_use", "calls"),
        ("claude-x", "refusal", "refused"),
    ]
    assert found.reader.refused == "refusal"


def test_a_refusal_without_a_word_is_one_and_no_error(told: Tell) -> None:
    said = {"id": "x", "model": "<synthetic>", "content": [text("API Error: unable to respond.")], "usage": {}}
    end = event("result", subtype="success", is_error=True, result="API Error: unable to respond.")
    found = told(ClaudeCodeReader, INIT, begin("m1"), event("assistant", message=said), *finish(7, "refusal"), end)
    assert (found.reader.refused, found.reader.failure) == ("refusal", "")
    [step] = found.steps
    assert (step["message"], step["extra"]["evocode"]["ending"]) == ("", "refused")
    assert found.used["prompt_tokens"] == 100


def test_what_a_helper_refused_is_no_refusal_of_the_turn(told: Tell) -> None:
    of_helper = streamed("message_delta", "c1", delta={"stop_reason": "refusal"}, usage=ASKED)
    end = streamed("message_stop", "c1")
    inner = (streamed("message_start", "c1", message={"id": "h1", "usage": ASKED}), block("h1", text("No."), "c1"))
    outer = (begin("m1"), block("m1", call("c1", "Task")), *finish(40, "tool_use"))
    found = told(ClaudeCodeReader, INIT, *outer, *inner, of_helper, end, result("c1"))
    assert found.steps[1]["extra"]["evocode"]["ending"] == "refused"
    assert found.reader.refused == ""


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
    assert found.between == [False, False, False, False, True, True, True]


def test_the_end_says_what_all_of_it_took_of_this_turn_alone(told: Tell) -> None:
    counts: dict[str, Any] = {
        "inputTokens": 30,
        "outputTokens": 60,
        "cacheReadInputTokens": 110,
        "cacheCreationInputTokens": 5,
    }
    end: dict[str, Any] = {
        "subtype": "success",
        "is_error": False,
        "result": "Done.",
        "total_cost_usd": 0.9,
        "modelUsage": {"claude-x": {**counts, "inputTokens": 4000, "costUSD": 0.9, "costBasis": "list"}},
        "model_usage_since_last_result": {
            "claude-x": {**counts, "costUSD": 0.2, "costBasis": "list"},
            "claude-small": {**counts, "outputTokens": 1, "costUSD": 0.1, "costBasis": "list"},
        },
    }
    found = told(ClaudeCodeReader, INIT, begin("m1"), block("m1", text("Done.")), *finish(40), event("result", **end))
    assert found.used == {
        "prompt_tokens": 290,
        "cached_tokens": 220,
        "completion_tokens": 61,
        "cache_write_tokens": 10,
        "reasoning_tokens": None,
        "cost_usd": pytest.approx(0.3),
        "requests": 1,
    }
    assert found.spending.spent.tokens == 351
    assert found.spending.spent.cost_usd == pytest.approx(0.3)
    assert found.reader.final == "Done."


def test_a_cost_that_is_only_guessed_is_not_taken(told: Tell) -> None:
    counts: dict[str, Any] = {"inputTokens": 100, "outputTokens": 40, "costUSD": 77, "costBasis": "unknown"}
    end = event("result", subtype="success", is_error=False, result="", model_usage_since_last_result={"mine": counts})
    found = told(ClaudeCodeReader, INIT, begin("m1"), block("m1", text("Done.")), *finish(40), end)
    assert found.used["cost_usd"] == found.steps[0]["metrics"]["cost_usd"]


@pytest.mark.parametrize(
    ("end", "failure", "stopped"),
    [
        ({"subtype": "success", "is_error": True, "result": "API Error: 529"}, "API Error: 529", ""),
        ({"subtype": "error_during_execution", "is_error": True, "errors": ["No conversation"]}, "No conversation", ""),
        ({"subtype": "error_max_turns", "is_error": True}, "", "claude-code: max_turns reached"),
        (
            {"subtype": "success", "is_error": True, "result": "Prompt is too long"},
            "",
            "context: the conversation is longer than the model takes (Prompt is too long)",
        ),
    ],
)
def test_how_it_ended(told: Tell, end: dict[str, Any], failure: str, stopped: str) -> None:
    found = told(ClaudeCodeReader, INIT, block("m1", text("Hm.")), event("result", **end))
    assert (found.reader.failure, found.reader.stopped) == (failure, stopped)


def test_a_provider_that_refuses_for_good_is_not_waited_for(told: Tell) -> None:
    retry: dict[str, Any] = {"subtype": "api_retry", "error_status": 401, "error": "authentication_failed"}
    refused = told(ClaudeCodeReader, INIT, event("system", **retry)).reader
    assert refused.failure.startswith("the model's provider answers 401 (authentication_failed)")
    busy = told(ClaudeCodeReader, INIT, event("system", **{**retry, "error_status": 529})).reader
    assert (busy.failure, bool(busy.trouble)) == ("", True)
    again = told(ClaudeCodeReader, INIT, event("system", **{**retry, "error_status": 529}), block("m1", text("Hm.")))
    assert again.reader.trouble == ""


def test_what_the_program_says_of_an_error_is_no_answer_of_the_model(told: Tell) -> None:
    message = {"id": "x", "model": "<synthetic>", "content": [text("There is an issue with the model.")], "usage": {}}
    found = told(ClaudeCodeReader, INIT, event("assistant", message=message))
    assert (found.steps, found.reader.replies) == ([], 0)
    assert found.reader.trouble == "There is an issue with the model."


def test_what_is_no_event_or_of_a_new_form_is_left_out_and_the_latter_noted(told: Tell) -> None:
    found = told(ClaudeCodeReader, "warning: no such thing", "[1]", INIT, event("assistant", message={"id": "m"}))
    notes = [step.message for step in found.recorder.trajectory().steps if step.source == "system"]
    assert len(notes) == 1
    assert notes[0].startswith("An event of unknown form was left out (KeyError('content')): ")


def test_the_budget_is_looked_at_when_all_calls_are_done(told: Tell) -> None:
    events = (
        INIT,
        begin("m1"),
        block("m1", call("c1")),
        block("m1", call("c2")),
        streamed("message_stop"),
        result("c1"),
        result("c2"),
        begin("m2"),
        block("m2", text("Done.")),
        streamed("message_stop"),
    )
    assert told(ClaudeCodeReader, *events).between == [False] * 6 + [True] * 3 + [False]
