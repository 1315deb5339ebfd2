"""What one request tells before anything starts: the port, the key, the model."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.base_client import BaseClient
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
}
each_provider = pytest.mark.parametrize("provider", KEYS)


def probe(provider: str, url: str, model: str = "qwen3-coder") -> None:
    base_url = f"{url}/v1" if provider == "openai" else url
    with closing(make_client(provider, model, ModelOptions(base_url=base_url))) as client:
        assert isinstance(client, BaseClient)
        client.probe()


@each_provider
def test_a_port_where_nothing_listens_is_told(provider: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"nothing listens at {url}.*; start the server, or correct base_url"):
            probe(provider, url)


@contextmanager
def answering(answer: str) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the URL of a port that gives every connection one answer, and what it was sent."""
    asked: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    asked.append(connection.recv(65536))
                    connection.sendall(answer.encode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@each_provider
def test_a_port_that_does_not_speak_http_is_told(provider: str) -> None:
    words = "what answers at http://.* does not speak HTTP; correct base_url"
    with answering("SSH-2.0-OpenSSH\r\n") as (url, _), pytest.raises(UsageError, match=words):
        probe(provider, url)


@each_provider
def test_a_redirection_is_not_given_the_key(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[provider], "a-key-of-the-tests")
    with answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") as (elsewhere, asked):
        moved = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}/v1/models\r\nContent-Length: 0\r\n\r\n"
        with answering(moved) as (url, first):
            probe(provider, url)
    assert b"a-key-of-the-tests" in first[0]
    assert asked == []


@each_provider
def test_a_key_that_is_refused_is_told(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[provider], "a-wrong-key-of-the-tests")
    with ModelServer([], key="the-right-key") as server:
        words = f"the server at {server.url}.* refuses the key in .*{KEYS[provider]}.*; set a valid one"
        with pytest.raises(UsageError, match=words) as told:
            probe(provider, server.url)
    assert "a-wrong-key" not in str(told.value)


@each_provider
def test_a_key_that_is_right_is_not_refused(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[provider], "the-right-key")
    with ModelServer([], key="the-right-key") as server:
        probe(provider, server.url)


def test_google_refuses_a_key_as_a_wrong_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-wrong-key-of-the-tests")
    body = '{"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}}'
    refusal = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with answering(refusal) as (url, asked), pytest.raises(UsageError, match="refuses the key in GEMINI_API_KEY"):
        probe("google", url)
    assert asked[0].startswith(b"GET /v1beta/models ")


def test_a_refusal_that_breaks_off_says_nothing() -> None:
    with answering("HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nbroken") as (url, _):
        probe("google", url)


def test_a_deployment_of_azure_is_in_no_list() -> None:
    with ModelServer([], models=["gpt-5"]) as server:
        probe("azure", f"{server.url}/openai", model="my-deployment")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("models", "words"),
    [
        (["qwen3-coder-30b", "llama"], "has no such model; did you mean 'qwen3-coder-30b'?"),
        (["llama", "phi"], "has no such model; it has llama, phi"),
    ],
)
def test_a_model_that_a_server_on_this_machine_does_not_have_is_told(
    provider: str, models: Sequence[str], words: str
) -> None:
    with ModelServer([], models=models) as server, pytest.raises(UsageError, match=re.escape(words)):
        probe(provider, server.url)


@pytest.mark.parametrize("models", [[], ["qwen3-coder"], ["qwen3-coder:latest"], ["qwen*"]])
def test_a_model_that_may_be_there_is_not_refused(models: Sequence[str]) -> None:
    with ModelServer([], models=models) as server:
        probe("openai", server.url)
        assert server.asked == []
        assert server.is_left()


def test_a_server_without_a_list_says_nothing() -> None:
    with ModelServer([]) as server:
        probe("openai", f"{server.url}/elsewhere?x=")
