"""Names and ids of calls that models write and their providers refuse to see again, in what programs send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.conftest import Program, each_api, route_to, whole_and_streamed
from tests.model_scripts import Asked, Say
from tests.providers.exchanges import Step
from tests.providers.faults import Refuse
from tests.providers.requests_by_hand import right
from tests.providers.server import ProviderServer

Start = Callable[..., Program]
#: The ids of the calls of requests that are right; Gemini's have none.
IDS = {"messages": "toolu_1", "chat": "call_1", "responses": "call_1"}
ODD, LONG = "functions/bash:0", "bash" * 50


def done(asked: Asked) -> Step:
    return [Say("Done.")]


def called(api: str, odd: str, *, in_place_of: str = "bash") -> Any:
    """A request that is right but for the name of its call, or its id."""
    body = right(api)
    tools = body.pop("tools")
    return json.loads(json.dumps(body).replace(json.dumps(in_place_of), json.dumps(odd))) | {"tools": tools}


def statuses(server: ProviderServer) -> list[int | None]:
    return [each.status for each in server.exchanges]


@whole_and_streamed
@pytest.mark.parametrize("name", [ODD, LONG, ""], ids=["odd", "long", "empty"])
@pytest.mark.matrix("name")
@each_api
def test_a_name_that_is_refused_is_mended(api: str, name: str, stream: bool, program: Start) -> None:
    with ProviderServer(done) as server:
        asker = program(route_to(server, api))
        status, _, answer = asker.ask(api, called(api, name), stream=stream)
        [exchange] = asker.end()
        assert statuses(server) == [400, 200]
    assert (status, answer.decode(), asker.session.fault) == (200, exchange.response, "")
    assert len(exchange.tries) == 1
    [note] = exchange.notes
    assert f"name {name!r} of a call" in note


@whole_and_streamed
@pytest.mark.parametrize("id", [ODD, LONG, ""], ids=["odd", "long", "empty"])
@pytest.mark.matrix("id")
@pytest.mark.parametrize("api", IDS)
def test_an_id_that_is_refused_is_mended_in_the_call_and_its_result(
    api: str, id: str, stream: bool, program: Start
) -> None:
    # Anthropic's API has no longest id, and OpenAI's take whatever is not too long.
    is_right = (api, id) in {("messages", LONG), ("chat", ODD), ("responses", ODD)}
    with ProviderServer(done) as server:
        asker = program(route_to(server, api))
        status, _, _ = asker.ask(api, called(api, id, in_place_of=IDS[api]), stream=stream)
        [exchange] = asker.end()
        assert statuses(server) == ([200] if is_right else [400, 200])
    assert status == 200
    assert len(exchange.notes) == (not is_right)


def test_what_is_odd_is_passed_as_it_is_where_nothing_is_refused(program: Start) -> None:
    body = called("chat", ODD, in_place_of="call_1")  # Whose ids may be anything that is not too long.
    with ProviderServer(done) as server:
        asker = program(route_to(server, "chat"))
        assert asker.ask("chat", body)[0] == 200
        [exchange] = asker.end()
        assert [each.asked.body for each in server.exchanges] == [body]
    assert exchange.notes == ()


@each_api
def test_later_requests_of_the_session_are_mended_at_once(api: str, program: Start) -> None:
    body = called(api, ODD)
    with ProviderServer(done) as server:
        asker = program(route_to(server, api))
        assert [asker.ask(api, body)[0] for _ in range(3)] == [200] * 3
        exchanges = asker.end()
        assert statuses(server) == [400, 200, 200, 200]
        other = program(route_to(server, api))
        assert other.ask(api, body)[0] == 200
        assert statuses(server)[4:] == [400, 200]
    assert [len(each.tries) for each in exchanges] == [1, 0, 0]
    # A record has what the program sent.
    assert [json.loads(each.request) for each in exchanges] == [body] * 3
    assert all(each.notes == exchanges[0].notes for each in exchanges)


@each_api
def test_a_request_is_mended_once(api: str, program: Start) -> None:
    with ProviderServer(done, faults=lambda exchange: Refuse("invalid")) as server:
        asker = program(route_to(server, api))
        body = called(api, ODD)
        assert [asker.ask(api, body)[0] for _ in range(2)] == [400, 400]
        asker.end()
        # What did not help is not done before it is refused again.
        sent = [ODD in json.dumps(each.asked.body) for each in server.exchanges]
    assert sent == [True, False] * 2
    assert asker.session.fault == ""


def test_several_calls_without_ids_get_one_each(program: Start) -> None:
    body = called("messages", "", in_place_of="toolu_1")
    body["messages"] += [*body["messages"][1:]]
    with ProviderServer(done) as server:
        asker = program(route_to(server, "messages"))
        assert asker.ask("messages", body)[0] == 200
        _, (_, call), (result,), (_, next_call), (next_result,) = (
            each["content"] for each in server.exchanges[-1].asked.body["messages"]
        )
        asker.end()
    assert call["id"] == result["tool_use_id"] != next_call["id"] == next_result["tool_use_id"]
    assert call["id"]


def test_what_is_no_conversation_is_refused_in_the_providers_words(program: Start) -> None:
    body = right("chat") | {"messages": [{"role": "assistant", "content": "", "tool_calls": ["nonsense"]}]}
    with ProviderServer(done, faults=lambda exchange: Refuse("invalid")) as server:
        asker = program(route_to(server, "chat"))
        assert asker.ask("chat", body)[0] == 400
        asker.end()
        assert len(server.exchanges) == 2
