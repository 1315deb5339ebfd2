"""Streamed replies: they are the same as in one piece, and what becomes of those that break off or fall silent."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_evocode.errors import ModelFault
from pytest_evocode.llm.base_client import BaseClient
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import ModelClient, Reply
from pytest_evocode.llm.streams import StreamedCompletion
from pytest_evocode.llm.waiting import Waiting, counted_in
from tests.llm.conftest import ASK, BASH, SECONDS, client_for
from tests.model_scripts import Answer, BreakOff, Delay, Fail, Run, Say, Step, Think, Tokens, Trickle
from tests.model_server import ModelServer

APIS = ("chat", "responses", "messages", "gemini")
each_of_all_apis = pytest.mark.parametrize("api", APIS)
WHOLE: Step = [Think("First I look."), Say("I look."), Run("ls"), Run("pwd")]


def client_of(api: str, server: ModelServer, **options: Any) -> ModelClient:
    if api != "gemini":
        return client_for(api, server, **options)
    return make_client("google", "gemini-2.5-pro", ModelOptions.model_validate({"base_url": server.url} | options))


def asked(client: ModelClient, timeout: float | None = SECONDS) -> Reply:
    return client.complete(ASK, [BASH], timeout=timeout)


def events(*data: Any, kind: str = "text/event-stream") -> Answer:
    return Answer("".join(f"data: {json.dumps(each)}\n\n" for each in data), content_type=kind)


@each_of_all_apis
def test_a_reply_is_the_same_as_in_one_piece(api: str) -> None:
    replies = []
    for streams in (True, False):
        with ModelServer([WHOLE], streams=streams) as server:
            if api == "gemini" and not streams:
                continue  # It has an address of its own for streams.
            reply = asked(client_of(api, server))
        assert server.asked[0].body.get("stream") or server.asked[0].path.endswith(":streamGenerateContent")
        without_ids = re.sub(r"_\d+|call_[0-9a-f]{32}", "_N", json.dumps([reply.native, reply.usage.model_dump()]))
        replies.append((json.loads(without_ids), reply.text, reply.reasoning, reply.ending, reply.stop_reason))
    assert all(each == replies[0] for each in replies)
    [(_, text, reasoning, ending, _), *_] = replies
    assert (text, reasoning, ending) == ("I look.", "First I look.", "calls")


def test_thoughts_and_texts_of_gemini_come_together_and_what_is_signed_stays_as_it_came() -> None:
    with ModelServer([WHOLE]) as server:
        reply = asked(client_of("gemini", server))
    parts = reply.native["message"]["parts"]
    assert parts[:2] == [{"text": "First I look.", "thought": True}, {"text": "I look."}]
    assert [part["functionCall"]["args"] for part in parts[2:]] == [{"command": "ls"}, {"command": "pwd"}]
    assert all(part["thoughtSignature"] for part in parts[2:])


@each_of_all_apis
def test_a_stream_that_breaks_off_is_asked_for_again_and_paid_for_as_far_as_it_came(
    api: str, naps: list[float]
) -> None:
    broken: Step = [*WHOLE, BreakOff(), Tokens(prompt=700, completion=90)]  # type: ignore[misc]
    with ModelServer([broken, Say("Done.")]) as server, counted_in(Waiting()) as _:
        client = client_of(api, server)
        assert asked(client).text == "Done."
        assert isinstance(client, BaseClient)
        lost = client.take_lost()
    assert lost is not None
    prompts = {"messages": 700, "gemini": 700, "chat": 0, "responses": 0}
    assert (lost.prompt_tokens, lost.requests, lost.at_least) == (prompts[api], 1, True)
    assert lost.cost_usd is not None
    assert (lost.cost_usd > 0) == (prompts[api] > 0)
    assert client.take_lost() is None
    assert len(naps) == 1


@each_of_all_apis
def test_silence_in_a_stream_is_no_work_of_the_turns(api: str, naps: list[float]) -> None:
    waiting = Waiting()
    with ModelServer([[Say("I was about to"), BreakOff(pause=1.5)], Say("Done.")]) as server, counted_in(waiting):
        client = client_of(api, server, silence_seconds=0.3)
        client.prepare()  # Its SDK takes seconds to be imported on a busy machine.
        assert asked(client).text == "Done."
    waits = waiting.waits
    assert waits is not None
    assert waits.retries == 1
    assert 0.25 <= waits.seconds["network"] < 1.4


def test_a_server_that_is_slow_to_begin_is_given_more_time_with_each_request(naps: list[float]) -> None:
    slow: Step = [Delay(0.9), Say("Done.")]
    with ModelServer([slow, slow, slow]) as server:
        assert asked(client_for("chat", server, silence_seconds=0.3)).text == "Done."
    assert len(server.asked) == 3


def test_silence_again_and_again_is_the_providers_fault(naps: list[float]) -> None:
    with ModelServer([[Delay(2), Say("Never.")]] * 2) as server:
        client = client_for("messages", server, silence_seconds=0.1, retries=1)
        with pytest.raises(ModelFault, match=r"not a byte came for 0\.2 seconds"):
            asked(client)


def test_signs_of_life_are_no_silence() -> None:
    with ModelServer([[Trickle(0.9), Say("Done.")]]) as server:
        assert asked(client_for("messages", server, silence_seconds=0.5)).text == "Done."


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_server_that_streams_nothing_is_given_the_time_of_a_whole_reply(api: str) -> None:
    with ModelServer([Say("One."), [Delay(0.9), Say("Two.")]], streams=False) as server:
        client = client_for(api, server, silence_seconds=0.5)
        assert [asked(client).text for _ in range(2)] == ["One.", "Two."]
    assert len(server.asked) == 2


@each_of_all_apis
def test_a_server_that_refuses_streams_is_asked_for_none(api: str) -> None:
    with ModelServer([Fail(400, "This model cannot stream."), Say("One."), Say("Two.")]) as server:
        client = client_of(api, server)
        assert [asked(client).text for _ in range(2)] == ["One.", "Two."]
    streams = [bool(each.body.get("stream")) or "stream" in each.path for each in server.asked]
    assert streams == [True, False, False]


def test_a_server_that_does_not_know_how_to_be_asked_for_usage_is_asked_without() -> None:
    with ModelServer([Fail(422, "Extra inputs are not permitted: stream_options"), Say("One.")]) as server:
        assert asked(client_for("chat", server)).usage.tokens == 1050
    assert ["stream_options" in each.body for each in server.asked] == [True, False]
    assert all(each.body["stream"] for each in server.asked)


def test_an_error_in_mid_stream_is_the_one_that_it_says(naps: list[float]) -> None:
    begun = {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with ModelServer([events(begun, overloaded)]) as server:
        client = client_for("messages", server, retry_seconds=0)
        with pytest.raises(ModelFault, match=r"the rate limit has not ended .*Overloaded \(status 529"):
            asked(client)
    assert isinstance(client, BaseClient)
    lost = client.take_lost()
    assert lost is not None
    assert lost.tokens == 6
    failed = {"type": "error", "code": "server_error", "message": "It broke.", "sequence_number": 0}
    with ModelServer([events(failed)]) as server, pytest.raises(ModelFault, match=r"It broke. \(status 500"):
        asked(client_for("responses", server, retries=0))
    upstream = events({"error": {"code": 502, "message": "Upstream."}})
    with ModelServer([upstream]) as server, pytest.raises(ModelFault, match=r"Upstream. \(status 502"):
        asked(client_for("chat", server, retries=0))


def test_events_in_another_form_are_asked_for_again(naps: list[float]) -> None:
    odd = [events("x"), events({"choices": ["x"]}), Answer("data: {\n\n", content_type="text/event-stream")]
    with ModelServer([*odd, Say("Done.")]) as server:
        assert asked(client_for("chat", server)).text == "Done."


def test_the_end_of_a_response_may_leave_out_what_came_before() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    usage = {"input_tokens": 5, "output_tokens": 1}
    ended = {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": usage}}
    with ModelServer([events({"type": "response.output_item.done", "output_index": 0, "item": item}, ended)]) as server:
        reply = asked(client_for("responses", server))
    assert (reply.text, reply.native["message"], reply.usage.tokens) == ("Done.", [item], 6)


def completion(*deltas: dict[str, Any]) -> Any:
    found = StreamedCompletion()
    for delta in deltas:
        found.take(json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta}]}))
    assert not found.unreadable
    return found.body["choices"][0]["message"]


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"function": {"arguments": arguments}} | more]}


def test_names_and_ids_that_a_server_repeats_are_there_once() -> None:
    named = {"index": 0, "id": "call_1", "type": "function"}
    begun = {"role": "assistant", "tool_calls": [named | {"function": {"name": "bash", "arguments": ""}}]}
    again = {"role": "assistant", "tool_calls": [named | {"function": {"name": "bash", "arguments": "{}"}}]}
    later = {"content": None, "tool_calls": [{"index": 0, "id": "", "function": {"name": None, "arguments": " "}}]}
    function = {"name": "bash", "arguments": "{} "}
    assert completion(begun, again, later) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }


@pytest.mark.parametrize("index", [{"index": 0}, {}])
def test_calls_with_the_same_index_or_none_are_told_apart_by_their_ids(index: dict[str, int]) -> None:
    deltas = [call("{", id="a", **index), call("}", **index), call("[", id="b", **index), call("]", **index)]
    found = [(each["id"], each["function"]["arguments"]) for each in completion(*deltas)["tool_calls"]]
    assert found == [("a", "{}"), ("b", "[]")]


def test_reasoning_in_parts_is_put_together_and_its_signature_kept() -> None:
    part = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    sealed = {"type": "reasoning.encrypted", "data": "xyz", "index": 1}
    pieces = [[part | {"text": "First "}], [part | {"text": "I look."}], [part | {"signature": "sig"}], [sealed]]
    message = completion(*({"reasoning_details": piece} for piece in pieces))
    assert message["reasoning_details"] == [part | {"text": "First I look.", "signature": "sig"}, sealed]


def test_tokens_come_piece_by_piece_and_those_in_another_form_are_left_out() -> None:
    answer = StreamedCompletion()
    told: list[dict[str, Any]] = [
        {"token_ids": [7], "logprobs": {"content": [{"logprob": -0.5}], "refusal": None}},
        {"token_ids": None, "logprobs": None},
        {"token_ids": "8", "logprobs": [-1.0]},
        {"token_ids": [9], "logprobs": {"content": [{"logprob": -0.25}]}, "finish_reason": "stop"},
    ]
    for each in told:
        answer.take(json.dumps({"choices": [{"index": 0, "delta": {"content": "."}, **each}]}))
    [choice] = answer.body["choices"]
    assert not answer.unreadable
    assert choice["token_ids"] == [7, 9]
    assert choice["logprobs"] == {"content": [{"logprob": -0.5}, {"logprob": -0.25}]}
    assert choice["message"]["content"] == "...."
