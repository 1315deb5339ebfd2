"""What agents say of who answers besides the model's name: the server that they really ask, without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.agents.declarations import Declaration, Declarations
from pytest_evocode.agents.specs import Option, answered_by, make_agent


@pytest.fixture(autouse=True)
def _nothing_of_the_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "OPENAI_API_VERSION"),
        *("AZURE_OPENAI_ENDPOINT", "AWS_REGION", "CLOUD_ML_REGION"),
    ):
        monkeypatch.delenv(name, raising=False)


def asked(spec: str, declarations: Declarations | None = None, **values: str) -> dict[str, Any]:
    options = {name: Option(value, "the test") for name, value in values.items()}
    return answered_by(make_agent(spec, options, declarations), options)


@pytest.mark.parametrize(
    ("spec", "variables", "said"),
    [
        ("openai/gpt-5", {}, {}),
        ("openai/gpt-5", {"OPENAI_BASE_URL": "https://api.openai.com/v1/"}, {}),
        (
            "openai/gpt-5",
            {"OPENAI_BASE_URL": "http://me:pw@models:8000/v1?key=x"},
            {"base_url": "http://models:8000/v1"},
        ),
        ("anthropic/claude", {"ANTHROPIC_BASE_URL": "http://models"}, {"base_url": "http://models"}),
        (
            "anthropic/claude",
            {"ANTHROPIC_CUSTOM_HEADERS": "X-Route: cheap\nX-Api-Key: secret"},
            {"headers": {"X-Route": "cheap"}},
        ),
        (
            "azure/gpt-5",
            {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/openai/v1/", "OPENAI_API_VERSION": "2024-10-21"},
            {"base_url": "https://mine.openai.azure.com", "api_version": "2024-10-21"},
        ),
        ("bedrock/claude", {"AWS_REGION": "us-east-1"}, {"region": "us-east-1"}),
        ("vertex/claude", {"CLOUD_ML_REGION": "global"}, {"region": "global"}),
    ],
)
def test_a_model_is_asked_where_its_client_was_made_for(
    monkeypatch: pytest.MonkeyPatch, spec: str, variables: dict[str, str], said: dict[str, Any]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert asked(spec) == said


def test_an_option_is_the_same_as_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked("openai/gpt-5", base_url="http://models:8000/v1", calls="text")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://models:8000/v1")
    assert given == asked("openai/gpt-5") == {"base_url": "http://models:8000/v1"}


@pytest.mark.parametrize(
    ("spec", "values", "said"),
    [
        ("claude-code:opus", {"base_url": "http://models:8000/"}, {"base_url": "http://models:8000"}),
        ("codex:gpt-5", {}, {}),
        ("codex:gpt-5", {"base_url": "https://api.openai.com/v1"}, {}),
        ("opencode:groq/llama", {}, {}),
        ("opencode:groq/llama", {"base_url": "https://api.groq.com/openai/v1"}, {}),
        ("opencode:anthropic/claude", {"base_url": "http://models/v1"}, {"base_url": "http://models"}),
        ("acp:mine", {"api": "google", "base_url": "http://models"}, {"base_url": "http://models"}),
        ("acp:mine", {"api": "google"}, {}),
    ],
)
def test_a_program_is_answered_by_by_the_gateway(spec: str, values: dict[str, str], said: dict[str, Any]) -> None:
    assert asked(spec, None, **values) == said


def test_a_command_says_the_server_of_its_declaration(tmp_path: Any) -> None:
    values = {"start": "true", "api": "openai", "base_url": "http://models:8000/v1"}
    declared = Declaration("mine", values, tmp_path / "pyproject.toml", 1)
    assert asked("cmd:mine", Declarations(commands={"mine": declared})) == {"base_url": "http://models:8000/v1"}


def test_of_an_agent_that_does_not_say_the_option_is_taken() -> None:
    said = answered_by(object(), {"base_url": Option("http://key@models:8000/v1", "the test")})  # type: ignore[arg-type]
    assert said == {"base_url": "http://models:8000/v1"}
