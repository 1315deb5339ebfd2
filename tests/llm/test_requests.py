"""What options and conversations become in the requests of each API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message
from tests.llm.conftest import ASK, BASH, MODELS, SECONDS, client_for, each_api
from tests.model_scripts import Asked, Fail, Run, Say, Step
from tests.model_server import ModelServer

CACHED = {"type": "ephemeral"}


def sent(api: str, model: str | None = None, **options: Any) -> Asked:
    """The request that a client with these options makes."""
    with ModelServer([Say("Done.")]) as server:
        client_for(api, server, model, **options).complete(ASK, [BASH], timeout=SECONDS)
    return server.asked[0]


@each_api
def test_what_no_option_says_is_left_to_the_provider(api: str) -> None:
    names = {"temperature", "effort", "reasoning_effort", "thinking", "output_config", "max_completion_tokens"}
    assert not names & set(sent(api).body)


@each_api
def test_a_temperature_is_passed_through(api: str) -> None:
    assert sent(api, temperature=0.3).body["temperature"] == 0.3


def test_effort_has_each_apis_own_place() -> None:
    assert sent("chat", effort="high").body["reasoning_effort"] == "high"
    assert sent("responses", effort="high").body["reasoning"]["effort"] == "high"
    assert sent("messages", effort="high").body["output_config"] == {"effort": "high"}


def test_the_limit_of_a_reply_has_each_apis_own_name() -> None:
    assert sent("chat", max_tokens=77).body["max_tokens"] == 77
    assert sent("responses", max_tokens=77).body["max_output_tokens"] == 77
    assert sent("messages", max_tokens=77).body["max_tokens"] == 77


def test_a_server_that_wants_the_new_name_of_the_limit_is_asked_by_it_from_then_on() -> None:
    refused = Fail(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens")
    with ModelServer([refused, Say("One."), Say("Two.")]) as server:
        client = client_for("chat", server, max_tokens=77)
        assert client.complete(ASK, [BASH], timeout=SECONDS).text == "One."
        client.complete(ASK, [BASH], timeout=SECONDS)
    limits = [asked.body.get("max_completion_tokens") for asked in server.asked]
    assert limits == [None, 77, 77]
    assert "max_tokens" not in server.asked[2].body


def test_responses_are_not_stored_and_bring_their_reasoning_along() -> None:
    body = sent("responses").body
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"summary": "auto"}
    assert body["tools"][0]["strict"] is False


@pytest.mark.parametrize(
    ("fault", "left_out"),
    [
        (Fail(400, "Encrypted content is not supported with this model.", param="include"), "include"),
        (Fail(400, "Your organization must be verified to generate reasoning summaries."), "reasoning"),
        (Fail(400, "Unsupported parameter: 'reasoning.summary'", param="reasoning.summary"), "reasoning"),
    ],
)
def test_what_nobody_asked_for_is_left_out_where_the_provider_refuses_it(fault: Fail, left_out: str) -> None:
    with ModelServer([fault, Say("One."), Say("Two.")]) as server:
        client = client_for("responses", server)
        assert client.complete(ASK, [BASH], timeout=SECONDS).text == "One."
        client.complete(ASK, [BASH], timeout=SECONDS)
    assert [left_out in asked.body for asked in server.asked] == [True, False, False]


def test_effort_that_was_asked_for_stays_when_summaries_are_refused() -> None:
    with ModelServer([Fail(400, "No.", param="reasoning.summary"), Say("Done.")]) as server:
        client_for("responses", server, effort="low").complete(ASK, [BASH], timeout=SECONDS)
    assert server.asked[1].body["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize(
    ("thinking", "wanted"),
    [
        (2000, {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}),
        ("2000", {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}),
        ("adaptive", {"type": "adaptive", "display": "summarized"}),
        (0, {"type": "disabled"}),
    ],
)
def test_thinking_is_a_budget_or_the_models_own_choice_or_off(thinking: Any, wanted: dict[str, Any]) -> None:
    assert sent("messages", thinking=thinking).body["thinking"] == wanted


def test_a_budget_of_thinking_comes_on_top_of_the_reply_and_is_for_between_calls_too() -> None:
    asked = sent("messages", thinking=2000)
    assert asked.body["max_tokens"] == sent("messages").body["max_tokens"] + 2000
    assert asked.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    assert "anthropic-beta" not in sent("messages", thinking="adaptive").headers


def test_the_limit_of_a_reply_is_never_more_than_the_model_has() -> None:
    assert sent("messages", "claude-3-5-haiku-20241022").body["max_tokens"] == 8192
    assert sent("messages", "some-model").body["max_tokens"] == 8192
    assert sent("messages", "claude-sonnet-4-5").body["max_tokens"] == 32_000


def test_a_limit_that_the_sdk_would_want_streamed_is_sent() -> None:
    assert sent("messages", max_tokens=128_000).body["max_tokens"] == 128_000


def test_system_and_tools_are_marked_to_be_cached_and_so_are_the_last_two_ends_of_the_conversation() -> None:
    def model(asked: Asked) -> Step:
        return Run(f"step {asked.replies}") if asked.replies < 4 else Say("Done.")

    with ModelServer(model) as server:
        client, conversation = client_for("messages", server), list(ASK)
        while (reply := client.complete(conversation, [BASH, BASH], timeout=SECONDS)).calls:
            conversation += [reply.message, Message("tool", "ok", call_id=reply.calls[0].id)]
    body = server.asked[-1].body
    assert body["system"][-1]["cache_control"] == CACHED
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, CACHED]
    users = [message["content"][-1].get("cache_control") for message in body["messages"] if message["role"] == "user"]
    assert users == [None, None, None, CACHED, CACHED]
    # What a request marks last is marked by the next one, too, or the cache would not be found.
    assert json.dumps(server.asked[-2].body).count("cache_control") == 4


def test_what_follows_on_the_users_side_is_one_message_with_the_results_first() -> None:
    with ModelServer([[Run("a"), Run("b")], Say("Done.")]) as server:
        client = client_for("messages", server)
        reply = client.complete(ASK, [BASH], timeout=SECONDS)
        results = [Message("tool", "ok", call_id=call.id) for call in reply.calls]
        client.complete([*ASK, reply.message, *results, Message("user", "Next.")], [BASH], timeout=SECONDS)
    kinds = [block["type"] for block in server.asked[1].body["messages"][-1]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]


def test_sampling_and_tier_are_passed_through() -> None:
    options: dict[str, Any] = {"top_p": 0.9, "service_tier": "flex"}
    for api in MODELS:
        body = sent(api, **options).body
        assert (body["top_p"], body["service_tier"]) == (0.9, "flex")
    assert sent("chat", seed=7).body["seed"] == 7


@each_api
def test_fields_and_headers_of_ones_own_are_sent_with_every_request(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "a-secret-of-the-tests")
    headers = '{"X-Title": "one", "X-Gateway-Token": "Bearer ${GATEWAY_TOKEN}"}'
    asked = sent(api, extra_body='{"top_k": 20, "temperature": 0.7}', extra_headers=headers, temperature=0.1)
    assert (asked.body["top_k"], asked.body["temperature"]) == (20, 0.7)
    assert (asked.headers["x-title"], asked.headers["x-gateway-token"]) == ("one", "Bearer a-secret-of-the-tests")


def test_beta_features_of_ones_own_come_beside_ours() -> None:
    asked = sent("messages", thinking=2000, extra_headers={"Anthropic-Beta": "context-1m"})
    assert asked.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14,context-1m"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"extra_body": "{top_k"}, "it is not valid JSON"),
        ({"extra_body": "[1]"}, "valid dictionary"),
        ({"extra_body": {"model": "other"}}, "'model' is set by the agent itself"),
        ({"extra_headers": {"X-Api-Key": "abc"}}, r"X-Api-Key holds a secret, .* write \$\{X_API_KEY\}"),
        ({"extra_headers": {"X-Api-Key": "${MINE}"}}, "call it MINE_API_KEY"),
        ({"top_p": 2}, "less than or equal to 1"),
    ],
)
def test_what_cannot_be_sent_is_refused(option: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ModelOptions.model_validate(option)


def test_a_variable_of_a_header_that_is_not_set_is_told_before_anything_starts() -> None:
    options = ModelOptions(base_url="http://localhost:1/v1", extra_headers={"X-Run": "${NOT_SET_HERE}"})
    with pytest.raises(UsageError, match=r"extra_headers: \$\{NOT_SET_HERE\} is not set"):
        make_client("openai", "m", options).check()
