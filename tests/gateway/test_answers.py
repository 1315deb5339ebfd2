"""Answers reach the program as the provider gave them, and what they used is what the provider bills."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest

from pytest_evocode.gateway import Gateway, Route
from pytest_evocode.gateway.replies import reply_of, request_facts
from tests.gateway.conftest import FAMILIES, Program, each_api, route_to, whole_and_streamed
from tests.model_scripts import Asked, Run, Say, Think
from tests.providers.exchanges import Step, Usage
from tests.providers.requests_by_hand import right, send, streamed
from tests.providers.server import KEY, ProviderServer

Start = Callable[..., Program]


def look(asked: Asked) -> Step:
    return [Think("What is there?"), Say("I will look at the log, and at all that is beside it."), Run("cat log.txt")]


@whole_and_streamed
@each_api
def test_what_is_used_is_what_the_provider_bills(api: str, stream: bool, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, api))
        for _ in range(3):
            assert asker.ask(api, stream=stream)[0] == 200
        exchanges = asker.end()
        billed = server.billed()
    usage = asker.session.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.requests) == (
        *(billed.prompt, billed.output, billed.cached),
        3,
    )
    assert usage.cost_usd == pytest.approx(billed.cost(1.0, 0.1, 1.25, 5.0))
    assert usage.at_least is None
    assert asker.session.spending.spent.tokens == usage.tokens
    assert asker.session.spending.spent.turns == asker.session.replies == len(exchanges) == 3
    assert [each.notes for each in exchanges] == [(), (), ()]


@whole_and_streamed
@each_api
def test_the_answer_is_passed_on_byte_for_byte(api: str, stream: bool, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, api))
        status, headers, answer = asker.ask(api, stream=stream)
        [exchange] = asker.end()
        body, path = streamed(api, right(api)) if stream else (right(api), "")
        _, direct, expected = send(server, api, body, path=path)
    assert (status, headers["content-type"]) == (200, direct["content-type"])
    assert headers["x-request-id"] == exchange.request_id
    assert answer.decode() == exchange.response
    assert len(answer) == pytest.approx(len(expected), abs=40)  # Ids and times differ.
    assert exchange.first_byte is not None
    assert exchange.first_byte <= exchange.seconds


@whole_and_streamed
@each_api
def test_an_exchange_has_the_reply_and_the_results_of_tools(api: str, stream: bool, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, api))
        asker.ask(api, stream=stream)
        [exchange] = asker.end()
    reply = reply_of(exchange)
    assert reply is not None
    assert reply.text.startswith("I will look")
    assert [(call.name, call.arguments) for call in reply.calls] == [("bash", {"command": "cat log.txt"})]
    assert (reply.ending, reply.usage) == ("calls", exchange.usage)
    assert exchange.api is not None
    request = request_facts(exchange.api, exchange.asked())
    assert [result.text for result in request.results] == ["log.txt"]
    assert (request.opening, request.has_tools) == (frozenset({"Look."}), True)


def test_a_stream_that_was_not_asked_for_its_usage_is_counted_and_looks_as_asked_for(program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, "chat"))
        status, _, answer = asker.ask("chat", right("chat") | {"stream": True})
        asker.end()
        assert server.exchanges[0].asked.body["stream_options"] == {"include_usage": True}
        billed = server.billed()
    assert status == 200
    chunks = [json.loads(line[6:]) for line in answer.decode().splitlines() if line.startswith("data: {")]
    assert chunks
    assert all(chunk["choices"] for chunk in chunks)
    assert answer.endswith(b"data: [DONE]\n\n")
    assert asker.session.usage is not None
    assert asker.session.usage.tokens == billed.prompt + billed.output


@each_api
def test_the_provider_gets_its_key_and_the_program_has_only_a_token(api: str, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, api))
        asker.ask(api)
        headers = server.exchanges[0].asked.headers
        [exchange] = asker.end()
    assert KEY in "".join(headers.values())
    assert asker.session.token not in "".join(headers.values())
    assert KEY not in json.dumps(exchange.as_json())
    assert headers["host"] == f"127.0.0.1:{server.port}"


def test_a_token_may_be_in_the_address_as_google_has_it(program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, "gemini"))
        path = f"/google/v1beta/models/gemini-2.5-pro:generateContent?key={asker.session.token}"
        status, _, _ = asker.send("POST", path, right("gemini"), {"Content-Type": "application/json"})
        asked = server.exchanges[0].asked
        assert asker.session.token not in asked.path + "".join(asked.headers.values())
    assert status == 200


def test_what_models_there_are_and_what_a_request_has_is_passed_on_and_costs_nothing(program: Start) -> None:
    model = right("messages")["model"]
    with ProviderServer(look, models=[model]) as server:
        asker = program(route_to(server, "messages"))
        headers = asker.headers("messages")
        status, _, models = asker.send("GET", "/anthropic/v1/models", None, headers)
        assert (status, json.loads(models)["data"][0]["id"]) == (200, model)
        body = {name: value for name, value in right("messages").items() if name != "max_tokens"}
        status, _, counted = asker.ask("messages", body, path="/v1/messages/count_tokens")
        assert (status, json.loads(counted)["input_tokens"] > 100) == (200, True)
        assert asker.send("GET", "/elsewhere", None, headers)[0] == 404
    assert [each.api for each in asker.end()] == [None] * 2
    assert (asker.session.usage, asker.session.fault, asker.session.replies) == (None, "", 0)


@pytest.mark.parametrize(
    ("api", "method", "path"),
    [
        ("messages", "GET", "/v1/nothing"),
        ("messages", "POST", "/v1/messages/batches"),
        ("messages", "GET", "/v1/models/../files"),
        ("chat", "GET", "/v1/files"),
        ("chat", "DELETE", "/v1/models/gpt-5"),
        ("chat", "POST", "/v1/images/generations"),
        ("responses", "GET", "/v1/responses/resp_1"),
        ("gemini", "POST", "/v1beta/models/gemini-2.5-pro:batchGenerateContent"),
        ("gemini", "GET", "/v1beta/files"),
    ],
)
def test_what_else_an_account_has_is_none_of_the_agents(program: Start, api: str, method: str, path: str) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, api))
        status, _, said = asker.send(method, f"/{FAMILIES[api]}{path}", {}, asker.headers(api))
        assert (status, f"the gateway passes no {method}" in said.decode()) == (404, True)
        assert not server.exchanges


def test_programs_reach_the_gateway_by_a_socket_that_is_private(gateway: Gateway, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, "chat"))
        body = json.dumps(right("chat")).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(gateway.socket))
            head = f"POST /openai/v1/chat/completions HTTP/1.1\r\nHost: model\r\nContent-Length: {len(body)}\r\n"
            connection.sendall(f"{head}Authorization: Bearer {asker.session.token}\r\n\r\n".encode() + body)
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
    assert gateway.socket.parent.stat().st_mode & 0o777 == 0o700


def test_the_addresses_of_programs_are_in_the_form_of_their_sdks(program: Start) -> None:
    session = program().session
    assert [session.base_url(family, "http://gate:80") for family in dict.fromkeys(FAMILIES.values())] == [
        "http://gate:80/anthropic",
        "http://gate:80/openai/v1",
        "http://gate:80/google",
    ]


def test_tokens_that_a_server_counted_are_counted_whatever_their_answers_are_in(program: Start) -> None:
    tokens = Usage(uncached=3_000, cached=6_000, written=0, output=500, reasoning=100)
    with ProviderServer([[Say("Done."), tokens]]) as server:
        asker = program(route_to(server, "responses"))
        asker.ask("responses", stream=True)
        asker.end()
    usage = asker.session.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.cached_tokens, usage.reasoning_tokens) == (9_000, 6_000, 100)


def test_no_path_leads_the_key_to_another_host(program: Start) -> None:
    with ProviderServer(look) as server, ProviderServer(look) as other:
        route = Route(family="openai", base_url=server.url, key=KEY)
        asker = program(route)
        for path in (f"/openai/v1@127.0.0.1:{other.port}/v1/models", f"/openai/@127.0.0.1:{other.port}/v1/models"):
            assert asker.send("GET", path, None, asker.headers("chat"))[0] == 404
        assert asker.send("GET", f"/openai//127.0.0.1:{other.port}/v1/models", None, asker.headers("chat"))[0] == 404
        assert not server.exchanges
        assert not other.exchanges
