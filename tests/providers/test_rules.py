"""What a fake provider refuses, in the form and nearly the words of the real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.model_scripts import Say
from tests.providers import gemini_api, messages_api
from tests.providers.chat_api import FIELDS as CHAT_FIELDS
from tests.providers.exchanges import Json
from tests.providers.requests_by_hand import APIS, headers_for, path_for, right, send, words_of
from tests.providers.responses_api import FIELDS as RESPONSES_FIELDS
from tests.providers.server import ProviderServer


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer(lambda asked: Say("Done.")) as running:
        yield running


@pytest.mark.parametrize("api", APIS)
def test_a_request_that_keeps_the_rules_is_answered(api: str, server: ProviderServer) -> None:
    status, _, body = send(server, api, right(api))
    assert (status, "Done." in body.decode()) == (200, True)


Change = Callable[[Json], Any]


def _messages(body: Json) -> list[Json]:
    messages: list[Json] = body["messages"]
    return messages


RULES: list[tuple[str, str, Change, str]] = [
    # Messages.
    ("messages", "an unknown field", lambda b: b.update(n=1), "n: Extra inputs are not permitted"),
    ("messages", "no max_tokens", lambda b: b.pop("max_tokens"), "max_tokens: Field required"),
    ("messages", "no messages", lambda b: b.update(messages=[]), "at least one message is required"),
    ("messages", "max_tokens of 0", lambda b: b.update(max_tokens=0), "greater than or equal to 1"),
    (
        "messages",
        "a thinking budget over max_tokens",
        lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 2000}),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    ("messages", "the model speaks first", lambda b: _messages(b).pop(0), "first message must use the"),
    ("messages", "another role", lambda b: _messages(b)[0].update(role="tool"), "should be 'user', 'assistant' or"),
    (
        "messages",
        "an instruction in front",
        lambda b: _messages(b).insert(0, {"role": "system", "content": "Be brief."}),
        "first message must use the",
    ),
    (
        "messages",
        "an instruction after what the model says",
        lambda b: _messages(b).insert(2, {"role": "system", "content": "Be brief."}),
        "must follow a `user` message",
    ),
    (
        "messages",
        "an instruction in a conversation with an older model",
        lambda b: b.update(
            model="claude-sonnet-4-5", messages=[*_messages(b), {"role": "system", "content": "Be brief."}]
        ),
        "role 'system' is not supported on this model",
    ),
    ("messages", "no content", lambda b: _messages(b)[0].update(content=""), "must have non-empty content"),
    (
        "messages",
        "an empty text",
        lambda b: _messages(b)[1]["content"][0].update(text=""),
        "text content blocks must be non-empty",
    ),
    (
        "messages",
        "a text of blanks",
        lambda b: _messages(b)[1]["content"][0].update(text=" \n"),
        "must contain non-whitespace text",
    ),
    (
        "messages",
        "an empty system prompt's block",
        lambda b: b.update(system=[{"type": "text", "text": ""}]),
        "system:",
    ),
    (
        "messages",
        "an unknown field of a block",
        lambda b: _messages(b)[1]["content"][1].update(index=0),
        "Extra inputs",
    ),
    ("messages", "no result", lambda b: _messages(b)[2].update(content="Well?"), "without `tool_result` blocks immed"),
    (
        "messages",
        "a text before the result",
        lambda b: _messages(b)[2]["content"].insert(0, {"type": "text", "text": "Here:"}),
        "without `tool_result` blocks immediately after",
    ),
    (
        "messages",
        "a result of another call",
        lambda b: _messages(b)[2]["content"].append({"type": "tool_result", "tool_use_id": "toolu_2"}),
        "unexpected `tool_use_id` found",
    ),
    (
        "messages",
        "two results of one call",
        lambda b: _messages(b)[2]["content"].append(_messages(b)[2]["content"][0]),
        "each tool_use must have a single result",
    ),
    (
        "messages",
        "two calls of one id",
        lambda b: _messages(b)[1]["content"].append(_messages(b)[1]["content"][1]),
        "`tool_use` ids must be unique",
    ),
    (
        "messages",
        "an odd name of a call",
        lambda b: _messages(b)[1]["content"][1].update(name="functions.bash:0"),
        "tool_use.name: String should match pattern",
    ),
    (
        "messages",
        "an odd id",
        lambda b: _messages(b)[1]["content"][1].update(id="functions.bash:0"),
        "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    ("messages", "an odd name of a tool", lambda b: b["tools"][0].update(name="a.b"), "tools.0.custom.name: String"),
    ("messages", "a long name of a tool", lambda b: b["tools"][0].update(name="a" * 129), "tools.0.custom.name"),
    ("messages", "two tools of one name", lambda b: b["tools"].append(b["tools"][0]), "names must be unique"),
    (
        "messages",
        "a signature that is made up",
        lambda b: _messages(b)[1]["content"].insert(0, {"type": "thinking", "thinking": "Hm.", "signature": "abc"}),
        "Invalid `signature` in `thinking` block",
    ),
    (
        "messages",
        "a prefilled text",
        lambda b: _messages(b).append({"role": "assistant", "content": "So"}),
        "does not support assistant message prefill",
    ),
    (
        "messages",
        "five marks for the cache",
        lambda b: b.update(system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}] * 5),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    # Chat Completions.
    ("chat", "an unknown field", lambda b: b.update(top_k=1), "Unrecognized request argument supplied: top_k"),
    ("chat", "no model", lambda b: b.pop("model"), "you must provide a model parameter"),
    ("chat", "no messages", lambda b: b.update(messages=[]), "Invalid 'messages': empty array"),
    ("chat", "max_tokens of a model that reasons", lambda b: b.update(max_tokens=9), "'max_completion_tokens' instead"),
    ("chat", "a temperature of a model that reasons", lambda b: b.update(temperature=0), "does not support 0"),
    ("chat", "options of a stream that is none", lambda b: b.update(stream_options={}), "only allowed when 'stream'"),
    ("chat", "no tools in a list", lambda b: b.update(tools=[]), "Invalid 'tools': empty array"),
    ("chat", "a choice without tools", lambda b: b.pop("tools") and b.update(tool_choice="auto"), "only allowed when"),
    ("chat", "another role", lambda b: _messages(b)[0].update(role="model"), "Supported values are"),
    ("chat", "an unknown field of a message", lambda b: _messages(b)[2].update(reasoning_content="x"), "Unknown param"),
    ("chat", "nothing said and called", lambda b: _messages(b)[2].pop("tool_calls"), "expected a string, got null"),
    ("chat", "no calls in a list", lambda b: _messages(b)[2].update(tool_calls=[]), "tool_calls': empty array"),
    ("chat", "no result", lambda b: _messages(b).pop(), "did not have response messages: call_1"),
    (
        "chat",
        "a text before the result",
        lambda b: _messages(b).insert(3, {"role": "user", "content": "Here:"}),
        "did not have response messages: call_1",
    ),
    (
        "chat",
        "a result of another call",
        lambda b: _messages(b)[3].update(tool_call_id="call_2"),
        "must be a response to a preceeding message with 'tool_calls'",
    ),
    ("chat", "a result of no call", lambda b: _messages(b)[3].pop("tool_call_id"), "Missing parameter 'tool_call_id'"),
    (
        "chat",
        "two calls of one id",
        lambda b: _messages(b)[2]["tool_calls"].append(_messages(b)[2]["tool_calls"][0]),
        "Duplicate value for 'tool_call_id'",
    ),
    (
        "chat",
        "an odd name of a call",
        lambda b: _messages(b)[2]["tool_calls"][0]["function"].update(name="functions.bash:0"),
        "string does not match pattern",
    ),
    (
        "chat",
        "a long name of a call",
        lambda b: _messages(b)[2]["tool_calls"][0]["function"].update(name="a" * 65),
        "string too long. Expected a string with maximum length 64",
    ),
    (
        "chat",
        "a long id",
        lambda b: _messages(b)[2]["tool_calls"][0].update(id="a" * 65),
        "Invalid 'messages[2].tool_calls[0].id': string too long",
    ),
    (
        "chat",
        "arguments that are no text",
        lambda b: _messages(b)[2]["tool_calls"][0]["function"].update(arguments={}),
        "expected a string, but got an object",
    ),
    ("chat", "an odd name of a tool", lambda b: b["tools"][0]["function"].update(name="a.b"), "does not match pattern"),
    # Responses.
    ("responses", "an unknown field", lambda b: b.update(messages=[]), "Unknown parameter: 'messages'."),
    ("responses", "no model", lambda b: b.pop("model"), "Missing required parameter: 'model'."),
    (
        "responses",
        "a temperature of a model that reasons",
        lambda b: b.update(temperature=0),
        "'temperature' is not su",
    ),
    ("responses", "a limit of 1", lambda b: b.update(max_output_tokens=1), "Expected a value >= 16"),
    (
        "responses",
        "an unknown field of an item",
        lambda b: b["input"][1].update(index=0),
        "Unknown parameter: 'input[1]",
    ),
    (
        "responses",
        "a call without an output",
        lambda b: b["input"].pop(),
        "No tool output found for function call call_1",
    ),
    (
        "responses",
        "an output without a call",
        lambda b: b["input"].pop(1),
        "No tool call found for function call output",
    ),
    ("responses", "an output before its call", lambda b: b["input"].reverse(), "No tool call found for function call"),
    ("responses", "an odd name", lambda b: b["input"][1].update(name="functions.bash:0"), "does not match pattern"),
    ("responses", "a long call_id", lambda b: b["input"][1].update(call_id="a" * 65), "maximum length 64"),
    ("responses", "an empty call_id", lambda b: b["input"][1].update(call_id=""), "call_id': empty string"),
    ("responses", "an id of another kind", lambda b: b["input"][1].update(id="call_1"), "an ID that begins with 'fc'"),
    ("responses", "an odd id", lambda b: b["input"][1].update(id="fc:1"), "letters, numbers, underscores, or dashes"),
    (
        "responses",
        "one id twice",
        lambda b: b["input"].extend([{"type": "message", "role": "assistant", "content": "A", "id": "msg_1"}] * 2),
        "Duplicate item found with id msg_1",
    ),
    (
        "responses",
        "what the model says as what the user says",
        lambda b: b["input"].append({"role": "assistant", "content": [{"type": "input_text", "text": "A"}]}),
        "Supported values are: 'output_text', 'refusal'",
    ),
    (
        "responses",
        "reasoning that is made up",
        lambda b: b["input"].insert(1, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}),
        "could not be verified",
    ),
    (
        "responses",
        "reasoning at the end",
        lambda b: b["input"].append({"type": "reasoning", "id": "rs_1", "summary": []}),
        "without its required following item",
    ),
    ("responses", "a response of somebody else", lambda b: b.update(previous_response_id="resp_0"), "not found"),
    # generateContent.
    ("gemini", "an unknown field", lambda b: b.update(messages=[]), 'Unknown name "messages"'),
    ("gemini", "an unknown setting", lambda b: b.update(generationConfig={"max": 1}), "at 'generation_config'"),
    ("gemini", "no contents", lambda b: b.update(contents=[]), "contents is not specified"),
    ("gemini", "another role", lambda b: b["contents"][1].update(role="assistant"), "valid role: user, model"),
    ("gemini", "no parts", lambda b: b["contents"][0].update(parts=[]), "contents.parts must not be empty"),
    ("gemini", "an empty text", lambda b: b["contents"][0]["parts"][0].update(text=""), "one initialized field"),
    (
        "gemini",
        "an unknown field of a part",
        lambda b: b["contents"][0]["parts"][0].update(type="text"),
        "Unknown name",
    ),
    ("gemini", "the model calls first", lambda b: b["contents"].pop(0), "function call turn comes immediately after a"),
    ("gemini", "no result", lambda b: b["contents"].pop(), "ends with a user role or a function response"),
    (
        "gemini",
        "a text for a result",
        lambda b: b["contents"][2].update(parts=[{"text": "Here:"}]),
        "number of function response parts is equal",
    ),
    ("gemini", "a result without its call", lambda b: b["contents"].pop(1), "function response turn comes immediately"),
    (
        "gemini",
        "two results of one call",
        lambda b: b["contents"][2]["parts"].append(b["contents"][2]["parts"][0]),
        "number of function response parts is equal",
    ),
    (
        "gemini",
        "a result of another function",
        lambda b: b["contents"][2]["parts"][0]["functionResponse"].update(name="sh"),
        "No function response matches",
    ),
    (
        "gemini",
        "a long name",
        lambda b: b["contents"][1]["parts"][0]["functionCall"].update(name="a" * 65),
        "Invalid function name",
    ),
    (
        "gemini",
        "an odd name of a tool",
        lambda b: b["tools"][0]["functionDeclarations"][0].update(name="a b"),
        "Invalid function name",
    ),
    (
        "gemini",
        "a signature that is made up",
        lambda b: b["contents"][1]["parts"][0].update(thoughtSignature="YWJj"),
        "Corrupted thought signature",
    ),
]


@pytest.mark.parametrize(("api", "name", "change", "words"), RULES, ids=[f"{api}: {name}" for api, name, *_ in RULES])
def test_a_request_that_breaks_a_rule_is_refused(
    api: str, name: str, change: Change, words: str, server: ProviderServer
) -> None:
    body = right(api)
    change(body)
    status, _, answer = send(server, api, body)
    said = words_of(answer)
    assert words in said
    # What is not stored is not found; all else is a request that is wrong.
    assert status == 400
    error = json.loads(answer)["error"]
    kind = error["status"] if api == "gemini" else error["type"]
    assert kind == ("INVALID_ARGUMENT" if api == "gemini" else "invalid_request_error")


def test_anthropic_takes_instructions_in_the_conversation(server: ProviderServer) -> None:
    body = right("messages")
    body["messages"] += [{"role": "system", "content": "Be brief.", "clear_at": "never"}]
    assert send(server, "messages", body)[0] == 200
    server.settle()
    assert server.exchanges[-1].asked.system == "You are a programmer.\nBe brief."


def test_gemini_3_wants_the_signatures_of_the_calls_of_the_turn_back(server: ProviderServer) -> None:
    body, path = right("gemini"), path_for("gemini", model="gemini-3-pro-preview")
    status, _, answer = send(server, "gemini", body, path=path)
    assert (status, "is missing a thought_signature" in words_of(answer)) == (400, True)
    marked = right("gemini")
    marked["contents"][1]["parts"][0]["thoughtSignature"] = "skip_thought_signature_validator"
    assert send(server, "gemini", marked, path=path)[0] == 200
    # Once the user has spoken again, it is another turn.
    body["contents"] += [{"role": "model", "parts": [{"text": "A."}]}, {"role": "user", "parts": [{"text": "B."}]}]
    assert send(server, "gemini", body, path=path)[0] == 200


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("key", [None, "sk-of-somebody-else"])
def test_another_key_is_refused(api: str, key: str | None, server: ProviderServer) -> None:
    status, _, answer = send(server, api, right(api), headers=headers_for(api, key))
    if api == "gemini":
        assert status == (400 if key else 403)
        assert key is None or json.loads(answer)["error"]["details"][0]["reason"] == "API_KEY_INVALID"
    else:
        assert status == 401
        error = json.loads(answer)["error"]
        assert error["type"] == "authentication_error" if api == "messages" else error["code"] == "invalid_api_key"


def test_anthropic_wants_the_version_of_its_api(server: ProviderServer) -> None:
    headers = headers_for("messages")
    del headers["anthropic-version"]
    status, _, answer = send(server, "messages", right("messages"), headers=headers)
    assert (status, words_of(answer)) == (400, "anthropic-version: header is required")


@pytest.mark.parametrize("api", APIS)
def test_a_body_that_is_no_json_is_refused(api: str, server: ProviderServer) -> None:
    status, _, answer = send(server, api, b'{"model": ')
    assert (status, "parse" in words_of(answer)) == (400, True)


@pytest.mark.parametrize("api", APIS)
def test_a_request_that_does_not_fit_and_a_model_that_there_is_not_are_refused(api: str) -> None:
    names = ("claude-opus-4-8", "gpt-5", "gemini-2.5-pro")
    with ProviderServer([], models=names, context_tokens=10) as small:
        status, _, answer = send(small, api, right(api))
        assert status == 400
        said = {"messages": "too long", "chat": "maximum context", "responses": "maximum context", "gemini": "exceeds"}
        assert said[api] in words_of(answer)
        path = path_for(api, model="gemini-9") if api == "gemini" else ""
        assert send(small, api, right(api) | ({} if path else {"model": "gpt-9"}), path=path)[0] == 404


@pytest.mark.slow("it imports all three SDKs")
def test_the_fields_that_are_known_are_those_of_the_sdks() -> None:
    from anthropic.types.beta.message_create_params import MessageCreateParamsBase
    from google.genai import types
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    # Headers, and how it is streamed.
    elsewhere = {"betas", "user_profile_id", "workspace_id"}
    assert set(MessageCreateParamsBase.__annotations__) - elsewhere <= messages_api.FIELDS
    assert set(CompletionCreateParamsBase.__annotations__) <= CHAT_FIELDS
    assert set(ResponseCreateParamsBase.__annotations__) <= RESPONSES_FIELDS
    parts = {field.alias or name for name, field in types.Part.model_fields.items()}
    assert parts >= gemini_api.PART_FIELDS
