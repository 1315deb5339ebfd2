"""Each fault of a provider, at a request through the gateway: what the program gets, and what the turn is told."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable

import pytest

from pytest_evocode.errors import ModelFault
from pytest_evocode.gateway import Route
from tests.gateway.conftest import Program, each_api, route_to, whole_and_streamed
from tests.model_scripts import Asked, Run, Say
from tests.providers.exchanges import Step
from tests.providers.faults import FAULTS, Broken, ErrorEvent, Fault, HangUp, Page, Refuse, Silent
from tests.providers.requests_by_hand import APIS, right
from tests.providers.server import ProviderServer

Start = Callable[..., Program]
#: They pass while the program waits.
PASSING = (
    "429 with retry-after",
    "429 without retry-after",
    "overloaded",
    "500",
    "502 with HTML",
    "403 with HTML",
    "404 once",
    "400 once",
    "reset before headers",
    "connections refused",
    "closed without an answer",
    "200 that is no JSON",
)


def look(asked: Asked) -> Step:
    return [Say("I will look at the log, and at all that is beside it."), Run("cat log.txt")]


def first_of(fault: Fault) -> dict[int, Fault]:
    return {1: fault}


@whole_and_streamed
@pytest.mark.parametrize("name", PASSING)
@pytest.mark.matrix("name")
@each_api
def test_a_fault_that_passes_is_waited_for(name: str, api: str, stream: bool, program: Start) -> None:
    with ProviderServer(look, faults={1: FAULTS[name]}) as server:
        asker = program(route_to(server, api))
        status, _, answer = asker.ask(api, stream=stream)
        [exchange] = asker.end()
        billed = server.billed()
    assert (status, answer.decode()) == (200, exchange.response)
    assert len(exchange.tries) >= 1
    assert exchange.usage is not None
    assert exchange.usage.prompt_tokens == billed.prompt
    assert asker.session.fault == ""
    waits = asker.session.spending.waiting.waits
    assert waits is not None
    assert waits.retries == len(exchange.tries)
    asker.session.raise_for_turn()


#: More seconds than a busy machine takes between two events that are sent.
SILENCE = 2.0
#: What breaks before there is anything of a reply; each event of Gemini's has something of it.
UNSAID: list[tuple[str, Fault]] = [
    *((api, fault) for api in APIS for fault in (Silent(), ErrorEvent(after=0))),
    *(
        (api, fault)
        for api in ("messages", "chat", "responses")
        for fault in (Silent(after=1), Broken(after=1), Broken(after=1, clean=True), ErrorEvent(after=1))
    ),
]


@pytest.mark.parametrize(("api", "fault"), UNSAID, ids=str)
def test_a_stream_that_has_said_nothing_is_asked_for_again(api: str, fault: Fault, program: Start) -> None:
    with ProviderServer(look, faults=first_of(fault)) as server:
        asker = program(route_to(server, api, silence_seconds=SILENCE))
        status, _, answer = asker.ask(api, stream=True)
        [exchange] = asker.end()
        delivered, billed = server.billed(delivered=True), server.billed()
    assert (status, answer.decode(), exchange.complete) == (200, exchange.response, True)
    assert len(exchange.tries) == 1
    usage = exchange.usage
    assert usage is not None
    assert delivered.prompt <= (usage.prompt_tokens or 0) <= billed.prompt
    assert delivered.output <= (usage.completion_tokens or 0) <= billed.output
    # That there was a reply which is lost is known where it had begun.
    assert usage.at_least in (None, True)
    assert asker.session.fault == ""


@each_api
@pytest.mark.parametrize("fault", [Silent(after=4), Broken(after=4), Broken(after=4, clean=True)], ids=repr)
def test_a_stream_that_breaks_in_the_middle_breaks_for_the_program(fault: Fault, api: str, program: Start) -> None:
    with ProviderServer(look, faults=first_of(fault)) as server:
        asker = program(route_to(server, api, silence_seconds=SILENCE))
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            asker.ask(api, stream=True)
        asker.session.close()
        [exchange] = asker.exchanges
        billed = server.billed()
    assert (exchange.complete, exchange.status, len(exchange.tries)) == (False, 200, 1)
    assert exchange.usage is not None
    assert exchange.usage.at_least
    assert (exchange.usage.prompt_tokens or 0) <= billed.prompt
    with pytest.raises(ModelFault, match="the provider failed"):
        asker.session.raise_for_turn()
    assert asker.session.spending.waiting.seconds > 0 or fault != Silent(after=4)


@each_api
def test_a_program_that_asks_again_after_a_broken_stream_has_no_fault(api: str, program: Start) -> None:
    with ProviderServer(look, faults=first_of(Broken(after=4))) as server:
        asker = program(route_to(server, api))
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            asker.ask(api, stream=True)
        assert asker.ask(api, stream=True)[0] == 200
        asker.end()
        billed = server.billed()
    asker.session.raise_for_turn()
    usage = asker.session.usage
    assert usage is not None
    assert usage.at_least
    assert (usage.prompt_tokens or 0) <= billed.prompt
    assert usage.requests == 2


@pytest.mark.parametrize("api", ["messages", "chat", "responses"])
def test_an_error_in_mid_stream_is_passed_on_in_the_providers_words(api: str, program: Start) -> None:
    with ProviderServer(look, faults=first_of(ErrorEvent(after=4))) as server:
        asker = program(route_to(server, api))
        status, _, answer = asker.ask(api, stream=True)
        asker.end()
    assert status == 200
    assert b"overloaded" in answer.splitlines()[-2].lower()
    assert "overloaded" in asker.session.fault.lower()


@whole_and_streamed
@pytest.mark.parametrize("fault", [Refuse("overloaded"), Refuse("server"), Page(502, "<h1>Bad Gateway</h1>")], ids=repr)
@pytest.mark.matrix("fault")
@each_api
def test_a_provider_that_goes_on_failing_is_given_up_and_the_program_told(
    fault: Fault, api: str, stream: bool, program: Start
) -> None:
    ended: list[str] = []
    with ProviderServer(look, faults=lambda exchange: fault) as server:
        route = route_to(server, api, retries=2, retry_seconds=0.4)
        asker = program(route, on_end=lambda: ended.append("now"))
        status, headers, answer = asker.ask(api, stream=stream)
        assert status == server.exchanges[-1].status
        asked = len(server.exchanges)
        assert asker.ask(api, stream=stream)[0] == status
        assert len(server.exchanges) == asked + 1  # Later requests are tried once.
        exchanges = asker.end()
    assert headers["x-should-retry"] == "false"
    assert answer.decode() == exchanges[0].response
    assert ended == ["now"]
    assert asker.session.gave_up
    with pytest.raises(ModelFault, match="the provider failed, tried"):
        asker.session.raise_for_turn()
    assert asker.session.usage is None


@each_api
def test_nobody_at_the_address_is_said_in_the_form_of_the_api(api: str, program: Start) -> None:
    with ProviderServer(look, faults=lambda exchange: HangUp(reset=True)) as server:
        asker = program(route_to(server, api, retries=1))
        status, _, answer = asker.ask(api)
        asker.end()
    assert status in (502, 503)
    assert "the provider failed" in json.loads(answer)["error"]["message"]
    with pytest.raises(ModelFault):
        asker.session.raise_for_turn()


@each_api
def test_a_key_that_is_refused_is_no_fault_of_the_agents(api: str, program: Start) -> None:
    ended = threading.Event()
    with ProviderServer(look, key="another-key-0123456789") as server:
        asker = program(route_to(server, api), on_end=ended.set)
        status, _, _ = asker.ask(api)
        asker.end()
    assert status in (400, 401)
    assert ended.wait(60)  # Some programs would go on asking for minutes.
    with pytest.raises(ModelFault):
        asker.session.raise_for_turn()


@each_api
def test_a_request_that_breaks_a_rule_is_refused_in_the_providers_words_and_sent_twice(
    api: str, program: Start
) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, api))
        status, _, answer = asker.ask(api, {"nonsense": 1})
        [exchange] = asker.end()
        assert len(server.exchanges) == 2
    assert (status, answer.decode()) == (400, exchange.response)
    assert (asker.session.fault, exchange.usage) == ("", None)


@each_api
def test_a_conversation_that_is_too_long_is_said_at_once(api: str, program: Start) -> None:
    with ProviderServer(look, context_tokens=10) as server:
        asker = program(route_to(server, api))
        assert asker.ask(api)[0] == 400
        assert len(server.exchanges) == 1
        asker.end()
    assert asker.session.fault == ""


@each_api
def test_usage_that_contradicts_itself_is_noted_and_never_negative(api: str, program: Start) -> None:
    with ProviderServer(look, faults={1: FAULTS["negative usage"], 2: FAULTS["usage missing"]}) as server:
        asker = program(route_to(server, api))
        for _ in range(2):
            assert asker.ask(api)[0] == 200
        negative, missing = asker.end()
    assert negative.notes
    assert missing.notes == ()
    for exchange in (negative, missing):
        assert exchange.usage is not None
        counts = exchange.usage.model_dump(exclude={"requests", "at_least"}, exclude_none=True).values()
        assert all(count >= 0 for count in counts)
    assert asker.session.uncounted == 2
    assert asker.session.spending.spent.cost_usd == 0


def test_a_server_that_does_not_know_how_to_count_in_streams_is_asked_without(program: Start) -> None:
    refusal = '{"error": {"message": "Unrecognized request argument supplied: stream_options", "type": "invalid"}}'
    with ProviderServer(look, faults=first_of(Page(400, refusal, "application/json"))) as server:
        asker = program(route_to(server, "chat"))
        assert asker.ask("chat", right("chat") | {"stream": True})[0] == 200
        assert ["stream_options" in each.asked.body for each in server.exchanges] == [True, False]
        [exchange] = asker.end()
    assert exchange.usage is not None
    assert exchange.usage.tokens is None
    assert asker.session.uncounted == 1


def test_a_turn_that_may_not_wait_ends(program: Start) -> None:
    with ProviderServer(look, faults=lambda exchange: Refuse("rate_limit", retry_after=50)) as server:
        asker = program(route_to(server, "messages"))
        asker.session.spending.waiting.limit = 10
        assert asker.ask("messages")[0] == 502
        asker.end()
    with pytest.raises(ModelFault, match="evocode_waiting_minutes"):
        asker.session.raise_for_turn()


def test_a_redirection_is_not_followed_with_the_key(program: Start) -> None:
    with ProviderServer(look, faults=first_of(Page(307, "", "text/plain"))) as server:
        route: Route = route_to(server, "messages")
        asker = program(route)
        assert asker.ask("messages")[0] == 307
        assert len(server.exchanges) == 1
        asker.end()


def test_a_small_model_that_is_not_there_is_no_fault_where_another_answers(program: Start) -> None:
    with ProviderServer(look, models=["claude-opus-4-8"]) as server:
        asker = program(route_to(server, "messages"))
        body = right("messages")
        assert asker.ask("messages", body | {"model": "claude-opus-4-8"})[0] == 200
        assert asker.ask("messages", body | {"model": "claude-haiku-4-5"})[0] == 404
        asker.end()
        asker.session.raise_for_turn()
        other = program(route_to(server, "messages"))
        assert other.ask("messages", body | {"model": "claude-haiku-4-5"})[0] == 404
        with pytest.raises(ModelFault, match="404"):
            other.session.raise_for_turn()


def test_what_is_no_request_to_a_model_is_sent_once(program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, "messages"))
        status, headers, _ = asker.send("GET", "/anthropic/v1/models/nobody", None, asker.headers("messages"))
        assert (status, headers["x-should-retry"]) == (404, "false")
        [exchange] = asker.end()
        assert server.exchanges == []
    assert (len(exchange.tries), asker.session.fault) == (1, "")
