"""The server that stands for the providers: what it streams is read by the official SDKs, what is wrong it refuses."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.model_scripts import Asked, Run, Say, Step, Think, Tokens
from tests.model_server import ModelServer

# The SDKs take seconds to import, and every worker imports this module: the tests themselves import them.
if TYPE_CHECKING:
    from anthropic.types import ToolParam as AnthropicTool
    from openai.types.chat import ChatCompletionToolParam
    from openai.types.responses import FunctionToolParam

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SCRIPT: list[Step] = [[Think("Hm."), Say("I look."), Run("ls"), Tokens(prompt=70, completion=7, cached=30, written=20)]]


def test_messages_are_streamed_as_the_sdk_reads_them() -> None:
    import anthropic

    with ModelServer(SCRIPT) as server, anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        tools: list[AnthropicTool] = [{"name": "bash", "input_schema": SCHEMA}]
        asked: Any = [{"role": "user", "content": "Go."}]
        with client.messages.stream(model="m", max_tokens=9, messages=asked, tools=tools) as stream:
            message = stream.get_final_message()
    thinking, text, call = message.content
    assert thinking.type == "thinking"
    assert thinking.thinking == "Hm."
    assert thinking.signature
    assert text.type == "text"
    assert text.text == "I look."
    assert call.type == "tool_use"
    assert call.input == {"command": "ls"}
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("tool_use", 20, 7)
    assert (message.usage.cache_read_input_tokens, message.usage.cache_creation_input_tokens) == (30, 20)


def test_responses_are_streamed_as_the_sdk_reads_them() -> None:
    import openai

    with ModelServer(SCRIPT) as server, openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        tools: list[FunctionToolParam] = [{"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}]
        with client.responses.stream(model="m", input="Go.", tools=tools) as stream:
            response = stream.get_final_response()
    reasoning, message, call = response.output
    assert reasoning.type == "reasoning"
    assert reasoning.encrypted_content
    assert message.type == "message"
    assert response.output_text == "I look."
    assert call.type == "function_call"
    assert call.arguments == '{"command": "ls"}'
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.input_tokens_details.cached_tokens) == (70, 30)


def test_chat_completions_are_streamed_as_the_sdk_reads_them() -> None:
    import openai

    with ModelServer(SCRIPT) as server, openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        tools: list[ChatCompletionToolParam] = [
            {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}
        ]
        messages: Any = [{"role": "user", "content": "Go."}]
        with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
            completion = stream.get_final_completion()
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("I look.", "tool_calls")
    assert choice.message.tool_calls is not None
    [call] = choice.message.tool_calls
    assert call.function.arguments == '{"command": "ls"}'
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == 70


def test_models_are_listed_and_tokens_counted() -> None:
    import anthropic
    import openai

    with ModelServer([], models=["a", "b"]) as server, anthropic.Anthropic(base_url=server.url, api_key="k") as client:
        assert [model.id for model in client.models.list()] == ["a", "b"]
        counted = client.messages.count_tokens(model="a", messages=[{"role": "user", "content": "x" * 400}])
        assert counted.input_tokens > 100
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as other:
            assert [model.id for model in other.models.list()] == ["a", "b"]
    assert server.asked == []


def test_a_function_answers_what_it_is_asked() -> None:
    import openai

    def model(asked: Asked) -> Step:
        return Say(f"{asked.model}, {asked.api}: {asked.said[-1]}")

    with ModelServer(model) as server, openai.OpenAI(base_url=server.url, api_key="k") as client:
        assert client.responses.create(model="m", input="Who?").output_text == "m, responses: Who?"


def said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    """One message of a conversation."""
    return {"role": role, "content": [*blocks]}


USER = said("user", {"type": "text", "text": "Go."})
CACHED = {"type": "text", "text": "Go.", "cache_control": {"type": "ephemeral"}}
CALL = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "forged"}


@pytest.mark.parametrize(
    "broken",
    [
        [USER, said("assistant", CALL)],
        [said("user", RESULT)],
        [USER, said("assistant", CALL), said("user", {"type": "text", "text": "x"}, RESULT)],
        [USER, said("assistant", CALL), USER, said("user", RESULT)],
        [said("user", {"type": "text", "text": " "})],
        [said("user")],
        [USER, said("assistant", THOUGHT), USER],
        [said("user", *[CACHED] * 5)],
    ],
)
def test_a_conversation_that_a_provider_would_refuse_is_refused(broken: Any) -> None:
    import anthropic

    refused = pytest.raises(anthropic.BadRequestError)
    with ModelServer([]) as server, anthropic.Anthropic(base_url=server.url, api_key="k") as client, refused:
        client.messages.create(model="m", max_tokens=9, messages=broken)


def test_what_goes_wrong_in_the_script_is_raised_at_the_end() -> None:
    import openai

    over = pytest.raises(AssertionError, match="the script has no more to say")
    refused = contextlib.suppress(openai.BadRequestError)
    with over, ModelServer([]) as server, openai.OpenAI(base_url=server.url, api_key="k") as client, refused:
        client.responses.create(model="m", input="x")
