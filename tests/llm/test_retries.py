"""What is repeated, how long it is waited for, and when no longer."""

from __future__ import annotations

import email.utils
import logging
import re
import socket
import time
from contextlib import closing
from typing import Any

import pytest

from pytest_evocode.errors import AgentFault, ModelFault
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.connection import ProviderConnection
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.provider_errors import from_status
from pytest_evocode.llm.waiting import Waiting, counted_in
from tests.llm.conftest import ASK, BASH, MODELS, SECONDS, client_for, each_api, each_openai_api
from tests.model_scripts import Delay, Fail, HangUp, Part, Say, Trickle
from tests.model_server import ModelServer


@each_api
@pytest.mark.parametrize("status", [429, 500])
def test_a_passing_fault_is_asked_again(api: str, status: int) -> None:
    with ModelServer([Fail(status, retry_after=0.01), Say("Done.")]) as server:
        assert client_for(api, server).complete(ASK, [BASH], timeout=SECONDS).text == "Done."
    assert server.left == 0


@each_api
def test_a_fault_that_would_not_pass_is_told_at_once(api: str) -> None:
    told = pytest.raises(ModelFault, match=r"the request was refused: no \(status 422, request req_")
    with ModelServer([Fail(422, "no")]) as server, told:
        client_for(api, server).complete(ASK, [BASH], timeout=SECONDS)
    assert len(server.asked) == 1


def test_what_helps_depends_on_the_status() -> None:
    kinds = {
        "final": (400, 401, 402, 403, 404, 405, 422),
        "passing": (408, 409, 500, 502, 503, 504, 520),
        "rate limit": (429, 529),
        "overflow": (413,),
    }
    for kind, statuses in kinds.items():
        assert {from_status(status, "no", {}).kind for status in statuses} == {kind}


@each_api
def test_a_connection_that_ends_without_an_answer_is_made_again(api: str, naps: list[float]) -> None:
    with ModelServer([HangUp(), Say("Done.")]) as server:
        assert client_for(api, server).complete(ASK, [BASH], timeout=SECONDS).text == "Done."
    assert len(naps) == 1


def test_the_provider_says_how_long_to_wait(naps: list[float]) -> None:
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    faults = [
        Fail(429, retry_after=7),
        Fail(503, retry_after=3),
        Fail(429, headers={"retry-after-ms": "1500", "Retry-After": "9"}),
        Fail(429, headers={"Retry-After": date}),
    ]
    with ModelServer([*faults, Say("Done.")]) as server:
        client_for("chat", server).complete(ASK, [BASH], timeout=None)
    assert naps == [7, 3, 1.5, pytest.approx(100, abs=3)]


def test_where_it_does_not_say_the_pauses_grow(naps: list[float]) -> None:
    with ModelServer([Fail(500)] * 8 + [Say("Done.")]) as server:
        client_for("chat", server).complete(ASK, [BASH], timeout=None)
    assert len(naps) == 8
    assert all(longest / 2 <= nap <= longest for nap, longest in zip(naps, (0.5, 1, 2, 4, 8, 16, 32, 60), strict=True))


def test_a_header_that_makes_no_sense_is_not_believed(naps: list[float]) -> None:
    with ModelServer([Fail(429, headers={"Retry-After": "soon"}), Say("Done.")]) as server:
        client_for("chat", server).complete(ASK, [BASH], timeout=None)
    assert 0 < naps[0] <= 0.5


@each_api
def test_a_provider_that_goes_on_failing_is_given_up_with_its_words(api: str, naps: list[float]) -> None:
    with ModelServer([Fail(500, "Out of order")] * 3) as server:
        client = client_for(api, server, retries=2)
        with pytest.raises(
            ModelFault, match=r"the provider failed 3 times: Out of order \(status 500, request req_\d+\)"
        ):
            client.complete(ASK, [BASH], timeout=SECONDS)


