"""Sessions: tokens that end, budgets that are kept, programs that go away, and many at once."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_evocode.errors import RunLimitReached
from pytest_evocode.gateway import Exchange, Gateway
from pytest_evocode.llm.budget import AttemptSpending, RunSpending, parse_budget
from tests.gateway.conftest import Program, each_api, route_to, whole_and_streamed
from tests.model_scripts import Asked, Run, Say
from tests.providers.exchanges import Step, Usage
from tests.providers.faults import Drip, Silent
from tests.providers.requests_by_hand import words_of
from tests.providers.server import ProviderServer

Start = Callable[..., Program]
STATUS = {"messages": 403, "chat": 400, "responses": 400, "gemini": 403}


def look(asked: Asked) -> Step:
    return [Say("I will look at the log."), Run("cat log.txt"), Usage(uncached=900, output=100)]


@each_api
def test_only_a_token_of_a_session_under_way_opens_the_gateway(api: str, program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, api))
        for token in ("", "nonsense", f"{asker.session.token}x"):
            headers = {"x-api-key": token, "x-goog-api-key": token, "Authorization": f"Bearer {token}"}
            status, _, answer = asker.ask(api, headers=headers)
            assert (status, bool(words_of(answer))) == (401, True)
        assert asker.ask(api)[0] == 200
        asker.end()
        assert asker.ask(api)[0] == 401
        assert len(server.exchanges) == 1
    assert len(asker.exchanges) == 1


def test_a_token_opens_only_the_apis_of_its_routes(program: Start) -> None:
    with ProviderServer(look) as server:
        asker = program(route_to(server, "messages"))
        assert asker.ask("chat")[0] == 401
        other = program(route_to(server, "messages"), route_to(server, "chat"), route_to(server, "gemini"))
        assert [other.ask(api)[0] for api in ("messages", "chat", "responses", "gemini")] == [200] * 4


@whole_and_streamed
@pytest.mark.parametrize("limit", ["tokens=1900", "turns=2", "cost=0.0015", "turns=2/round"])
@each_api
def test_the_request_after_the_last_that_the_budget_allows_is_refused(
    api: str, limit: str, stream: bool, program: Start
) -> None:
    ended = threading.Event()
    spending = AttemptSpending(parse_budget(limit))
    spending.begin_turn()
    with ProviderServer(look) as server:
        asker = program(route_to(server, api), spending=spending, on_end=ended.set)
        statuses = [asker.ask(api, stream=stream)[0] for _ in range(4)]
        _, headers, answer = asker.ask(api, stream=stream)
        assert len(server.exchanges) == 2
        exchanges = asker.end()
    assert statuses == [200, 200, STATUS[api], STATUS[api]]
    assert headers["x-should-retry"] == "false"
    assert words_of(answer) == asker.session.exhausted == spending.exhausted
    assert asker.session.exhausted.startswith("budget: ")
    assert ended.wait(60)
    assert [each.usage is None for each in exchanges] == [False, False, True, True, True]
    asker.session.raise_for_turn()  # What the agent spends is the agent's.


def test_the_limit_of_the_run_is_raised_for_whoever_runs_the_turn(tmp_path: Path, program: Start) -> None:
    run = RunSpending(tmp_path / "spent")
    run.add(5.0)
    with ProviderServer(look) as server:
        asker = program(route_to(server, "chat"), spending=AttemptSpending(parse_budget("total-cost=5"), run=run))
        assert asker.ask("chat")[0] == 400
        assert server.exchanges == []
    with pytest.raises(RunLimitReached):
        asker.session.raise_for_turn()


@whole_and_streamed
@each_api
def test_a_program_that_goes_away_ends_its_request(api: str, stream: bool, program: Start) -> None:
    with ProviderServer(look, faults={1: Silent()}) as server:
        asker = program(route_to(server, api))
        with pytest.raises(TimeoutError):
            asker.ask(api, stream=stream, timeout=0.3)
        until = time.monotonic() + 60
        while not asker.exchanges and time.monotonic() < until:
            time.sleep(0.02)
    [exchange] = asker.exchanges
    assert (exchange.status, exchange.complete) == (None, False)
    assert exchange.usage is not None
    assert exchange.usage.at_least
    assert (asker.session.fault, asker.session.replies) == ("", 0)


def test_what_is_under_way_ends_with_the_session(program: Start) -> None:
    with ProviderServer(look, faults={1: Silent()}) as server:
        asker = program(route_to(server, "messages"))
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(asker.ask, "messages")
            while not server.exchanges:
                time.sleep(0.01)
            asker.session.close()
            with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
                asked.result(60)
    [exchange] = asker.exchanges
    assert exchange.usage is not None
    assert exchange.usage.at_least


def test_what_recording_raises_is_raised_at_the_end(program: Start) -> None:
    def full(exchange: Exchange) -> None:
        raise OSError("the disk is full")

    with ProviderServer(look) as server:
        asker = program(route_to(server, "chat"), record=full)
        assert asker.ask("chat")[0] == 200
        with pytest.raises(OSError, match="the disk is full"):
            asker.session.close()


@pytest.mark.slow("128 streams")
def test_many_programs_stream_at_once(gateway: Gateway, program: Start) -> None:
    most = 128
    with ProviderServer(look, faults=lambda exchange: Drip(1.0)) as server:
        askers = [program(route_to(server, "messages", max_connections=most)) for _ in range(most)]
        with ThreadPoolExecutor(most) as pool:
            answers = list(pool.map(lambda asker: asker.ask("messages", stream=True), askers))
        assert {status for status, _, _ in answers} == {200}
        for asker in askers:
            asker.end()
        assert sum(asker.session.usage.tokens or 0 for asker in askers if asker.session.usage) == most * 1000


def test_a_place_is_waited_for_off_the_clock(program: Start) -> None:
    with ProviderServer(look, faults=lambda exchange: Drip(0.2)) as server:
        askers = [program(route_to(server, "messages", max_connections=1)) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda asker: asker.ask("messages", stream=True)[0], askers))
        assert answers == [200] * 3
        for asker in askers:
            asker.end()
    assert sorted(asker.session.spending.waiting.seconds for asker in askers)[1] > 0.1


def test_nothing_is_started_before_the_address_is_asked_for() -> None:
    gateway = Gateway()
    before = set(threading.enumerate())
    with gateway.open() as session:
        assert session.token
    # Threads of other tests may end meanwhile.
    assert set(threading.enumerate()) <= before
    gateway.close()
