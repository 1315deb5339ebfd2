"""What each fault of a fake provider looks like to a client, and whether it is billed."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator

import pytest

from tests.model_scripts import Asked, Run, Say
from tests.providers.exchanges import Step, Usage
from tests.providers.faults import FAULTS, Decline, Drip, HangUp, Refuse, Silent
from tests.providers.requests_by_hand import APIS, headers_for, right, send, streamed, words_of
from tests.providers.server import ProviderServer

ENDS = {
    "messages": b"message_stop",
    "chat": b"[DONE]",
    "responses": b"response.completed",
    "gemini": b'"finishReason"',
}
STATUS = {"429": 429, "500": 500, "502": 502, "403": 403, "404": 404, "400": 400, "context": 400}
OVERLOADED = {"messages": 529, "chat": 503, "responses": 503, "gemini": 503}


def call(asked: Asked) -> Step:
    """One call, at first with a text of some words before it."""
    return [Say("I will look at the log, and at all that is beside it."), Run("cat log.txt")]


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(server: ProviderServer, api: str, stream: bool, timeout: float = 5.0) -> tuple[int, bytes]:
    body, path = streamed(api, right(api)) if stream else (right(api), "")
    status, _, answer = send(server, api, body, path=path, timeout=timeout)
    return status, answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", [name for name in FAULTS if name.split()[0] in STATUS])
def test_a_refusal_has_its_status_and_costs_nothing(name: str, stream: bool, api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS[name]}) as server:
        status, answer = ask(server, api, stream)
        assert status == STATUS[name.split()[0]]
        assert b"<html>" in answer or words_of(answer)
        assert server.exchanges[0].billed is None
        assert ask(server, api, stream)[0] == 200
        server.settle()
        assert server.exchanges[1].billed is not None
        assert server.exchanges[1].delivered


def test_an_overload_has_the_status_of_the_provider(api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS["overloaded"]}) as server:
        assert ask(server, api, True)[0] == OVERLOADED[api]


def test_a_rate_limit_says_when_to_come_again(api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS["429 with retry-after"], 2: Refuse("rate_limit")}) as server:
        _, headers, answer = send(server, api, right(api))
        if api == "gemini":
            assert json.loads(answer)["error"]["details"][0]["retryDelay"] == "1s"
        else:
            assert headers["retry-after"] == "1"
        _, headers, answer = send(server, api, right(api))
        assert headers["retry-after"] is None
        assert b"retryDelay" not in answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_connection_ends_before_any_answer(stream: bool, api: str) -> None:
    faults = {1: FAULTS["reset before headers"], 2: FAULTS["closed without an answer"]}
    with ProviderServer(call, faults=faults) as server:
        with pytest.raises(ConnectionResetError):
            ask(server, api, stream)
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, api, stream)
        assert [exchange.status for exchange in server.exchanges] == [None, None]
        assert ask(server, api, stream)[0] == 200


def test_nobody_listens_for_a_while() -> None:
    with ProviderServer(call, faults={1: HangUp(reset=True, down=0.2)}) as server:
        with pytest.raises(ConnectionResetError):
            ask(server, "chat", False)
        with pytest.raises(ConnectionRefusedError):
            ask(server, "chat", False)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            try:
                assert ask(server, "chat", False)[0] == 200
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        assert len(server.exchanges) == 2


@pytest.mark.parametrize("name", ["silent before headers", "silent in mid-stream"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_silence_lasts_until_the_client_leaves(name: str, stream: bool, api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS[name]}) as server:
        with pytest.raises(TimeoutError):
            ask(server, api, stream, timeout=0.2)
        server.settle()
        [exchange] = server.exchanges
        assert not exchange.delivered
        # A model that has begun to speak is paid for.
        assert (exchange.billed is not None) == ("stream" in name)


@pytest.mark.parametrize("name", ["broken stream", "stream without its end"])
def test_a_stream_lacks_its_end(name: str, api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS[name]}) as server:
        if name == "broken stream":
            with pytest.raises(http.client.IncompleteRead) as broken:
                ask(server, api, True)
            answer = broken.value.partial
        else:
            _, answer = ask(server, api, True)
        assert answer.startswith((b"data: {", b"event: "))
        assert ENDS[api] not in answer
        server.settle()
        [exchange] = server.exchanges
        assert (exchange.billed is not None, exchange.delivered) == (True, False)
        assert ENDS[api] in ask(server, api, True)[1]


def test_a_body_breaks_off(api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS["broken stream"]}) as server, pytest.raises(http.client.IncompleteRead):
        ask(server, api, False)


def test_an_error_comes_in_the_stream(api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS["error event"], 2: FAULTS["error event"]}) as server:
        status, answer = ask(server, api, True)
        assert status == 200
        assert ENDS[api] not in answer
        words = {"messages": b"overloaded_error", "gemini": b"UNAVAILABLE"}.get(api, b"server_is_overloaded")
        assert words in answer
        assert ask(server, api, False)[0] == OVERLOADED[api]


def test_an_answer_is_no_json(api: str) -> None:
    with ProviderServer(call, faults={1: FAULTS["200 that is no JSON"]}) as server:
        status, answer = ask(server, api, False)
        assert (status, answer[:6]) == (200, b"<html>")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_usage_is_not_what_is_billed(stream: bool, api: str) -> None:
    faults = {1: FAULTS["negative usage"], 2: FAULTS["usage missing"]}
    with ProviderServer(call, faults=faults) as server:
        assert b"-50" in ask(server, api, stream)[1]
        answer = ask(server, api, stream)[1]
        assert not any(name in answer for name in (b'"input_tokens"', b'"prompt_tokens"', b"promptTokenCount"))
        assert [exchange.billed is not None for exchange in server.exchanges] == [True, True]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_reply_is_cut_off(stream: bool, api: str) -> None:
    faults = {1: FAULTS["cut off in a text"], 2: FAULTS["cut off in a call"]}
    words = {
        "messages": b'"max_tokens"',
        "chat": b'"length"',
        "responses": b"max_output_tokens",
        "gemini": b"MAX_TOKENS",
    }
    with ProviderServer(call, faults=faults) as server:
        for number in (1, 2):
            answer = ask(server, api, stream)[1]
            assert words[api] in answer
            assert b"log.txt" not in answer
            # generateContent has a call whole or not at all.
            assert (b'"bash"' in answer.replace(b'"tools": [{"type": "function", "name": "bash"', b"")) == (
                number == 2 and api != "gemini"
            )


def test_calls_have_odd_names_and_ids(api: str) -> None:
    faults = {1: FAULTS["odd tool name"], 2: FAULTS["odd call id"], 3: FAULTS["empty call id"]}
    with ProviderServer(call, faults=faults) as server:
        assert b'"name": "functions.bash:0"' in ask(server, api, False)[1]
        assert b'id": "functions.bash:0"' in ask(server, api, False)[1]
        assert b'id": ""' in ask(server, api, False)[1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_refuses(stream: bool, api: str) -> None:
    with ProviderServer(call, faults={1: Decline()}) as server:
        answer = ask(server, api, stream)[1]
        words = {"messages": b'"stop_reason": "refusal"', "gemini": b'"SAFETY"'}
        assert words.get(api, b"refusal") in answer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_reply_drips(stream: bool, api: str) -> None:
    with ProviderServer(call, faults={1: Drip(0.3)}) as server:
        begin = time.monotonic()
        status, answer = ask(server, api, stream)
        assert time.monotonic() - begin > 0.25
        assert status == 200
        assert b"log.txt" in answer or stream
        server.settle()
        assert server.exchanges[0].delivered


def test_what_arrived_is_told_from_what_did_not() -> None:
    usages: Iterator[Usage] = iter([Usage(1, output=2), Usage(10, output=20), Usage(100, output=200)])

    def script(asked: Asked) -> Step:
        return [Say("A text."), next(usages)]

    with ProviderServer(script, faults={2: Silent(after=2), 3: Refuse("server")}) as server:
        ask(server, "messages", True)
        with pytest.raises(TimeoutError):
            ask(server, "messages", True, timeout=0.2)
        ask(server, "messages", True)
        ask(server, "messages", True)
        server.settle()
        assert server.billed() == Usage(111, output=222)
        assert server.billed(delivered=True) == Usage(101, output=202)
        assert server.billed(delivered=False) == Usage(10, output=20)
        assert server.billed().cost(1.0, 0.1, 1.25, 10.0) == pytest.approx((111 + 2220) / 1_000_000)


def test_a_client_that_leaves_in_mid_stream_is_seen() -> None:
    with ProviderServer(call, faults={1: Drip(0.4)}) as server:
        body, path = streamed("messages", right("messages"))
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", path, json.dumps(body), headers_for("messages"))
        answer = connection.getresponse()
        assert answer.read(10)
        answer.close()
        connection.close()
        server.settle()
        [exchange] = server.exchanges
        assert (exchange.status, exchange.delivered) == (200, False)
