"""The providers' SDKs ask through the gateway as they ask the provider, and so do our own clients."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, Tool
from tests.gateway.conftest import FAMILIES, PRICES, Program, each_api, route_to
from tests.model_scripts import Asked, Run, Say, Think
from tests.providers.exchanges import Step
from tests.providers.faults import Broken, Fault, HangUp, Refuse
from tests.providers.requests_by_hand import right
from tests.providers.server import ProviderServer

Start = Callable[..., Program]
BASH = Tool("bash", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
MODELS = {"gemini": "gemini-2.5-pro"}


def work(asked: Asked) -> Step:
    if asked.results:
        return Say("There is a log.")
    return [Think("What is there?"), Say("I will look."), Run("ls")]


@pytest.mark.parametrize(
    "fault", [None, Refuse("overloaded"), HangUp(reset=True), Broken(after=1), Broken(after=5)], ids=str
)
@pytest.mark.matrix("fault")
@each_api
def test_a_conversation_costs_what_the_provider_bills_whatever_the_weather(
    api: str, fault: Fault | None, program: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProviderServer(work, faults={} if fault is None else {2: fault}) as server:
        asker = program(route_to(server, api))
        monkeypatch.setenv("GATE_API_KEY", asker.session.token)
        family = FAMILIES[api]
        base_url = asker.session.base_url(family, f"http://127.0.0.1:{asker.gateway.port}")
        options = {"base_url": base_url, "key_env": "GATE_API_KEY"} | ({"api": api} if family == "openai" else {})
        model = MODELS.get(api) or right(api)["model"]
        client = make_client(family, model, ModelOptions.model_validate(options))
        client.prepare()
        conversation = [Message("system", "You are a programmer."), Message("user", "Look.")]
        first = client.complete(conversation, [BASH], timeout=60)
        [call] = first.calls
        conversation += [first.message, Message("tool", "log.txt", call_id=call.id)]
        last = client.complete(conversation, [BASH], timeout=60)
        client.close()
        asker.end()
        delivered, billed = server.billed(delivered=True), server.billed()
    assert (first.calls[0].name, last.text) == ("bash", "There is a log.")
    usage = asker.session.usage
    assert usage is not None
    assert delivered.prompt <= (usage.prompt_tokens or 0) <= billed.prompt
    assert delivered.output <= (usage.completion_tokens or 0) <= billed.output
    assert usage.at_least or (usage.prompt_tokens, usage.completion_tokens) == (billed.prompt, billed.output)
    assert usage.cost_usd is not None
    assert usage.cost_usd <= billed.cost(PRICES.input, 0.1, 1.25, PRICES.output) + 1e-9
    asker.session.raise_for_turn()
