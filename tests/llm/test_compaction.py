"""Conversations that the provider itself makes shorter, and thoughts that newer models refuse to see again."""

from __future__ import annotations

import dataclasses
import json
import urllib.error
from typing import Any

import pytest

from pytest_evocode.errors import AgentFault, ContextOverflow, UsageError
from pytest_evocode.llm import model_probe
from pytest_evocode.llm.base_client import BaseClient
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, ModelClient, Reply
from pytest_evocode.llm.usage import counted_answer
from tests.llm.conftest import ASK, BASH, SECONDS, client_for
from tests.model_scripts import Fail, Run, Say, Step, Think, Tokens
from tests.model_server import ModelServer

SUMMARY = "The user wants it solved, and ls was run."
BOUND = "claude-opus-5-5"
each_api = pytest.mark.parametrize("api", ["messages", "responses"])


def compact(client: ModelClient, conversation: list[Message]) -> Reply:
    assert isinstance(client, BaseClient)
    return client.compact(conversation, [BASH], timeout=SECONDS)


def answered(reply: Reply, text: str = "a.py") -> list[Message]:
    """A reply and the results of its calls."""
    return [reply.message, *(Message("tool", text, call_id=call.id) for call in reply.calls)]


def saved(reply: Reply) -> Message:
    """What stands for the conversation, as it comes back after it was saved as JSON."""
    message = json.loads(json.dumps(dataclasses.asdict(reply.message)))
    return Message("assistant", message["text"], native=message["native"], is_compacted=True)


@each_api
def test_what_the_provider_made_of_a_conversation_stands_for_it(api: str) -> None:
    script: list[Step] = [[Think("Deep."), Run("ls")], [Say(SUMMARY), Tokens(900, 80)], [Run("pwd")], Say("Done.")]
    with ModelServer(script) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        made = compact(client, [*ASK, *answered(first)])
        short = [ASK[0], saved(made), Message("user", "Go on.")]
        second = client.complete(short, [BASH], timeout=SECONDS)
        client.complete([*short, *answered(second)], [BASH], timeout=SECONDS)
    asked = server.asked[1]
    assert (asked.compacts, asked.system) == (True, "You are an agent.")
    assert list(asked.results.values()) == ["a.py"]
    assert (made.usage.prompt_tokens, made.usage.completion_tokens, made.usage.requests) == (900, 80, 1)
    assert made.usage.cost_usd is not None
    for later in server.asked[2:]:
        assert (later.compacts, later.summary) == (False, SUMMARY)
        assert "Deep." not in json.dumps(later.body)


def test_a_summary_can_be_read_at_anthropic_and_not_at_openai() -> None:
    made = {}
    for api in ("messages", "responses"):
        with ModelServer([Say(SUMMARY)]) as server:
            made[api] = compact(client_for(api, server), [*ASK])
    assert (made["messages"].text, made["responses"].text) == (SUMMARY, "")
    assert SUMMARY not in json.dumps(made["responses"].native)
    assert "Solve it." in json.dumps(made["responses"].native)  # What the user said stays word for word.


@each_api
def test_a_conversation_can_be_made_shorter_again(api: str) -> None:
    with ModelServer([Say("One."), Say("Two."), Say("Done.")]) as server:
        client = client_for(api, server)
        first = saved(compact(client, [*ASK]))
        second = saved(compact(client, [ASK[0], first, Message("user", "Go on.")]))
        client.complete([ASK[0], second, Message("user", "And now?")], [BASH], timeout=SECONDS)
    assert [asked.summary for asked in server.asked] == ["", "One.", "Two."]


def test_the_beta_feature_is_named_with_others_and_for_these_requests_only() -> None:
    with ModelServer([Say("Hi."), Say(SUMMARY), Say("Done.")]) as server:
        more: dict[str, Any] = {
            "thinking": 2048,
            "extra_headers": {"anthropic-beta": "mine"},
            "extra_body": {"stop_sequences": ["x"]},
        }
        client = client_for("messages", server, **more)
        client.complete(ASK, [BASH], timeout=SECONDS)
        made = saved(compact(client, [*ASK]))
        client.complete([ASK[0], made, Message("user", "Go on.")], [BASH], timeout=SECONDS)
    betas = [asked.headers["anthropic-beta"] for asked in server.asked]
    between = "interleaved-thinking-2025-05-14"
    assert betas == [f"{between},mine", *[f"{between},compact-2026-09-04,mine"] * 2]
    # The API refuses this field beside a request for a summary.
    assert ["stop_sequences" in asked.body for asked in server.asked] == [True, False, True]


def test_a_summary_that_was_refused_stands_for_nothing_and_is_paid_for() -> None:
    with ModelServer([[Tokens(700, 3)]]) as server:
        made = compact(client_for("messages", server), [*ASK])
    assert (made.native, made.text, made.ending, made.stop_reason) == (None, "", "refused", "refusal")
    assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (700, 3)


