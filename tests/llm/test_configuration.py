"""What is told before anything starts: providers, options, keys, packages."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import pytest
from pydantic import ValidationError

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.anthropic_messages import MessagesClient
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.openai_chat import ChatClient
from pytest_evocode.llm.openai_responses import ResponsesClient
from tests.llm.conftest import ASK, BASH, SECONDS, client_for
from tests.model_scripts import Say
from tests.model_server import ModelServer

PROVIDERS = [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")]


def test_openai_itself_is_spoken_to_by_responses_and_other_servers_by_chat_completions() -> None:
    elsewhere = ModelOptions(base_url="http://localhost:8000/v1")
    assert isinstance(make_client("openai", "m"), ResponsesClient)
    assert isinstance(make_client("openai", "m", elsewhere), ChatClient)
    assert isinstance(
        make_client("openai", "m", ModelOptions(base_url="https://eu.api.openai.com/v1")), ResponsesClient
    )
    assert isinstance(make_client("anthropic", "m", elsewhere), MessagesClient)


def test_the_option_api_chooses() -> None:
    assert isinstance(make_client("openai", "m", ModelOptions(api="chat")), ChatClient)
    assert isinstance(
        make_client("openai", "m", ModelOptions(api="responses", base_url="http://x/v1")), ResponsesClient
    )


@pytest.mark.parametrize(
    ("provider", "options", "words"),
    [
        (
            "opanai",
            ModelOptions(),
            "unknown provider 'opanai'; did you mean openai/m? known are openai, anthropic, google",
        ),
        ("zzz", ModelOptions(), "a server that is compatible with one of them has the option base_url"),
        (
            "anthropic",
            ModelOptions(api="chat"),
            "anthropic/m: the option api exists only for openai, azure; it has Messages only",
        ),
        (
            "openai",
            ModelOptions(token_ids="vllm"),
            "openai/m: servers say token ids in Chat Completions alone; set base_url",
        ),
        ("azure", ModelOptions(token_ids="vllm"), "azure/m: the option token_ids exists only for openai"),
        (
            "openai",
            ModelOptions(thinking=1),
            "openai/m: the option thinking exists only for anthropic, bedrock, vertex, google; use effort=high",
        ),
    ],
)
def test_what_there_is_not_is_told(provider: str, options: ModelOptions, words: str) -> None:
    with pytest.raises(UsageError) as told:
        make_client(provider, "m", options)
    assert words in str(told.value)


@pytest.mark.parametrize(("provider", "variable"), PROVIDERS)
def test_a_missing_key_is_named_by_its_variable(provider: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=rf"{provider}/m needs a key: set {variable}, or name"):
        make_client(provider, "m").check()
    with pytest.raises(UsageError, match="set MY_KEY, or name"):
        make_client(provider, "m", ModelOptions(key_env="MY_KEY")).check()
    monkeypatch.setenv("MY_KEY", "x")
    make_client(provider, "m", ModelOptions(key_env="MY_KEY")).check()
    monkeypatch.setenv(variable, "x")
    make_client(provider, "m").check()


@pytest.mark.parametrize(("provider", "variable"), PROVIDERS)
def test_a_key_is_missing_when_the_model_is_asked_without_a_check(provider: str, variable: str) -> None:
    with pytest.raises(UsageError, match=variable):
        make_client(provider, "m").complete(ASK, [BASH], timeout=SECONDS)


def test_anthropics_other_variable_is_a_key_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    make_client("anthropic", "m").check()
    with ModelServer([Say("Done.")]) as server:
        client_for("messages", server, "m").complete(ASK, [BASH], timeout=SECONDS)
    assert server.asked[0].headers["authorization"] == "Bearer token"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_server_of_ones_own_needs_no_key_and_may_be_given_by_the_sdks_variable(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([Say("Done.")]) as server:
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.url)
        with closing(make_client(provider, "m")) as client:
            client.check()
            assert client.complete(ASK, [BASH], timeout=SECONDS).text == "Done."
    assert server.asked[0].path == ("/chat/completions" if provider == "openai" else "/v1/messages")


@pytest.mark.parametrize(("provider", "variable"), PROVIDERS)
def test_a_missing_package_is_named_with_the_extra(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "x")
    monkeypatch.setitem(sys.modules, provider, None)  # as Python notes that there is none
    with pytest.raises(
        UsageError, match=rf"{provider}/m needs the package {provider}: pip install 'pytest-evocode\[{provider}\]'"
    ):
        make_client(provider, "m").check()


def test_no_sdk_is_imported_before_a_model_is_asked() -> None:
    program = (
        "import sys; from pytest_evocode.llm.client_factory import make_client; "
        "make_client('openai', 'gpt-5.2'); make_client('anthropic', 'claude-opus-4-8'); "
        "print([name for name in ('openai', 'anthropic', 'httpx', 'httpx2') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_an_address_without_http_is_refused() -> None:
    with pytest.raises(ValidationError, match="base_url"):
        ModelOptions(base_url="localhost:8000/v1")


def test_every_option_is_described() -> None:
    assert [name for name, field in ModelOptions.model_fields.items() if not field.description] == []


def test_a_key_has_a_name_that_is_kept_out_of_records() -> None:
    with pytest.raises(UsageError, match="call it MINE_API_KEY"):
        make_client("openai", "m", ModelOptions(key_env="MINE")).check()


def test_an_address_holds_no_password() -> None:
    with pytest.raises(ValidationError, match="base_url"):
        ModelOptions(base_url="http://me:secret@localhost:8000/v1")
