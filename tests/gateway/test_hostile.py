"""What programs may try at the gateway that want to fail without blame, or to have more than they are given."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import ModelFault
from pytest_evocode.gateway import Route, forwarding, session
from pytest_evocode.gateway.requests import asked_path
from pytest_evocode.llm.budget import AttemptSpending, RunSpending, parse_budget
from tests.gateway.conftest import FAMILIES, PRICES, Program, each_api, route_to, whole_and_streamed
from tests.model_scripts import Asked, Run, Say
from tests.providers.exchanges import Exchange, Step, Usage
from tests.providers.faults import Drip, Fault, HangUp, Page, Refuse, Silent
from tests.providers.requests_by_hand import right, streamed
from tests.providers.server import KEY, ProviderServer
from tests.waiting import wait_until

Start = Callable[..., Program]
JSON = "application/json"


def look(asked: Asked) -> Step:
    return [Say("I will look at the log, and at all that is beside it."), Run("cat log.txt"), Usage(900, output=100)]


@pytest.mark.parametrize("status", [403, 404])
@each_api
def test_what_is_not_there_is_no_fault_where_the_model_has_answered(status: int, api: str, program: Start) -> None:
    refused = Page(status, '{"error": {"message": "CachedContent not found (or permission denied)"}}', JSON)
    with ProviderServer(look, faults=lambda exchange: refused if exchange.number > 1 else None) as server:
        asker = program(route_to(server, api))
        assert asker.ask(api)[0] == 200
        assert asker.ask(api)[0] == status
        asker.end()
    asker.session.raise_for_turn()


def test_a_request_with_more_tokens_than_a_minute_allows_is_no_fault(program: Start) -> None:
    words = "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 90000."
    with ProviderServer(
        look, faults=lambda exchange: Page(429, f'{{"error": {{"message": "{words}"}}}}', JSON)
    ) as server:
        asker = program(route_to(server, "chat"))
        assert asker.ask("chat")[0] == 429
        asker.end()
    asker.session.raise_for_turn()


@each_api
def test_another_model_than_those_that_are_named_is_not_asked(api: str, program: Start) -> None:
    with ProviderServer(look) as server:
        for models, status in ((("claude-*", "gpt-5*", "gemini-2.5-pro"), 200), (("claude-haiku*",), 404)):
            asker = program(dataclasses.replace(route_to(server, api), models=models))
            assert asker.ask(api)[0] == status
            asker.end()
            asker.session.raise_for_turn()
        assert len(server.exchanges) == 1


@pytest.mark.parametrize("status", [401, 402])
def test_an_account_that_is_closed_meanwhile_is_the_providers_fault(status: int, program: Start) -> None:
    refused = Page(status, '{"error": {"message": "this account is closed"}}', JSON)
    with ProviderServer(look, faults=lambda exchange: refused if exchange.number > 1 else None) as server:
        asker = program(route_to(server, "messages"))
        assert [asker.ask("messages")[0] for _ in range(2)] == [200, status]
        asker.end()
    with pytest.raises(ModelFault, match="closed"):
        asker.session.raise_for_turn()


@pytest.mark.parametrize(
    "name", ["OpenAI-Organization", "OpenAI-Project", "X-Goog-User-Project", "X-HTTP-Method-Override", "Cookie"]
)
def test_which_account_is_charged_is_not_for_the_program_to_say(name: str, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, "chat"))
        assert asker.ask("chat", headers=asker.headers("chat") | {name: "another"})[0] == 200
        assert name.lower() not in {each.lower() for each in server.exchanges[0].asked.headers}
        target = asked_path("POST", "/openai/v1/responses?access_token=x&key=y&alt=sse")
        assert target is not None
        assert target.target(route_to(server, "chat")).endswith("/responses?alt=sse")


@pytest.mark.parametrize(
    "path",
    [
        "/google/v1beta/models/gemini-3-pro:batchGenerateContent#:generateContent",
        "/google/v1beta#/models/gemini-3-pro:generateContent",
        "/google/%2e%2e/models/gemini-3-pro:generateContent",
        "/google/v1beta/models/..:generateContent",
        "/google/v1beta/models/x%2F..%2Fy:generateContent",
        "/openai/v1/models/../files",
        "/openai/v1@example.com/responses",
        "/openai//example.com/responses",
        "/anthropic/v1/messages/../files",
        "/anthropic/v1/messages#",
    ],
)
def test_a_path_that_servers_may_read_otherwise_is_not_passed_on(path: str, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(*(route_to(server, api) for api in ("messages", "chat", "gemini")))
        api = next(api for api, family in FAMILIES.items() if path.startswith(f"/{family}/"))
        assert asker.send("POST", path, {}, asker.headers(api))[0] == 404
        assert asker.end() == []
        assert server.exchanges == []


@contextlib.contextmanager
def stream(asker: Program, api: str) -> Iterator[http.client.HTTPResponse]:
    """Ask for a stream, and leave it where the block ends."""
    body, path = streamed(api, right(api))
    connection = http.client.HTTPConnection("127.0.0.1", asker.gateway.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", f"/{FAMILIES[api]}{path}", json.dumps(body), asker.headers(api))
        with connection.getresponse() as answer:
            yield answer


@each_api
def test_a_program_that_leaves_a_stream_before_its_end_pays_for_all_of_it(api: str, program: Start) -> None:
    spending = AttemptSpending(parse_budget("turns=1"))
    with ProviderServer(look, faults={1: Drip(1.0)}) as server:
        asker = program(route_to(server, api), spending=spending)
        with stream(asker, api) as answer:
            answer.read(300)
        wait_until(lambda: asker.exchanges)
        assert asker.ask(api)[0] in (400, 403)
        assert len(server.exchanges) == 1
        exchange, _ = asker.end()
    assert exchange.usage is not None
    assert (exchange.usage.tokens, exchange.usage.at_least) == (1000, None)
    assert spending.spent.turns == 1


@each_api
def test_requests_that_wait_for_a_place_keep_to_what_is_left_then(api: str, program: Start) -> None:
    spending = AttemptSpending(parse_budget("turns=1"))
    with ProviderServer(look, faults=lambda exchange: Drip(0.2)) as server, ThreadPoolExecutor(4) as pool:
        asker = program(route_to(server, api, max_connections=1), spending=spending)
        statuses = sorted(pool.map(lambda _: asker.ask(api)[0], range(4)))
        assert (statuses.count(200), len(server.exchanges)) == (1, 1)
        asker.end()


def test_streams_that_break_at_once_stop_the_clock_once(program: Start) -> None:
    with ProviderServer(look, faults=lambda exchange: Silent(after=4)) as server, ThreadPoolExecutor(8) as pool:
        asker = program(route_to(server, "messages", silence_seconds=0.5))
        began = time.monotonic()
        for each in [pool.submit(asker.ask, "messages", stream=True) for _ in range(8)]:
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                each.result(60)
        seconds = time.monotonic() - began
        asker.end()
    assert 0 < asker.session.spending.waiting.seconds <= seconds


POISON = "a request that the provider cannot answer"


def of_poison(fault: Fault) -> Callable[[Exchange], Fault | None]:
    """Faults of the requests alone that have a text in them."""
    return lambda exchange: fault if POISON in json.dumps(exchange.asked.body) else None


def answer(asked: Asked) -> Step:
    return look(asked) if asked.tools else Say("OK.")


def with_poison(api: str) -> dict[str, Any]:
    """A right request, with that text."""
    body = right(api)
    role = {"role": "user"}
    if api == "responses":
        return body | {"input": POISON}
    if api == "gemini":
        return body | {"contents": [role | {"parts": [{"text": POISON}]}]}
    return body | {"messages": [role | {"content": POISON}]}


@whole_and_streamed
@pytest.mark.parametrize("fault", [Refuse("server"), Page(502, "<h1>Bad Gateway</h1>"), HangUp()], ids=repr)
@pytest.mark.matrix("fault")
@each_api
def test_a_request_that_alone_is_never_answered_is_no_fault_of_the_providers(
    fault: Fault, api: str, stream: bool, program: Start, tmp_path: Path
) -> None:
    run = RunSpending(tmp_path / "spent")
    with ProviderServer(answer, faults=of_poison(fault)) as server:
        asker = program(route_to(server, api, retries=1), spending=AttemptSpending(run=run))
        assert asker.ask(api)[0] == 200
        paid = run.cost_usd
        status = asker.ask(api, with_poison(api), stream=stream)[0]
        _, exchange = asker.end()
    assert status >= 500
    asker.session.raise_for_turn()
    assert not asker.session.gave_up
    assert "this one is at fault" in exchange.notes[0]
    assert run.cost_usd > paid  # For the requests that were compared with it.
    assert asker.session.usage is not None
    assert asker.session.usage.requests == 1


@pytest.mark.parametrize("fault", [Refuse("overloaded"), Page(503, "<h1>Busy</h1>"), Refuse("rate_limit")], ids=repr)
def test_a_provider_with_too_much_to_do_is_at_fault_though_it_answers_small_requests(
    fault: Fault, program: Start
) -> None:
    with ProviderServer(answer, faults=of_poison(fault)) as server:
        asker = program(route_to(server, "messages", retries=1, retry_seconds=0.4))
        assert asker.ask("messages")[0] == 200
        asker.ask("messages", with_poison("messages"))
        asker.end()
    with pytest.raises(ModelFault):
        asker.session.raise_for_turn()


def test_a_provider_that_is_back_after_the_last_try_answers(program: Start) -> None:
    last = iter([Refuse("server")] * 3)

    def until_compared(exchange: Exchange) -> Fault | None:
        return next(last, None) if POISON in json.dumps(exchange.asked.body) else None

    with ProviderServer(answer, faults=until_compared) as server:
        asker = program(route_to(server, "messages", retries=2))
        assert asker.ask("messages")[0] == 200
        assert asker.ask("messages", with_poison("messages"))[0] == 200
        asker.end()
    asker.session.raise_for_turn()


@pytest.mark.parametrize("budget", ["turns=5", "tokens=5000", "cost=0.01"])
def test_requests_at_once_use_no_more_than_one_request_too_much(budget: str, program: Start) -> None:
    spending = AttemptSpending(parse_budget(budget))
    with ProviderServer(look, faults=lambda exchange: Drip(0.1)) as server, ThreadPoolExecutor(12) as pool:
        asker = program(route_to(server, "messages"), spending=spending)
        statuses = list(pool.map(lambda _: asker.ask("messages")[0], range(12)))
        asker.end()
    assert asker.session.exhausted
    used = asker.session.usage
    assert used is not None
    each = 1000, (used.cost_usd or 0) / statuses.count(200)
    limits = spending.budget
    assert spending.spent.turns <= (limits.turns or 12)
    assert spending.spent.tokens < (limits.tokens or 12_000) + each[0]
    assert spending.spent.cost_usd < (limits.cost or 1) + each[1]
    assert statuses.count(200) == len(server.exchanges) > 1


@each_api
def test_an_answer_without_an_end_is_broken_off(api: str, program: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_LONGEST_ANSWER", 50)
    with ProviderServer(look) as server:
        for stream in (False, True):
            asker = program(route_to(server, api, retries=0))
            assert asker.ask(api, stream=stream)[0] >= 500
            asker.end()
            with pytest.raises(ModelFault, match="the answer has more than"):
                asker.session.raise_for_turn()


def test_the_clock_stands_still_for_one_request_only_while_no_other_is_answered(program: Start) -> None:
    spending = AttemptSpending()
    again = iter([Refuse("rate_limit", retry_after=2)])

    def refuse_first(exchange: Exchange) -> Fault | None:
        return next(again, None) if POISON in json.dumps(exchange.asked.body) else Drip(1.5)

    with ProviderServer(answer, faults=refuse_first) as server, ThreadPoolExecutor(2) as pool:
        asker = program(route_to(server, "messages"), spending=spending)
        waiting = pool.submit(asker.ask, "messages", with_poison("messages"))
        wait_until(lambda: spending.waiting.seconds)
        assert asker.ask("messages")[0] == 200
        assert waiting.result(60)[0] == 200
        asker.end()
    waits = spending.waiting.waits
    assert waits is not None
    assert 0 < sum(waits.seconds.values()) < 1.5


def test_nothing_is_asked_after_a_model_whose_price_nobody_knows(program: Start) -> None:
    ended = threading.Event()
    with ProviderServer(look) as server:
        route = dataclasses.replace(route_to(server, "messages"), prices=lambda model: None)
        asker = program(route, spending=AttemptSpending(parse_budget("cost=1")), on_end=ended.set)
        assert [asker.ask("messages")[0] for _ in range(4)] == [200, 403, 403, 403]
        assert len(server.exchanges) == 1
        asker.end()
    assert ended.wait(60)


@each_api
def test_a_server_that_shows_the_key_in_its_errors_shows_it_to_no_program(api: str, program: Start) -> None:
    shown = Page(400, json.dumps({"error": {"message": f"debug: Authorization: Bearer {KEY}"}}), JSON)
    with ProviderServer(look, faults=lambda exchange: shown) as server:
        asker = program(route_to(server, api))
        status, _, answer = asker.ask(api)
        [exchange] = asker.end()
    assert (status, KEY.encode() in answer) == (400, False)
    assert b"[key]" in answer
    assert KEY not in json.dumps(exchange.as_json())


def test_a_large_request_is_passed_on(program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, "messages"))
        assert asker.ask("messages", right("messages") | {"metadata": {"user_id": "x" * 2 * 2**20}})[0] == 200


def test_few_large_requests_are_taken_at_once(program: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LARGE_AT_ONCE", 2)
    large = right("messages") | {"metadata": {"user_id": "x" * 5 * 2**20}}
    with ProviderServer(look, faults=lambda exchange: Silent()) as server, ThreadPoolExecutor(4) as pool:
        asker = program(route_to(server, "messages"))
        asked = [pool.submit(asker.ask, "messages", large) for _ in range(4)]
        wait_until(lambda: len(server.exchanges) == 2)
        time.sleep(0.3)
        assert len(server.exchanges) == 2
        asker.session.close()
        for each in asked:
            with pytest.raises((http.client.HTTPException, ConnectionError)):
                each.result(60)


def test_requests_that_no_model_answers_do_not_fill_the_memory(program: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_MOST_UNANSWERED", 2000)
    with ProviderServer(look) as server:
        asker = program(route_to(server, "messages"))
        for _ in range(3):
            assert asker.ask("messages", {"nonsense": "x" * 600})[0] == 400
        kept = [bool(exchange.request) for exchange in asker.end()]
    assert kept == [True, True, False]


@contextlib.contextmanager
def server_that(sends: Callable[[socket.socket], object]) -> Iterator[Route]:
    """A provider by hand: it sends the head of a stream, and what ``sends`` does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(2**16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
                sends(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield Route(family="openai", base_url=url, key="sk-0123456789abcdef", prices=lambda model: PRICES)
        thread.join(60)


def test_a_stream_that_the_program_does_not_read_breaks_by_its_own_fault(
    program: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "_HELD_UP", 0.5)
    event = {"choices": [{"index": 0, "delta": {"content": "x" * 2**16}}]}
    broken = threading.Event()

    def send(connection: socket.socket) -> None:
        connection.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            while True:
                connection.sendall(b"data: " + json.dumps(event).encode() + b"\n\n")
        broken.set()

    with server_that(send) as route:
        asker = program(route)
        with stream(asker, "chat") as answer:
            assert broken.wait(60)
            with contextlib.suppress(http.client.HTTPException, ConnectionError):
                while answer.read(2**20):
                    pass
            wait_until(lambda: asker.exchanges)
        [exchange] = asker.end()
    assert not exchange.complete
    assert asker.session.spending.waiting.waits is None
    asker.session.raise_for_turn()


def test_a_stream_that_is_left_before_anything_has_come_counts(program: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_LONGEST_HOLD", 0.0)
    left = threading.Event()

    def send(connection: socket.socket) -> None:
        connection.sendall(b": still busy\n\n")
        left.wait(60)

    with server_that(send) as route:
        asker = program(route)
        with stream(asker, "chat") as answer:
            assert answer.read(2)
        left.set()
        wait_until(lambda: asker.exchanges)
        [exchange] = asker.end()
    assert exchange.usage is not None
    assert (exchange.usage.requests, exchange.usage.at_least) == (1, True)
