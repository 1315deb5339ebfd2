"""Where OpenCode's models are, and with which key."""

from __future__ import annotations

import pytest

from pytest_evocode.agents.installed.opencode import OpenCodeAgent, OpenCodeOptions
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import Budget


def test_a_model_without_a_provider_is_refused_and_the_key_is_the_providers() -> None:
    with pytest.raises(UsageError, match="opencode needs a model with its provider"):
        OpenCodeAgent("gpt-5.2", OpenCodeOptions()).check({}, Budget())
    agent = OpenCodeAgent("openrouter/some/model", OpenCodeOptions())
    agent.check({"OPENROUTER_API_KEY": "sk-0123456789"}, Budget())
    with pytest.raises(UsageError, match="OPENROUTER_API_KEY is not set"):
        agent.check({}, Budget())


def test_where_the_models_of_an_unknown_provider_are_has_to_be_said() -> None:
    with pytest.raises(UsageError, match="where the models of moonshot are is not known; name the server's address"):
        OpenCodeAgent("moonshot/kimi", OpenCodeOptions()).check({"MOONSHOT_API_KEY": "sk-0123456789"}, Budget())


@pytest.mark.parametrize(
    ("model", "base_url", "upstream"),
    [
        ("anthropic/claude", "http://here:1/v1", "http://here:1"),
        ("google/gemini", "http://here:1/v1beta/", "http://here:1"),
        ("local/qwen", "http://here:1/v1", "http://here:1/v1"),
        ("openai/gpt", None, None),
        ("groq/llama", None, "https://api.groq.com/openai/v1"),
    ],
)
def test_the_gateway_asks_the_server_that_the_cli_would_have_asked(
    model: str, base_url: str | None, upstream: str | None
) -> None:
    assert OpenCodeAgent(model, OpenCodeOptions(base_url=base_url)).upstream == upstream


def test_token_ids_are_those_of_a_server_of_ones_own() -> None:
    with pytest.raises(UsageError, match=r"OpenCode asks openai by an API of its own.*opencode:mine/MODEL"):
        OpenCodeAgent("openai/gpt-5.2", OpenCodeOptions(token_ids="vllm")).check({"OPENAI_API_KEY": "k"}, Budget())
    options = OpenCodeOptions(base_url="http://localhost:8000/v1", token_ids="sglang")
    agent = OpenCodeAgent("mine/qwen", options)
    agent.check({"MINE_API_KEY": "sk-0123456789"}, Budget())
    assert agent.route("MINE_API_KEY", "sk-0123456789").token_ids == "sglang"
