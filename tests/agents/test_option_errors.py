"""Options that are wrong: one line that says where, what, and what would work."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_evocode.agents.acp.agent import AcpOptions
from pytest_evocode.agents.installed.declared_command import CommandAgent
from pytest_evocode.agents.shell.agent import ShellOptions
from pytest_evocode.agents.specs import _INSTALLED, Option, example_of, make_agent
from pytest_evocode.errors import UsageError

WHERE = "--evocode-agent-option"
NO_NUMBER = "Input should be a valid number, unable to parse string as a number"
NO_INTEGER = "Input should be a valid integer, unable to parse string as an integer"
NO_ADDRESS = "an address begins with http:// or https:// and the name of a host"
NO_TABLE = "it has to be a table, in JSON on the command line"
SHELL, CLI, CLAUDE = "openai/gpt-5", "codex:gpt-5", "claude-code:opus"


@pytest.mark.parametrize(
    ("spec", "name", "value", "words", "works"),
    [
        (SHELL, "temperature", "hot", NO_NUMBER, "0.2"),
        (SHELL, "temperature", "-1", "Input should be greater than or equal to 0", "0.2"),
        (SHELL, "top_p", "2", "Input should be less than or equal to 1", "0.95"),
        (SHELL, "seed", "x", NO_INTEGER, "7"),
        (SHELL, "retries", "-1", "Input should be greater than or equal to 0", "8"),
        (SHELL, "retry_seconds", "long", NO_NUMBER, "600"),
        (SHELL, "max_tokens", "0", "Input should be greater than 0", "16000"),
        (SHELL, "calls", "txt", "Input should be 'tools' or 'text'", "tools"),
        (SHELL, "api", "completions", "Input should be 'chat' or 'responses'", "chat"),
        (SHELL, "extra_body", "top_k=1", NO_TABLE, '{"top_k": 20}'),
        (SHELL, "base_url", "localhost:8000", NO_ADDRESS, "http://localhost:8000/v1"),
        (SHELL, "base_url", "http://localhost:80000/v1",
         "the port of an address is a number from 1 to 65535", "http://localhost:8000/v1"),
        (SHELL, "base_url", "http://me:secret@host/v1",
         "an address must not hold a name or a password, which would be recorded; use key_env", "http://localhost:8000/v1"),
        (CLI, "base_url", "host:1", NO_ADDRESS, "http://model-server:8000"),
        (CLI, "version", "a b", "it is not in the right form", "0.171.0"),
        (CLI, "env", "A=b", NO_TABLE, '{"NAME": "value"}'),
        (CLI, "env", "{A",
         "it is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
         '{"NAME": "value"}'),
    ],
)  # fmt: skip
def test_a_value_that_an_option_cannot_have(spec: str, name: str, value: str, words: str, works: str) -> None:
    assert refusal(spec, name, value) == f"{WHERE}: {name} = {value!r}: {words}; write it such as {name}={works}"


@pytest.mark.parametrize(
    ("spec", "name", "message"),
    [
        (SHELL, "temprature",
         "openai/gpt-5 has no option 'temprature'; did you mean 'temperature'? Such as temperature=0.2"),
        (SHELL, "regoin", "openai/gpt-5 has no option 'regoin'; it takes api, base_url"),
        (SHELL, "thinking",
         "openai/gpt-5: the option thinking exists only for anthropic, bedrock, vertex, google; use effort=high"),
        (SHELL, "region", "openai/gpt-5: the option region exists only for bedrock, vertex; leave it out"),
        ("anthropic/m", "api", "anthropic/m: the option api exists only for openai, azure; it has Messages only"),
        ("anthropic/m", "seed", "anthropic/m: the option seed exists only for openai, azure, google; leave it out"),
        ("google/m", "api_version", "google/m: the option api_version exists only for azure; leave it out"),
        (CLAUDE, "max_trns", "claude-code:opus has no option 'max_trns'; did you mean 'max_turns'?"),
        (CLI, "temperature", "codex:gpt-5 has no option 'temperature'; it takes "),
        ("oracle", "effort", "oracle has no option 'effort'; it takes none"),
    ],
)  # fmt: skip
def test_an_option_that_an_agent_does_not_take(spec: str, name: str, message: str) -> None:
    said = refusal(spec, name, "1")
    assert said.startswith(f"{WHERE}: {message}")
    assert "\n" not in said


def refusal(spec: str, name: str, value: Any) -> str:
    with pytest.raises(UsageError) as told:
        make_agent(spec, {name: Option(value, WHERE)})
    return str(told.value)


def all_options() -> list[tuple[type[BaseModel], str]]:
    """Every option of every kind of agent."""
    kinds: list[Any] = [ShellOptions, CommandAgent.options_type, AcpOptions]
    for place in _INSTALLED.values():
        module, _, name = place.partition(":")
        kinds.append(getattr(importlib.import_module(f"pytest_evocode.agents.installed.{module}"), name).options_type)
    return [(kind, name) for kind in kinds for name in kind.model_fields]


@pytest.mark.parametrize(("kind", "name"), all_options())
def test_every_value_that_a_message_proposes_would_work(
    kind: type[BaseModel], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _, value = example_of(kind, name).partition("=")
    assert value
    # As the command line has it: a text.
    assert key in kind.model_validate({key: value}).model_fields_set | {kind.model_fields[name].alias}
