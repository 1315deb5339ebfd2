"""What programs may try at the gateway that want to fail without blame, or to have more than they are given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_evocode.errors import ModelFault
from pytest_evocode.gateway.requests import asked_path
from tests.gateway.conftest import FAMILIES, Program, each_api, route_to
from tests.model_scripts import Asked, Run, Say
from tests.providers.exchanges import Step, Usage
from tests.providers.faults import Page
from tests.providers.server import ProviderServer

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