def test_a_rate_limit_is_waited_for_as_long_as_the_option_says_however_often_it_comes(naps: list[float]) -> None:
    with ModelServer([Fail(429, retry_after=1)] * 12 + [Say("Done.")]) as server:
        assert client_for("chat", server, retries=0).complete(ASK, [BASH], timeout=None).text == "Done."
    with ModelServer([Fail(429, "Slow down", retry_after=31)]) as server:
        client = client_for("chat", server, retry_seconds=30)
        with pytest.raises(ModelFault) as given_up:
            client.complete(ASK, [BASH], timeout=None)
    assert "the rate limit has not ended within 30 seconds (the provider wants 31 more)" in str(given_up.value)
    assert "see the option retry_seconds: Slow down (status 429, request req_" in str(given_up.value)


def test_a_rate_limit_that_ends_for_money_only_is_not_waited_for() -> None:
    quota = Fail(429, "You exceeded your current quota", code="insufficient_quota", retry_after=0)
    with (
        ModelServer([quota]) as server,
        pytest.raises(ModelFault, match="the account's quota is used up: You exceeded your current quota"),
    ):
        client_for("responses", server).complete(ASK, [BASH], timeout=SECONDS)


def test_the_provider_may_say_that_a_repetition_helps() -> None:
    with ModelServer([Fail(400, headers={"x-should-retry": "true"}, retry_after=0), Say("Done.")]) as server:
        assert client_for("messages", server).complete(ASK, [BASH], timeout=SECONDS).text == "Done."


def test_the_provider_may_say_that_no_repetition_helps() -> None:
    with ModelServer([Fail(500, headers={"x-should-retry": "false"})]) as server, pytest.raises(ModelFault):
        client_for("messages", server).complete(ASK, [BASH], timeout=SECONDS)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("api", "busy"), [("chat", Trickle(9)), ("responses", Delay(9)), ("messages", Delay(9))])
def test_a_model_that_is_at_it_for_too_long_is_a_timeout(api: str, busy: Part) -> None:
    late = pytest.raises(TimeoutError, match=rf"/{MODELS[api]}: the model has not answered in time")
    with ModelServer([[busy, Say("Done.")]]) as server, late:
        client_for(api, server).complete(ASK, [BASH], timeout=0.4)


@each_api
@pytest.mark.matrix
def test_blanks_before_an_answer_that_comes_in_time_do_no_harm(api: str) -> None:
    with ModelServer([[Trickle(0.3), Say("Done.")]]) as server:
        assert client_for(api, server).complete(ASK, [BASH], timeout=SECONDS).text == "Done."


def test_no_time_left_is_a_timeout_before_anybody_is_asked() -> None:
    with ModelServer([]) as server, pytest.raises(TimeoutError, match="no time is left"):
        client_for("chat", server).complete(ASK, [BASH], timeout=0)
    assert server.asked == []


