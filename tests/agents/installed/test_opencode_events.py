"""What the events of ``opencode run --format json`` come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_evocode.agents.installed.opencode import OpenCodeAgent, OpenCodeOptions, OpenCodeReader
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import Budget
from tests.agents.installed.conftest import Told, answered

Tell = Callable[..., Told]


def event(kind: str, **part: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1, "sessionID": "ses_1", "part": part}


def call(number: int, code: int = 0, **state: Any) -> dict[str, Any]:
    done = {"status": "completed", "input": {"command": "ls"}, "output": "a\n", "metadata": {"exit": code}}
    return event("tool_use", tool="bash", callID=f"c{number}", state={**done, **state})


FINISH = event("step_finish", reason="stop", tokens={"input": 90}, cost=0)


def test_the_parts_of_an_answer_are_one_step_with_its_tokens(told: Tell) -> None:
    found = told(
        OpenCodeReader,
        event("step_start"),
        event("reasoning", text="Hm."),
        event("text", text="I look."),
        call(1, time={"start": 1000, "end": 3500}),
        answered(100),
        call(2, code=2),
        FINISH,
        event("step_start"),
        event("text", text="Done."),
        answered(200, stop_reason="end_turn"),
        FINISH,
    )
    first, last = found.steps
    assert (first["message"], first["reasoning_content"], len(first["tool_calls"])) == ("I look.", "Hm.", 2)
    assert [action["exit_code"] for action in found.actions] == [0, 2]
    assert first["extra"]["evocode"]["actions"][0]["seconds"] == 2.5
    assert [step["metrics"]["prompt_tokens"] for step in found.steps] == [100, 200]
    assert last["extra"]["evocode"] == {"stop_reason": "end_turn", "ending": "done"}
    assert last["message"] == found.reader.final == "Done."
    assert found.spending.spent.turns == 2
    assert found.reader.session == "ses_1"


def test_a_call_that_failed_has_its_error(told: Tell) -> None:
    found = told(OpenCodeReader, call(1, status="error", output=None, error="denied", metadata={}))
    assert found.steps[0]["observation"]["results"][0]["content"] == "denied"
    assert found.actions[0]["exit_code"] is None


def test_an_error_is_told_in_the_providers_words(told: Tell) -> None:
    error = {"type": "error", "sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "Unauthorized"}}}
    assert told(OpenCodeReader, error).reader.failure == "Unauthorized"


def test_a_model_without_a_provider_is_refused_and_the_key_is_the_providers() -> None:
    with pytest.raises(UsageError, match="opencode needs a model with its provider"):
        OpenCodeAgent("gpt-5.2", OpenCodeOptions()).check({}, Budget())
    agent = OpenCodeAgent("openrouter/some/model", OpenCodeOptions())
    agent.check({"OPENROUTER_API_KEY": "sk-0123456789"}, Budget())
    with pytest.raises(UsageError, match="OPENROUTER_API_KEY is not set"):
        agent.check({}, Budget())


def test_where_the_models_of_an_unknown_provider_are_has_to_be_said() -> None:
    with pytest.raises(UsageError, match="where the models of moonshot are is not known; name the server's address"):
        OpenCodeAgent("moonshot/kimi", OpenCodeOptions()).check({"MOONSHOT_API_KEY": "sk-0123456789"}, Budget())


@pytest.mark.parametrize(
    ("model", "base_url", "upstream"),
    [
        ("anthropic/claude", "http://here:1/v1", "http://here:1"),
        ("google/gemini", "http://here:1/v1beta/", "http://here:1"),
        ("local/qwen", "http://here:1/v1", "http://here:1/v1"),
        ("openai/gpt", None, None),
        ("groq/llama", None, "https://api.groq.com/openai/v1"),
    ],
)
def test_the_gateway_asks_the_server_that_the_cli_would_have_asked(
    model: str, base_url: str | None, upstream: str | None
) -> None:
    assert OpenCodeAgent(model, OpenCodeOptions(base_url=base_url)).upstream == upstream
