"""Connections to a provider end with their client."""

from __future__ import annotations

import threading
from typing import Any, NoReturn

import pytest

from pytest_evocode.errors import Cancelled, ConnectionBroken
from pytest_evocode.llm import connection
from tests.llm.conftest import ASK, BASH, SECONDS, client_for, each_api
from tests.model_scripts import Fail, Say
from tests.model_server import ModelServer


@each_api
def test_a_closed_client_leaves_no_connection(api: str) -> None:
    with ModelServer([Say("Done.")]) as server:
        client = client_for(api, server)
        client.complete(ASK, [BASH], timeout=SECONDS)
        assert not server.is_left(seconds=0)
        client.close()
        client.close()
        assert server.is_left()


@each_api
def test_a_closed_client_asks_nobody_any_more(api: str) -> None:
    with ModelServer([]) as server:
        client = client_for(api, server)
        client.close()
        with pytest.raises(Cancelled, match=r"/.*: the connection was closed"):
            client.complete(ASK, [BASH], timeout=SECONDS)
        assert server.asked == []


def test_a_client_that_is_closed_while_it_waits_to_ask_again_does_not() -> None:
    with ModelServer([Fail(429, "Slow down", retry_after=60)]) as server:
        client = client_for("chat", server)
        threading.Timer(0.3, client.close).start()
        with pytest.raises(Cancelled):
            client.complete(ASK, [BASH], timeout=None)
        assert len(server.asked) <= 1
        assert server.is_left()


def test_a_client_that_is_closed_just_before_it_asks_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([]) as server:
        client, read = client_for("chat", server), connection._read

        def read_when_closed(*arguments: Any) -> Any:
            client.close()
            return read(*arguments)

        monkeypatch.setattr(connection, "_read", read_when_closed)
        with pytest.raises(Cancelled, match="the connection was closed"):
            client.complete(ASK, [BASH], timeout=SECONDS)
        assert server.asked == []


@pytest.mark.parametrize("retries", [0, 1])
def test_a_request_that_fails_because_its_client_is_closed_blames_nobody(
    retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([]) as server:
        client = client_for("chat", server, retries=retries)

        def read(*arguments: object) -> NoReturn:
            client.close()
            raise ConnectionBroken("Bad file descriptor")

        monkeypatch.setattr(connection, "_read", read)
        with pytest.raises(Cancelled, match="the connection was closed"):
            client.complete(ASK, [BASH], timeout=SECONDS)
