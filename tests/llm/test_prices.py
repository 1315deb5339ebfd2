"""The table of prices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts, PackagedFacts, find_model_facts, find_packaged_facts, priced_usage


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("gpt-5.5-2026-04-23", "gpt-5.5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("openai/gpt-5-mini", "gpt-5-mini"),
        ("openrouter/openai/gpt-5-mini-2025-08-07", "gpt-5-mini"),
    ],
)
def test_a_name_with_a_date_or_a_router_before_it_is_the_same_model(name: str, same: str) -> None:
    assert find_model_facts(name) == find_model_facts(same) is not None


@pytest.mark.parametrize("name", ["gpt-5-ultra", "gpt-5-mini-high", "gpt", "claude-sonnet", "my-gpt-5", ""])
def test_a_name_that_only_begins_like_one_in_the_table_is_unknown(name: str) -> None:
    assert find_model_facts(name) is None


def test_cached_tokens_and_those_put_into_the_cache_have_their_own_prices() -> None:
    facts = find_model_facts("claude-sonnet-4-5")
    assert facts is not None
    assert facts.cost(prompt=1_000_000, completion=0) == pytest.approx(3)
    assert facts.cost(prompt=1_000_000, completion=0, cached=1_000_000) == pytest.approx(0.3)
    assert facts.cost(prompt=1_000_000, completion=0, written=1_000_000) == pytest.approx(3.75)
    assert facts.cost(prompt=0, completion=1_000_000) == pytest.approx(15)


def test_a_request_with_a_long_prompt_costs_more_as_a_whole() -> None:
    facts = find_model_facts("gpt-5.5")
    assert facts is not None
    assert facts.cost(prompt=272_000, completion=1000) == pytest.approx(0.272 * 5 + 0.001 * 30)
    assert facts.cost(prompt=272_001, completion=1000) == pytest.approx(0.272001 * 10 + 0.001 * 45)


def test_a_model_without_prices_for_its_cache_pays_what_other_input_costs() -> None:
    facts = find_model_facts("gpt-5-pro")
    assert facts is not None
    assert facts.cost(prompt=1000, completion=0, cached=500, written=500) == facts.cost(prompt=1000, completion=0)


def test_a_file_of_ones_own_comes_before_the_table_and_need_not_have_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"models": {"gpt-5": {"input": 7, "output": 9}}}))
    mine, other = find_model_facts("gpt-5-2025-08-07", path), find_model_facts("gpt-5-mini", path)
    assert mine is not None
    assert (mine.input, mine.cached_input, mine.output) == (7, None, 9)
    assert other == find_model_facts("gpt-5-mini")


def test_a_file_of_ones_own_may_be_toml(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[models."llama-3.3"]\ninput = 0\noutput = 0\ncontext_tokens = 8192\n')
    mine = find_model_facts("llama-3.3", path)
    assert mine is not None
    assert (mine.cost(10**6, 10**6), mine.context_tokens) == (0, 8192)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "{", "the prices cannot be read"),
        ("a.toml", "[", "the prices cannot be read"),
        ("a.json", "{}", "models: Field required"),
        ("a.json", '{"models": {"m": {"input": 1}}}', "models.m.output: Field required"),
        ("a.json", '{"models": {"m": {"input": 1, "output": -1}}}', "models.m.output: Input should be greater"),
        ("a.json", '{"models": {"m": {"input": 1, "output": 1, "cashed": 1}}}', "models.m.cashed: Extra inputs"),
    ],
)
def test_a_file_that_is_none_is_an_error_that_names_it(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError) as told:
        find_model_facts("m", path)
    assert str(told.value).startswith(f"{path}: ")
    assert words in str(told.value)


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json: the prices cannot be read"):
        find_model_facts("m", tmp_path / "none.json")


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("claude-opus-4.5", "claude-opus-4-5"),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
    ],
)
def test_dots_regions_and_revisions_do_not_make_another_model(name: str, same: str) -> None:
    assert find_model_facts(name) == find_model_facts(same) is not None


def test_a_model_of_no_table_has_the_price_that_the_package_knows() -> None:
    facts = find_model_facts("gemini-2.5-pro", provider="google")
    assert facts is not None
    assert facts.cost(100_000, 1000) == pytest.approx((100_000 * 1.25 + 1000 * 10) / 1e6)
    # Longer prompts cost more, and what was cached less.
    assert facts.cost(300_000, 0) == pytest.approx(300_000 * 2.5 / 1e6)
    assert facts.cost(100_000, 0, cached=100_000) == pytest.approx(100_000 * 0.125 / 1e6)
    assert find_model_facts("moonshotai/kimi-k2") is not None


def test_a_model_has_the_price_of_the_server_that_is_asked() -> None:
    own = find_model_facts("gpt-5-mini", base_url="https://api.openai.com/v1", provider="openai")
    routed = find_model_facts("qwen/qwen3-coder", base_url="https://openrouter.ai/api/v1", provider="openai")
    assert own == find_model_facts("gpt-5-mini")
    # Our table has it, at OpenAI's own price.
    elsewhere = find_model_facts("openai/gpt-5-mini", base_url="https://openrouter.ai/api/v1", provider="openai")
    assert isinstance(elsewhere, PackagedFacts)
    assert routed is not None
    assert find_model_facts("qwen/qwen3-coder", base_url="http://localhost:8000/v1", provider="openai") is None


def test_another_service_tier_has_its_own_price_or_none() -> None:
    standard, flex = find_model_facts("gpt-5"), find_model_facts("gpt-5", provider="openai", service_tier="flex")
    assert standard is not None
    assert flex is not None
    assert flex.cost(10**6, 0) == pytest.approx(standard.cost(10**6, 0) / 2)
    assert find_model_facts("gpt-5", provider="openai", service_tier="default") == standard
    assert find_model_facts("gpt-5", provider="openai", service_tier="made-up") is None


def test_without_the_package_our_table_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    find_packaged_facts.cache_clear()
    assert find_model_facts("gemini-2.5-flash", provider="google") is None
    assert find_model_facts("gpt-5", base_url="https://openrouter.ai/api/v1") is not None
    find_packaged_facts.cache_clear()


def test_parts_that_are_more_than_the_whole_were_counted_apart_and_no_tokens_are_negative() -> None:
    facts = ModelFacts(input=1, cached_input=0.1, output=2)
    usage = priced_usage(facts, 10, 5, cached=50, reasoning=99)
    assert (usage.prompt_tokens, usage.completion_tokens) == (60, 104)
    assert usage.cost_usd == pytest.approx((10 * 1 + 50 * 0.1 + 104 * 2) / 1e6)
    unknown = priced_usage(facts, -10, 5)
    assert (unknown.prompt_tokens, unknown.completion_tokens, unknown.cost_usd) == (None, 5, None)


def test_windows_of_gemini_models_are_known_where_no_table_has_them() -> None:
    def window(model: str, **options: Any) -> int | None:
        return make_client("google", model, ModelOptions.model_validate(options)).context_tokens

    names = ("gemini-2.5-pro", "gemini-3-pro-preview", "models/gemini-2.5-flash", "google/gemini-3.8-pro")
    assert all((window(name) or 0) >= 1_000_000 for name in names)
    assert window("gemini-2.5-pro", context_tokens=9000) == 9000
    assert window("somebody-s-model") is None
