"""The official SDKs in conversations of several rounds with the fake providers, which refuse nothing of theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.acceptance.models import import_sdks
from tests.model_scripts import Say, Think, Use
from tests.providers.exchanges import Step, Usage
from tests.providers.requests_by_hand import APIS, headers_for
from tests.providers.sdk_clients import AnthropicClient, ChatClient, Client, GeminiClient, ResponsesClient
from tests.providers.server import KEY, ProviderServer

pytestmark = pytest.mark.slow("it imports the SDKs")

CLIENTS: dict[str, Callable[[ProviderServer], Client]] = {
    "messages": AnthropicClient,
    "chat": ChatClient,
    "responses": ResponsesClient,
    "responses, stored": partial(ResponsesClient, stores=True),
    "gemini": GeminiClient,
    "gemini 2.5": partial(GeminiClient, model="gemini-2.5-pro"),
}
ODD = Usage(uncached=11, cached=500, written=30, output=77, reasoning=7)
SCRIPT: list[Step] = [
    [Think("Two things are to do."), Say("I look."), Use("bash", {"command": "ls"}), Use("bash", {"command": "pwd"})],
    [Use("bash", {"command": "cat log.txt"})],
    [Think("That is all."), Say("It is empty.")],
    [Think("Once more."), Use("bash", {"command": "echo 'ä' >> log.txt"}), ODD],
    Say("Done."),
]


@pytest.fixture(scope="module", autouse=True)
def _sdks() -> None:
    import_sdks()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_conversation_with_calls_passes(name: str, stream: bool) -> None:
    with ProviderServer(SCRIPT) as server:
        client = CLIENTS[name](server)
        client.say("Look.")
        first = client.ask(stream)
        assert first.text == "I look."
        assert [(tool, arguments) for _, tool, arguments in first.calls] == [
            ("bash", {"command": "ls"}),
            ("bash", {"command": "pwd"}),
        ]
        assert first.thoughts == ("" if name == "chat" else "Two things are to do.")
        client.give({call: "log.txt" for call, _, _ in first.calls})
        second = client.ask(stream)
        client.give({call: "nothing" for call, _, _ in second.calls})
        third = client.ask(stream)
        assert (third.text, third.calls) == ("It is empty.", ())
        client.say("Write.")
        fourth = client.ask(stream)
        assert [arguments for _, _, arguments in fourth.calls] == [{"command": "echo 'ä' >> log.txt"}]
        client.give({call: "written" for call, _, _ in fourth.calls})
        fifth = client.ask(stream)
        assert fifth.text == "Done."
        client.close()
    heard = [first, second, third, fourth, fifth]
    assert [exchange.refused for exchange in server.exchanges] == [None] * 5
    assert all(exchange.delivered for exchange in server.exchanges)
    last = server.exchanges[-1].asked
    assert (last.system, last.said, last.replies) == ("You are a programmer.", ["Look.", "Write."], 4)
    assert list(last.results.values()) == ["log.txt", "log.txt", "nothing", "written"]
    # generateContent counts nothing that is written to the cache.
    billed = [exchange.billed for exchange in server.exchanges]
    if name.startswith("gemini"):
        billed = [Usage(u.uncached + u.written, u.cached, 0, u.output, u.reasoning) for u in billed if u]
    assert [each.usage for each in heard] == billed
    assert server.billed() == sum((each for each in billed if each), Usage()) or name.startswith("gemini")


def test_thoughts_have_to_come_back_before_the_calls_of_the_turn() -> None:
    import anthropic

    with ProviderServer(SCRIPT) as server, anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0) as sdk:
        request = {
            "model": "claude-opus-4-8",
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        }
        asked = [{"role": "user", "content": "Look."}]
        content = sdk.messages.create(**request, messages=asked).content  # type: ignore[call-overload]
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "log.txt"}
            for block in content
            if block.type == "tool_use"
        ]
        without = [block for block in content if block.type != "thinking"]
        with pytest.raises(anthropic.BadRequestError, match="Expected `thinking` or `redacted_thinking`"):
            sdk.messages.create(  # type: ignore[call-overload]
                **request,
                messages=[*asked, {"role": "assistant", "content": without}, {"role": "user", "content": results}],
            )


def test_reasoning_has_to_come_back_before_the_call_that_it_came_with() -> None:
    import openai

    with (
        ProviderServer([[Think("Hm."), Use("bash", {})]]) as server,
        openai.OpenAI(base_url=server.url_for("responses"), api_key=KEY, max_retries=0) as sdk,
    ):
        output = sdk.responses.create(model="gpt-5", input="Look.", store=False).output
        reasoning, call = (item.model_dump(exclude_none=True) for item in output)
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "log.txt"}
        with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
            sdk.responses.create(model="gpt-5", input=[call, result], store=False)  # type: ignore[list-item]
        # Nor is it known, as it was neither stored nor encrypted.
        with pytest.raises(openai.NotFoundError, match="Items are not persisted when `store` is set to false"):
            sdk.responses.create(model="gpt-5", input=[reasoning, call, result], store=False)  # type: ignore[list-item]


def test_models_are_listed_and_tokens_counted() -> None:
    import anthropic
    import openai
    from google import genai
    from google.genai import types

    names = ["claude-opus-4-8", "gpt-5", "gemini-2.5-pro"]
    with ProviderServer([], models=names) as server:
        with anthropic.Anthropic(base_url=server.url, api_key=KEY) as claude:
            assert [model.id for model in claude.models.list()] == names
            assert claude.models.retrieve("gpt-5").max_input_tokens == 1_000_000
            counted = claude.messages.count_tokens(model=names[0], messages=[{"role": "user", "content": "A" * 4000}])
            assert counted.input_tokens > 1000
        with openai.OpenAI(base_url=server.url_for("chat"), api_key=KEY) as gpt:
            assert [model.id for model in gpt.models.list()] == names
            with pytest.raises(openai.NotFoundError):
                gpt.models.retrieve("gpt-9")
        google = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url))
        assert google.models.get(model="gemini-2.5-pro").input_token_limit == 1_000_000
        total = google.models.count_tokens(model="gemini-2.5-pro", contents="A" * 4000).total_tokens
        assert total is not None
        assert total > 1000
        google.close()
        assert server.exchanges == []


def test_a_key_is_needed_for_lists_too() -> None:
    import urllib.error
    import urllib.request

    with ProviderServer([]) as server:
        for api in APIS:
            path = "/v1beta/models" if api == "gemini" else "/v1/models"
            request = urllib.request.Request(server.url + path, headers=headers_for(api, key="of somebody"))
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.code == (400 if api == "gemini" else 401)
            refused.value.close()