def test_a_summary_in_the_middle_of_a_reply_is_counted_with_it() -> None:
    """What ``extra_body`` can ask for; the API does not count it in the reply's own tokens."""
    counted = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3500}
    message = {"type": "message", "input_tokens": 23_000, "output_tokens": 1000}
    told = {"input_tokens": 23_000, "output_tokens": 1000, "iterations": [counted, message]}
    usage = counted_answer("messages", told, None).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.requests) == (203_000, 4500, 1)


@each_api
def test_a_conversation_that_is_too_long_to_be_made_shorter_says_so(api: str) -> None:
    with ModelServer([], context_tokens=10) as server, pytest.raises(ContextOverflow):
        compact(client_for(api, server), [*ASK])


@pytest.mark.parametrize(
    ("provider", "options", "words"),
    [
        ("openai", {"api": "chat"}, "Chat Completions has no compaction of its own"),
        ("google", {}, "generateContent has no compaction of its own"),
        ("bedrock", {}, "Bedrock has no compaction of its own"),
    ],
)
def test_an_api_without_compaction_says_so(provider: str, options: dict[str, Any], words: str) -> None:
    client = make_client(provider, "a-model", ModelOptions(**options))
    assert isinstance(client, BaseClient)
    with pytest.raises(UsageError, match=words):
        client.check_compaction()


@pytest.mark.parametrize("has", [True, False])
def test_a_server_is_asked_whether_it_has_compaction_at_no_cost(has: bool) -> None:
    with ModelServer([], compacts=has) as server:
        client = client_for("responses", server)
        assert isinstance(client, BaseClient)
        if has:
            client.check_compaction()
        else:
            with pytest.raises(UsageError, match=f"the server at {server.url}/v1 has no /responses/compact"):
                client.check_compaction()
    assert server.asked == []


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        ({"capabilities": {"compaction": {"supported": False}}}, True),
        ({"capabilities": {"compaction": {"supported": True}}}, False),
        ({"capabilities": None}, False),
        ([], False),
        (urllib.error.URLError("no network"), False),
    ],
)
def test_anthropic_is_asked_whether_the_model_has_compaction(
    told: Any, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(address: str, provider: Any, access: Any, more: Any) -> Any:
        assert address == "https://api.anthropic.com/v1/models/claude-x"
        assert more == {"anthropic-beta": "compact-2026-09-04"}
        if isinstance(told, Exception):
            raise told
        return told

    monkeypatch.setattr(model_probe, "_get", get)
    client = make_client("anthropic", "claude-x")
    assert isinstance(client, BaseClient)
    if not refused:
        client.check_compaction()
        return
    with pytest.raises(UsageError, match="the provider says that this model has no compaction"):
        client.check_compaction()


# Thoughts that are bound to what was said before them.


def test_thoughts_before_which_something_was_left_out_are_dropped_where_the_model_refuses_them() -> None:
    script: list[Step] = [[Think("One."), Run("ls")], [Think("Two."), Run("pwd")], Say("Done."), Say("Again.")]
    with ModelServer(script) as server:
        client = client_for("messages", server, model=BOUND)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        second = client.complete([*ASK, *answered(first)], [BASH], timeout=SECONDS)
        short = [*ASK, *answered(first, "[left out]"), *answered(second)]
        third = client.complete(short, [BASH], timeout=SECONDS)
        fourth = client.complete([*short, third.message, Message("user", "?")], [BASH], timeout=SECONDS)
    assert (second.remarks, third.remarks, fourth.remarks) == ({}, {"thinking_dropped": 1}, {"thinking_dropped": 1})
    assert len(server.asked) == 5  # One was refused, and cost nothing.
    assert ["block_binding" in asked.body.get("thinking", {}) for asked in server.asked] == [False] * 3 + [True] * 2
    assert server.asked[-1].body["thinking"]["type"] == "adaptive"


def test_thoughts_that_were_made_elsewhere_are_an_error_all_the_same() -> None:
    changed = Fail(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
    with ModelServer([changed] * 2) as server, pytest.raises(AgentFault, match="Invalid `signature`"):
        client_for("messages", server, model=BOUND).complete(ASK, [BASH], timeout=SECONDS)
    assert len(server.asked) == 2  # Once more, as whatever is refused by 400.


def test_thoughts_stay_after_a_summary_of_the_provider() -> None:
    script: list[Step] = [[Think("One."), Run("ls")], [Think("Two."), Run("pwd")], Say(SUMMARY), Say("Done.")]
    with ModelServer(script) as server:
        client = client_for("messages", server, model=BOUND)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        before = [*ASK, *answered(first)]
        second = client.complete(before, [BASH], timeout=SECONDS)
        made = compact(client, before)
        reply = client.complete([ASK[0], saved(made), *answered(second)], [BASH], timeout=SECONDS)
    assert (reply.text, reply.remarks) == ("Done.", {})
    assert "Two." in json.dumps(server.asked[-1].body)
