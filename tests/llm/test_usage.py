"""Tokens and cost of replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.llm.conftest import ASK, BASH, SECONDS, client_for, each_api
from tests.model_scripts import Answer, Fail, Say, Tokens
from tests.model_server import ModelServer

TOKENS = Tokens(prompt=10_000, completion=500, cached=6_000, written=1_000)
PRICES = {"input": 1.0, "cached_input": 0.1, "cache_write": 1.25, "output": 5.0}
COST = (3_000 * 1.0 + 6_000 * 0.1 + 1_000 * 1.25 + 500 * 5.0) / 1_000_000


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"models": {"my-model": PRICES | {"context_tokens": 1234}}}))
    return path


@each_api
def test_tokens_are_counted_alike_whatever_the_api_counts_apart(api: str, prices: Path) -> None:
    with ModelServer([[Say("Done."), TOKENS]]) as server:
        client = client_for(api, server, "my-model", prices=prices)
        usage = client.complete(ASK, [BASH], timeout=SECONDS).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (10_000, 6_000, 500)
    assert usage.cost_usd == pytest.approx(COST)
    assert usage.requests == 1
    assert client.knows_price
    assert client.context_tokens == 1234


@each_api
def test_a_model_that_is_in_no_table_has_tokens_and_no_cost(api: str) -> None:
    with ModelServer([[Say("Done."), TOKENS]]) as server:
        client = client_for(api, server, "my-model")
        usage = client.complete(ASK, [BASH], timeout=SECONDS).usage
    assert (usage.tokens, usage.cost_usd) == (10_500, None)
    assert not client.knows_price
    assert client.context_tokens is None


@each_api
def test_the_context_that_an_option_says_is_the_models(api: str) -> None:
    with ModelServer([]) as server:
        assert client_for(api, server, "my-model", context_tokens=99).context_tokens == 99


@each_api
def test_what_is_repeated_counts_once(api: str) -> None:
    with ModelServer([Fail(500, retry_after=0), [Say("Done."), TOKENS]]) as server:
        usage = client_for(api, server).complete(ASK, [BASH], timeout=SECONDS).usage
    assert (usage.requests, usage.prompt_tokens) == (1, 10_000)


def test_a_server_that_counts_nothing_has_unknown_tokens_and_no_cost() -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]}
    with ModelServer([Answer(json.dumps(body))]) as server:
        usage = client_for("chat", server).complete(ASK, [BASH], timeout=SECONDS).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.cost_usd) == (None,) * 4


def test_what_the_cache_had_is_known_from_servers_that_name_it_otherwise() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "prompt_cache_hit_tokens": 64}
    body = {"choices": [{"message": {"role": "assistant", "content": "Done."}}], "usage": usage}
    with ModelServer([Answer(json.dumps(body))]) as server:
        assert client_for("chat", server).complete(ASK, [BASH], timeout=SECONDS).usage.cached_tokens == 64


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.0125}, 0.0125),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, 0.021),
        ({"cost": 0.02, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, 0.02),
        ({"cost": None}, 0.001625),
        ({"cost": "much"}, 0.001625),
    ],
)
def test_what_a_router_says_it_charged_is_the_cost(usage: dict[str, Any], cost: float) -> None:
    counted = {"prompt_tokens": 500, "completion_tokens": 100} | usage
    body = {"choices": [{"message": {"role": "assistant", "content": "Done."}}], "usage": counted}
    with ModelServer([Answer(json.dumps(body))]) as server:
        reply = client_for("chat", server, "gpt-5").complete(ASK, [BASH], timeout=SECONDS)
    assert reply.usage.cost_usd == pytest.approx(cost)
