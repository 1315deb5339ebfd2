"""Token ids that the gateway asks a server for, whether the program wants them or not."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from pytest_evocode.errors import ModelFault
from pytest_evocode.gateway import Exchange, Route
from pytest_evocode.gateway.events import all_data
from pytest_evocode.gateway.replies import journal_entry, reply_of, tokens_in
from pytest_evocode.llm.token_ids import TokenServer as Kind
from tests.gateway.conftest import PRICES, Program, whole_and_streamed
from tests.model_scripts import Asked, Run, Say, Step
from tests.token_server import TokenServer

Start = Callable[..., Program]
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {}}}}}
ASKED = {"model": "mine", "messages": [{"role": "user", "content": "Look."}], "tools": [BASH]}
FIELDS = ("prompt_token_ids", "token_ids", "meta_info", "output_token_logprobs", '"logprob"')
each_kind = pytest.mark.parametrize("kind", ["vllm", "sglang"])


def look(asked: Asked) -> Step:
    return [Say("I will look at the log."), Run("cat log.txt")]


def to(server: TokenServer, kind: Kind) -> Route:
    return Route(family="openai", base_url=f"{server.url}/v1", key="any", prices=lambda _: PRICES, token_ids=kind)


def said_in(body: bytes, *, stream: bool) -> tuple[str, str, list[str]]:
    """What a program reads in an answer: the words, the arguments of the call, and why it ended."""
    answers: list[dict[str, Any]] = [json.loads(body)] if not stream else []
    if stream:
        *events, done = all_data(body)
        assert done == "[DONE]"
        answers += map(json.loads, events)
    choices = [choice for answer in answers for choice in answer["choices"]]
    messages = [choice["delta" if stream else "message"] for choice in choices]
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    assert not stream or {call["index"] for call in calls} == {0}
    words = "".join(message.get("content") or "" for message in messages)
    arguments = "".join(call["function"]["arguments"] for call in calls)
    return words, arguments, [reason for choice in choices if (reason := choice["finish_reason"])]


@whole_and_streamed
@each_kind
def test_the_gateway_records_tokens_that_the_program_neither_asks_for_nor_sees(
    kind: Kind, stream: bool, program: Start
) -> None:
    with TokenServer(look, kind) as server:
        asker = program(to(server, kind))
        status, headers, body = asker.ask("chat", ASKED | ({"stream": True} if stream else {}))
        [exchange] = asker.end()
        [written] = server.log
    assert status == 200
    assert headers.get_content_type() == ("text/event-stream" if stream else "application/json")
    assert not any(name.encode() in body for name in FIELDS)
    assert said_in(body, stream=stream) == (
        "I will look at the log.",
        '{"command": "cat log.txt"}',
        ["tool_calls"],
    )
    assert (b'"usage": {' in body) is not stream  # Nobody has asked the stream for it.
    assert "token" not in json.dumps(exchange.asked())
    told = tokens_in(exchange)
    assert list(told.prompt_token_ids) == written.prompt
    assert list(told.completion_token_ids) == written.completion
    assert list(told.logprobs) == written.logprobs
    reply = reply_of(exchange)
    assert reply is not None
    assert reply.tokens == told
    assert exchange.usage is not None
    assert exchange.usage.completion_tokens == len(written.completion)


@whole_and_streamed
@each_kind
def test_a_program_gets_the_log_probabilities_and_counts_that_it_asks_for(
    kind: Kind, stream: bool, program: Start
) -> None:
    more = {"logprobs": True, **({"stream_options": {"include_usage": True}} if stream else {})}
    with TokenServer(look, kind) as server:
        _, _, body = program(to(server, kind)).ask("chat", ASKED | more, stream=stream)
        [written] = server.log
    assert b"token_ids" not in body
    answers = [json.loads(data) for data in all_data(body) if data != "[DONE]"] if stream else [json.loads(body)]
    choices = [choice for answer in answers for choice in answer["choices"]]
    told = [one["logprob"] for each in choices for one in (each.get("logprobs") or {}).get("content", ())]
    assert told == written.logprobs
    assert answers[-1]["usage"]["completion_tokens"] == len(written.completion)


@whole_and_streamed
@each_kind
def test_a_later_session_is_answered_alike_and_has_the_same_tokens(kind: Kind, stream: bool, program: Start) -> None:
    with TokenServer(look, kind) as server:
        first = program(to(server, kind))
        _, _, before = first.ask("chat", ASKED, stream=stream)
        kept = [Exchange.from_json(json.loads(json.dumps(journal_entry(each)))) for each in first.end()]
        later = program(to(server, kind), earlier=kept)
        _, headers, again = later.ask("chat", ASKED, stream=stream)
        [exchange] = later.end()
        assert len(server.log) == 1
        assert list(tokens_in(exchange).completion_token_ids) == server.log[0].completion
    assert headers.get_content_type() == ("text/event-stream" if stream else "application/json")
    assert (again, exchange.replayed) == (before, True)


@whole_and_streamed
def test_a_server_that_says_no_tokens_ends_the_turn_and_is_told_what_to_do(stream: bool, program: Start) -> None:
    with TokenServer(look, None) as server:
        asker = program(to(server, "vllm"))
        assert asker.ask("chat", ASKED, stream=stream)[0] == 200
        [exchange] = asker.end()
    assert exchange.usage is not None  # It is paid for all the same.
    with pytest.raises(ModelFault, match=r"the server said no token ids; token_ids=vllm asks .*Set token_ids=sglang"):
        asker.session.raise_for_turn()


@whole_and_streamed
def test_a_server_that_says_a_part_of_a_replys_tokens_is_no_better(stream: bool, program: Start) -> None:
    with TokenServer(look, "vllm", hides=3) as server:
        asker = program(to(server, "vllm"))
        asker.ask("chat", ASKED, stream=stream)
        asker.end()
        tokens = len(server.log[0].completion)
    with pytest.raises(ModelFault, match=rf"the server said the ids of {tokens - 3} of a reply's {tokens} tokens"):
        asker.session.raise_for_turn()


def test_a_server_that_refuses_to_say_tokens_is_told_in_its_words(program: Start) -> None:
    with TokenServer(look, None, strict=True) as server:
        asker = program(to(server, "sglang"))
        assert asker.ask("chat", ASKED)[0] == 400
        asker.end()
    with pytest.raises(
        ModelFault, match=r"refuses .*Unrecognized request argument supplied: return_.*leave the option"
    ):
        asker.session.raise_for_turn()


def test_what_has_no_tokens_is_not_asked(program: Start) -> None:
    with TokenServer(look, "vllm") as server:
        asker = program(to(server, "vllm"))
        assert asker.ask("responses")[0] == 404
        asker.end()
        assert not server.asked
    with pytest.raises(ModelFault, match=r"/v1/responses gives no token ids.*ask Chat Completions"):
        asker.session.raise_for_turn()


class Held(list[Any]):
    """Events of which the last come when a gate opens."""

    def __init__(self, events: Iterable[Any], gate: threading.Event) -> None:
        super().__init__(events)
        self._gate = gate

    def __iter__(self) -> Iterator[Any]:
        first, *rest = super().__iter__()
        yield first
        yield rest[0]
        assert self._gate.wait(30)
        yield from rest[1:]


class HeldServer(TokenServer):
    """Streams two events, and the others when ``gate`` is set."""

    gate = threading.Event()

    def events_of(self, asked: Asked, reply: dict[str, Any]) -> list[tuple[str, Any]]:
        return Held(super().events_of(asked, reply), self.gate)


def test_a_stream_is_passed_on_while_it_comes(program: Start) -> None:
    with HeldServer(look, "vllm") as server:
        asker = program(to(server, "vllm"))
        connection = http.client.HTTPConnection("127.0.0.1", asker.gateway.port, timeout=30)
        body = json.dumps(ASKED | {"stream": True})
        connection.request("POST", "/openai/v1/chat/completions", body, asker.headers("chat"))
        answer = connection.getresponse()
        begun = answer.read1()
        while b'"I w"' not in begun:  # The words that come before the gate.
            begun += answer.read1()
        assert b"[DONE]" not in begun
        server.gate.set()
        whole = begun + answer.read()
        connection.close()
        [exchange] = asker.end()
        assert list(tokens_in(exchange).completion_token_ids) == server.log[0].completion
    assert said_in(whole, stream=True)[0] == "I will look at the log."
    assert not any(name.encode() in whole for name in FIELDS)