@each_openai_api
def test_a_request_that_is_sent_again_in_other_words_has_what_is_left_of_the_time(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    post = ProviderConnection.post

    def recorded(
        self: ProviderConnection, resource: Any, payload: Any, options: Any, timeout: float | None, *more: Any
    ) -> Any:
        assert timeout is not None
        given.append(timeout)
        return post(self, resource, payload, options, timeout, *more)

    monkeypatch.setattr(ProviderConnection, "post", recorded)
    words = {"chat": "Use 'max_completion_tokens' instead.", "responses": "Encrypted content is not supported"}
    with ModelServer([Fail(400, words[api]), Say("Done.")]) as server:
        client_for(api, server).complete(ASK, [BASH], timeout=SECONDS)
    first, second = given
    assert second < first <= SECONDS


@pytest.mark.parametrize(
    "faults", [[Fail(429, "Slow down", retry_after=50)], [Fail(503)], [HangUp()]], ids=["429", "503", "hang up"]
)
def test_what_is_waited_for_the_provider_is_not_the_models_time(faults: list[Part], naps: list[float]) -> None:
    now = [0.0]

    def pass_time(self: ProviderConnection, seconds: float) -> None:
        now[0] += seconds

    with pytest.MonkeyPatch.context() as patch, ModelServer([*faults, Say("Done.")]) as server:
        patch.setattr(ProviderConnection, "_pause", pass_time)
        # 0.1 s are no time for a pause of half a second.
        waiting = Waiting(clock=lambda: now[0])
        client = client_for("chat", server)
        client.prepare()
        with counted_in(waiting):
            reply = client.complete(ASK, [BASH], timeout=0.4)
    assert reply.text == "Done."
    assert waiting.waits is not None
    assert waiting.waits.retries == 1
    assert list(waiting.waits.seconds) == [
        {429: "rate limit", 503: "provider"}.get(getattr(faults[0], "status", 0), "network")
    ]
    assert waiting.seconds >= now[0] > 0.2


def test_a_turn_that_waits_longer_than_it_may_is_the_providers_fault(naps: list[float]) -> None:
    with ModelServer([Fail(429, retry_after=50)]) as server, counted_in(Waiting(40)):
        client = client_for("chat", server)
        with pytest.raises(
            ModelFault, match=r"may wait 0\.667 minutes .*evocode_waiting_minutes.* 50 s more.* --evocode-resume"
        ):
            client.complete(ASK, [BASH], timeout=10)
    assert naps == []


def test_a_dead_connection_is_given_up_and_made_anew(naps: list[float]) -> None:
    with ModelServer([[Delay(9), Say("Never.")], Say("Done.")]) as server:
        client = client_for("messages", server, silence_seconds=0.3)
        assert client.complete(ASK, [BASH], timeout=SECONDS).text == "Done."


def test_an_address_where_nobody_has_ever_answered_is_given_up_sooner(naps: list[float]) -> None:
    with ModelServer([HangUp()] * 4) as server, pytest.raises(ModelFault, match=r"cannot be reached, tried 4 times"):
        client_for("messages", server).complete(ASK, [BASH], timeout=SECONDS)
    with ModelServer([Say("Hello."), *[HangUp()] * 8, Say("Done.")]) as server:
        client = client_for("messages", server)
        client.complete(ASK, [BASH], timeout=None)
        assert client.complete(ASK, [BASH], timeout=None).text == "Done."


def test_a_host_that_cannot_be_reached_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with (
            closing(make_client("openai", "gpt-5.2", ModelOptions(base_url=url, retries=0))) as client,
            pytest.raises(
                ModelFault, match=rf"openai/gpt-5.2: {url} cannot be reached, tried once: .*[Cc]onnection refused"
            ),
        ):
            client.complete(ASK, [BASH], timeout=SECONDS)


def test_what_is_sent_repeated_and_refused_is_logged_without_key_and_words(
    monkeypatch: pytest.MonkeyPatch, naps: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    caplog.set_level(logging.DEBUG, "pytest_evocode")
    words = "You sent: Solve it. Your key: sk-of-this-test-0123456789"
    with ModelServer([Fail(500, words), Say("Done."), *[Fail(400, words)] * 2]) as server:
        client = client_for("chat", server)
        client.complete(ASK, [BASH], timeout=None)
        with pytest.raises(AgentFault):
            client.complete(ASK, [BASH], timeout=None)
    logged = [re.sub(r"\d+\.\d s|req_\d+", "...", record.getMessage()) for record in caplog.records]
    assert logged == [
        "openai/gpt-5.2: a request is sent",
        "openai/gpt-5.2: passing with status 500, retried in ...",
        "openai/gpt-5.2: a request is sent",
        "openai/gpt-5.2: request ... was answered in ...",
        "openai/gpt-5.2: a request is sent",
        "openai/gpt-5.2: refused with status 400, request ...",
        "openai/gpt-5.2: refused with status 400, and asked once more",
        "openai/gpt-5.2: a request is sent",
        "openai/gpt-5.2: refused with status 400, request ...",
    ]


def test_a_connection_that_is_not_made_in_time_is_the_networks_fault(
    naps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_evocode.llm.connection._SHORTEST_CONNECT", 0.1)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        others = [socket.socket() for _ in range(4)]
        for other in others:  # They fill its queue, so that nobody else is connected.
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        waiting = Waiting()
        with (
            closing(make_client("openai", "gpt-5.2", ModelOptions(base_url=url, retries=1))) as client,
            counted_in(waiting),
            pytest.raises(ModelFault, match=r"cannot be reached, tried 2 times"),
        ):
            client.complete(ASK, [BASH], timeout=0.2)
        for other in others:
            other.close()
    assert waiting.waits is not None
    assert set(waiting.waits.seconds) == {"network"}
