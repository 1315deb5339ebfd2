"""A gateway, and programs that ask through it, with a fake provider behind."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_evocode.gateway import Exchange, Family, Gateway, GatewaySession, Route
from pytest_evocode.llm import provider_errors
from pytest_evocode.llm.connection_limits import LocalConnections, RequestPace, connections_shared_by
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts
from tests.providers.requests_by_hand import APIS, path_for, right, streamed
from tests.providers.server import KEY, ProviderServer

FAMILIES: dict[str, Family] = {"messages": "anthropic", "chat": "openai", "responses": "openai", "gemini": "google"}
PRICES = ModelFacts(input=1.0, cached_input=0.1, cache_write=1.25, output=5.0)
each_api = pytest.mark.parametrize("api", APIS)
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@dataclass
class Program:
    """What runs in a container in earnest: it knows an address, a base path and a token."""

    gateway: Gateway
    session: GatewaySession
    exchanges: list[Exchange] = field(default_factory=list)

    def ask(
        self,
        api: str,
        body: Any = None,
        *,
        stream: bool = False,
        path: str = "",
        headers: dict[str, str] | None = None,
        timeout: float = 60.0,
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request that is right, or another one, and return the status, the headers and the body."""
        body = right(api) if body is None else body
        path = path or path_for(api)
        if stream:
            body, path = streamed(api, body)
        return self.send("POST", f"/{FAMILIES[api]}{path}", body, headers or self.headers(api), timeout)

    def send(
        self, method: str, path: str, body: Any, headers: dict[str, str], timeout: float = 60.0
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send anything."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=timeout)
        try:
            written = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, written, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def headers(self, api: str) -> dict[str, str]:
        """The headers of the provider's SDK, with the token for a key."""
        named = {"messages": {"x-api-key": self.session.token}, "gemini": {"x-goog-api-key": self.session.token}}
        given = named.get(api, {"Authorization": f"Bearer {self.session.token}"})
        return {"Content-Type": "application/json", "anthropic-version": "2023-06-01"} | given

    def end(self) -> list[Exchange]:
        """Close the session, and return what was recorded."""
        self.session.close()
        return self.exchanges


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tries follow each other soon, and no account has a pace from earlier tests."""
    monkeypatch.setattr(provider_errors, "_FIRST_WAIT", 0.12)
    monkeypatch.setattr(RequestPace, "wait", lambda self, now, ticket: 0.0)
    with connections_shared_by(LocalConnections()):
        yield


def route_to(server: ProviderServer, api: str, **options: Any) -> Route:
    """The way to a fake provider."""
    return Route(
        family=FAMILIES[api],
        base_url=server.url_for(api),
        key=KEY,
        prices=lambda model: PRICES,
        options=ModelOptions(**options),
    )


@pytest.fixture
def program(gateway: Gateway) -> Iterator[Callable[..., Program]]:
    """Opens sessions, which are closed at the end."""
    opened: list[Program] = []

    def start(*routes: Route, **options: Any) -> Program:
        exchanges: list[Exchange] = []
        session = gateway.open(*routes, **{"record": exchanges.append, **options})
        opened.append(Program(gateway, session, exchanges))
        return opened[-1]

    yield start
    for each in opened:
        each.end()
