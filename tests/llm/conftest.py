"""Clients of the model server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.connection import ProviderConnection
from pytest_evocode.llm.connection_limits import LocalConnections, RequestPace, connections_shared_by
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, ModelClient, Tool
from tests.model_server import ModelServer

BASH = Tool(
    "bash",
    "Runs a command.",
    {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}},
        "required": ["command"],
    },
)
ASK = (Message("system", "You are an agent."), Message("user", "Solve it."))
MODELS = {"chat": "gpt-5.2", "responses": "gpt-5.2", "messages": "claude-sonnet-4-5"}
SECONDS = 30.0

each_api = pytest.mark.parametrize("api", MODELS)
each_openai_api = pytest.mark.parametrize("api", ["chat", "responses"])


_made: list[ModelClient] = []


@pytest.fixture(autouse=True)
def _clients_are_closed() -> Iterator[None]:
    yield
    while _made:
        _made.pop().close()


@pytest.fixture(scope="session")
def no_authorities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty directory: each client would read all certificates of the machine, and speaks to no server by TLS."""
    return tmp_path_factory.mktemp("no-authorities")


@pytest.fixture(autouse=True)
def _nothing_of_the_machines_own(monkeypatch: pytest.MonkeyPatch, no_authorities: Path) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(no_authorities))
    for provider in ("OPENAI", "ANTHROPIC"):
        for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL"):
            monkeypatch.delenv(f"{provider}_{name}", raising=False)


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses that clients make, in seconds, none of which takes any time; without a pace of all clients."""
    pauses: list[float] = []
    monkeypatch.setattr(ProviderConnection, "_pause", lambda self, seconds: pauses.append(seconds))
    monkeypatch.setattr(RequestPace, "wait", lambda self, now, ticket: 0.0)
    with connections_shared_by(LocalConnections()):
        yield pauses


def client_for(api: str, server: ModelServer, model: str | None = None, **options: Any) -> ModelClient:
    """A client that speaks to the server through that API, until the test ends."""
    provider, more = ("openai", {"api": api, "base_url": f"{server.url}/v1"})
    if api == "messages":
        provider, more = ("anthropic", {"base_url": server.url})
    _made.append(make_client(provider, model or MODELS[api], ModelOptions.model_validate(more | options)))
    return _made[-1]
