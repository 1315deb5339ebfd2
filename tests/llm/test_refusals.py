"""What providers refuse, in their words, and what is made of it."""

from __future__ import annotations

import json

import pytest

from pytest_evocode.errors import AgentFault, ContextOverflow, ModelFault
from pytest_evocode.llm.protocol import Message
from pytest_evocode.llm.provider_errors import from_answer, from_status
from tests.llm.conftest import ASK, BASH, SECONDS, client_for, each_api
from tests.model_scripts import Answer, Fail, Say
from tests.model_server import ModelServer


@each_api
def test_a_key_that_is_refused_is_named_by_its_variable_and_not_shown(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    fault = Fail(401, "Incorrect API key provided: sk-very-secret.")
    with ModelServer([fault]) as server, pytest.raises(ModelFault) as refused:
        client_for(api, server, key_env="MY_KEY").complete(ASK, [BASH], timeout=SECONDS)
    assert "the key in MY_KEY was refused: Incorrect API key provided: [MY_KEY]. (status 401, request req_" in str(
        refused.value
    )


@each_api
def test_the_server_refuses_another_key_than_its_own(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "right")
    with ModelServer([Say("Done.")], key="right") as server:
        assert client_for(api, server, key_env="MY_KEY").complete(ASK, [BASH], timeout=SECONDS).text == "Done."
        with pytest.raises(AgentFault, match="was refused"):
            client_for(api, server).complete(ASK, [BASH], timeout=SECONDS)


@each_api
def test_a_model_that_the_provider_does_not_know_is_an_error_with_its_name(api: str) -> None:
    with (
        ModelServer([], models=["other"]) as server,
        pytest.raises(ModelFault, match=r"/gpt-99: no such model, or no such API, at http.*does not exist"),
    ):
        client_for(api, server, "gpt-99").complete(ASK, [BASH], timeout=SECONDS)


@each_api
def test_a_conversation_that_is_too_long_is_an_overflow(api: str) -> None:
    with ModelServer([Say("Done.")], context_tokens=1000) as server:
        client = client_for(api, server)
        with pytest.raises(ContextOverflow, match=r"context|too long"):
            client.complete([*ASK, Message("user", "x" * 8000)], [BASH], timeout=SECONDS)
        assert client.complete(ASK, [BASH], timeout=SECONDS).text == "Done."


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "prompt is too long: 208310 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"),
        (413, "Request exceeds the maximum size"),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 10000, Requested 12000."),
        (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."),
        (400, "the request exceeds the available context size, try increasing it"),
        (500, "the request exceeds the available context size. try increasing the context size"),
        (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
        (400, "The number of tokens to keep from the initial prompt is greater than the context length."),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193."),
        (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (400, "Input is too long for requested model."),
        (400, "Please reduce the length of the messages or completion."),
    ],
)
def test_servers_have_many_words_for_a_conversation_that_is_too_long(status: int, words: str) -> None:
    assert from_status(status, {"error": {"message": words}}, {}).kind == "overflow"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 10000, Used 9000, Requested 1200."),
        (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
        (400, "Your credit balance is too low to access the API."),
        (500, "The server had an error while processing your request."),
    ],
)
def test_other_limits_are_no_overflow(status: int, words: str) -> None:
    assert from_status(status, {"error": {"message": words}}, {}).kind != "overflow"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "in an error"}}, "in an error"),
        ({"type": "error", "error": {"type": "api_error", "message": "typed"}}, "typed"),
        ({"error": "as text"}, "as text"),
        ({"detail": "detailed"}, "detailed"),
        ({"message": "bare"}, "bare"),
        ("<html>\n Bad  gateway</html>", "<html> Bad gateway</html>"),
        ({"detail": [{"msg": "missing"}]}, "{'detail': [{'msg': 'missing'}]}"),
        (None, "nothing but status 502"),
        ("x" * 5000, "x" * 500),
    ],
)
def test_the_words_are_found_wherever_a_server_puts_them(body: object, words: str) -> None:
    assert from_status(502, body, {}).words == words


@each_api
def test_an_error_that_comes_with_status_200_is_one(api: str) -> None:
    late = {"error": {"message": "Provider returned error", "code": 502}, "id": "x", "status": "failed"}
    told = pytest.raises(AgentFault, match=r"the provider failed once: Provider returned error \(status 502")
    with ModelServer([Answer(json.dumps(late))]) as server, told:
        client_for(api, server, retries=0).complete(ASK, [BASH], timeout=SECONDS)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "m"}}, "passing"),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}, "rate limit"),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "m"}}, "final"),
        ({"choices": [{"error": {"code": 429, "message": "m"}}]}, "rate limit"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "rate limit"),
        ({"error": "m"}, "final"),
    ],
)
def test_what_helps_against_an_error_in_an_answer(body: dict[str, object], kind: str) -> None:
    fault = from_answer(body, "req_1")
    assert fault is not None
    assert (fault.kind, fault.words) == (kind, "m")


@each_api
@pytest.mark.parametrize(
    "body", ["<html>Welcome</html>", "{}", "[]", '{"choices": [], "output": null, "content": "x"}']
)
@pytest.mark.matrix("body")
def test_an_answer_in_no_form_of_the_api_is_asked_for_again_and_then_shown_with_a_hint(
    api: str, body: str, naps: list[float]
) -> None:
    with (
        ModelServer([Answer(body)] * 4) as server,
        pytest.raises(
            AgentFault, match=r"the answer is not in the format of .*is base_url right \(http://127"
        ) as shown,
    ):
        client_for(api, server).complete(ASK, [BASH], timeout=SECONDS)
    assert body[:5].strip('"') in str(shown.value).replace("\\", "")
    assert len(naps) == 3


@each_api
@pytest.mark.parametrize("body", ["<html>Bad gateway</html>", '{"choices": [nul', "{}", '{"content": [null]}'])
@pytest.mark.matrix("api")
def test_a_broken_answer_with_status_200_is_asked_for_again(api: str, body: str, naps: list[float]) -> None:
    with ModelServer([Answer(body), Say("Done.")]) as server:
        assert client_for(api, server).complete(ASK, [BASH], timeout=SECONDS).text == "Done."
    assert len(naps) == 1


@each_api
def test_a_model_at_its_end_of_life_is_no_error_of_ours(api: str) -> None:
    with ModelServer([Say("Done.")]) as server:
        client = client_for(api, server, "claude-sonnet-4-20250514")
        assert client.complete(ASK, [BASH], timeout=SECONDS).text == "Done."
