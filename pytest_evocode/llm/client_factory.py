"""Makes the client for a model: which API it is asked through."""

from __future__ import annotations

import difflib

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.anthropic_messages import MessagesClient
from pytest_evocode.llm.connection import PROVIDERS, ProviderConnection
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.openai_chat import ChatClient
from pytest_evocode.llm.openai_responses import ResponsesClient
from pytest_evocode.llm.prices import find_model_facts
from pytest_evocode.llm.protocol import ModelClient


def make_client(provider: str, model: str, options: ModelOptions | None = None) -> ModelClient:
    """Return a client for a model; sends no request and imports no SDK.

    Args:
        provider: ``openai`` or ``anthropic``.
        model: The model's name at the provider.
        options: How the model is asked.

    Raises:
        UsageError: The provider is unknown, it does not have one of the options, or the price file cannot be read.
    """
    options = options or ModelOptions()
    if provider not in PROVIDERS:
        nearest = difflib.get_close_matches(provider, PROVIDERS, n=1)
        hint = f"; did you mean {nearest[0]}/{model}?" if nearest else ""
        raise UsageError(f"unknown provider {provider!r}{hint} known are {', '.join(PROVIDERS)}; a server that is "
                         "compatible with one of them has the option base_url")  # fmt: skip
    connection = ProviderConnection(PROVIDERS[provider], model, options)
    facts = find_model_facts(model, options.prices)
    if provider == "anthropic":
        if options.api is not None:
            raise UsageError(f"{connection.label}: the option api exists only for openai; anthropic has only Messages")
        return MessagesClient(connection, model, options, facts)
    if options.thinking is not None:
        raise UsageError(f"{connection.label}: the option thinking exists only for anthropic; openai has effort")
    if (options.api or ("responses" if connection.is_official else "chat")) == "responses":
        return ResponsesClient(connection, model, options, facts)
    return ChatClient(connection, model, options, facts)
