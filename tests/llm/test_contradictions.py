"""What answers say of their tokens that cannot be: it is left out and noted, and nothing is ever negative."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.llm.usage import Api, counted_answer, lower_bound
from pytest_evocode.results.records import Usage

PRICES = ModelFacts(input=1.0, cached_input=0.1, output=5.0)


@pytest.mark.parametrize(
    ("api", "told", "prompt", "completion", "cached", "note"),
    [
        ("messages", {"input_tokens": -1000, "output_tokens": -50}, None, None, None, "input_tokens is -1000"),
        (
            "messages",
            {"input_tokens": 10, "cache_read_input_tokens": -5, "output_tokens": 3},
            *(10, 3, None, "cache_read_input_tokens is -5"),
        ),
        (
            "chat",
            {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": -1}},
            *(100, 10, None, "prompt_tokens_details.cached_tokens is -1"),
        ),
        (
            "chat",
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 110,
                "prompt_tokens_details": {"cached_tokens": 400},
            },
            *(100, 10, None, "400 tokens of the cache are in a prompt of 100"),
        ),
        (
            "responses",
            {"input_tokens": 100, "output_tokens": 10, "total_tokens": 90},
            *(100, 10, None, "the total of 90 tokens is not the sum of 100 and 10"),
        ),
        (
            "responses",
            {
                "input_tokens": 100,
                "output_tokens": 10,
                "total_tokens": 110,
                "output_tokens_details": {"reasoning_tokens": 11},
            },
            *(100, 10, None, "11 tokens of reasoning are in a reply of 10"),
        ),
        (
            "gemini",
            {"promptTokenCount": 100, "candidatesTokenCount": -4, "thoughtsTokenCount": 6},
            *(100, 6, None, "candidatesTokenCount is -4"),
        ),
        ("chat", {"prompt_tokens": "many", "completion_tokens": 1}, None, 1, None, "prompt_tokens is 'many'"),
        ("chat", {"cost": -1, "prompt_tokens": 1, "completion_tokens": 1}, 1, 1, None, "cost is -1"),
    ],
)
def test_contradictions_are_noted(
    api: Api, told: dict[str, Any], prompt: int | None, completion: int | None, cached: int | None, note: str
) -> None:
    counted = counted_answer(api, told, PRICES)
    usage = counted.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (prompt, completion, cached)
    assert note in counted.contradictions
    assert note in counted.remarks["usage_contradictions"]
    assert usage.cost_usd is None or usage.cost_usd >= 0


def test_tokens_that_nobody_names_make_it_at_least_as_many() -> None:
    told = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 150}
    counted = counted_answer("chat", told, None)
    assert (counted.usage.tokens, counted.usage.at_least) == (110, True)
    assert counted.contradictions


def test_the_total_tells_whether_reasoning_is_counted_apart() -> None:
    told = {"prompt_tokens": 100, "completion_tokens": 60, "completion_tokens_details": {"reasoning_tokens": 50}}
    apart = counted_answer("chat", told | {"total_tokens": 210}, None)
    within = counted_answer("chat", told | {"total_tokens": 160}, None)
    assert (apart.usage.completion_tokens, within.usage.completion_tokens) == (110, 60)
    assert apart.contradictions == within.contradictions == ()


@pytest.mark.parametrize("told", [None, [], "much", {}, 7])
@pytest.mark.parametrize("api", ["messages", "chat", "responses", "gemini"])
def test_an_answer_that_says_nothing_of_it_is_unknown(api: Api, told: object) -> None:
    counted = counted_answer(api, told, PRICES)
    assert counted.usage == Usage(requests=1)
    assert counted.remarks == {}


def test_what_broke_off_is_known_to_have_used_so_much_at_least() -> None:
    told = counted_answer("messages", {"input_tokens": 1000, "output_tokens": 1}, PRICES).usage
    bound = lower_bound(told, PRICES)
    assert (bound.prompt_tokens, bound.completion_tokens, bound.cached_tokens, bound.at_least) == (1000, 1, 0, True)
    assert bound.cost_usd == pytest.approx(0.001005)
    assert lower_bound(Usage(), None).tokens == 0
