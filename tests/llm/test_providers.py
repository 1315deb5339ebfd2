"""Google, Azure, Bedrock and Vertex AI through their own SDKs, and providers of other packages."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import AgentFault, ContextOverflow, ModelFault, UsageError
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, ModelClient, RequestedCall
from tests.llm.conftest import ASK, BASH, SECONDS
from tests.model_scripts import Answer, CutOff, Fail, Run, Say, Step, Think, Tokens
from tests.model_server import ModelServer

MODELS = {
    "google": "gemini-2.5-pro",
    "azure": "my-deployment",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "vertex": "claude-sonnet-4-5@20250929",
}
#: What each needs beside the address of the server.
SETTINGS = {"bedrock": {"region": "us-east-1"}, "vertex": {"region": "global", "project": "mine"}}
KEYS = {
    "google": "GEMINI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
    "vertex": "VERTEX_ACCESS_TOKEN",
}
each_provider = pytest.mark.parametrize("provider", MODELS)
made: list[ModelClient] = []


@pytest.fixture(autouse=True)
def _only_the_tests_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in (*KEYS.values(), "GOOGLE_API_KEY", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "CLOUD_ML_REGION",
                 "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT",
                 "GOOGLE_APPLICATION_CREDENTIALS", "OPENAI_API_VERSION", "AZURE_OPENAI_ENDPOINT"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    yield
    while made:
        made.pop().close()


def client(provider: str, server: ModelServer, **options: Any) -> ModelClient:
    given = {"base_url": server.url} | SETTINGS.get(provider, {}) | options
    made.append(make_client(provider, MODELS[provider], ModelOptions.model_validate(given)))
    return made[-1]


@each_provider
@pytest.mark.matrix
def test_a_conversation_goes_on_as_the_model_left_it(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[provider], "the-key-of-the-tests")
    script: list[Step] = [[Think("Hm."), Say("I look."), Run("ls"), Run("pwd")], Say("Done.")]
    with ModelServer(script, key="the-key-of-the-tests") as server:
        asked = client(provider, server)
        asked.check()
        reply = asked.complete(ASK, [BASH], timeout=SECONDS)
        results = [Message("tool", f"result {call.id}", call_id=call.id) for call in reply.calls]
        # As a resumed session has it, which read it from a file.
        message = Message(**{**vars_of(reply.message), "native": json.loads(json.dumps(reply.native))})
        last = asked.complete([*ASK, message, *results], [BASH], timeout=SECONDS)
    assert (reply.text, reply.reasoning, last.text) == ("I look.", "Hm.", "Done.")
    assert [call.arguments for call in reply.calls] == [{"command": "ls"}, {"command": "pwd"}]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cached_tokens) == (1000, 50, 600)
    first, second = server.asked
    assert (first.model, first.system, first.said) == (MODELS[provider], "You are an agent.", ["Solve it."])
    assert list(second.results.values()) == [f"result {call.id}" for call in reply.calls]


def vars_of(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in ("role", "text", "calls", "call_id", "native")}


def test_each_is_asked_at_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def path(provider: str, **options: Any) -> str:
        with ModelServer([Say("Done.")]) as server:
            client(provider, server, **options).complete(ASK, [BASH], timeout=SECONDS)
        return server.asked[0].path

    assert re.fullmatch(r"/v1(beta)?/models/gemini-2\.5-pro:streamGenerateContent", path("google"))
    assert path("azure") == "/openai/v1/chat/completions"
    assert path("azure", api="responses") == "/openai/v1/responses"
    assert path("azure", api_version="2024-10-21") == "/openai/deployments/my-deployment/chat/completions"
    assert path("bedrock").startswith("/model/us.anthropic.claude-sonnet-4-5-20250929-v1")
    assert path("vertex").endswith("projects/mine/locations/global/publishers/anthropic/models/"
                                   "claude-sonnet-4-5@20250929:streamRawPredict")  # fmt: skip


def test_bedrock_signs_its_requests_with_the_credentials_that_boto3_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id-of-the-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-the-tests")
    with ModelServer([Say("Done.")]) as server:
        client("bedrock", server).complete(ASK, [BASH], timeout=SECONDS)
    assert "AWS4-HMAC-SHA256 Credential=an-id-of-the-tests" in server.asked[0].headers["authorization"]


def test_options_have_geminis_own_names() -> None:
    with ModelServer([Say("Done.")]) as server:
        options = {"temperature": 0.5, "top_p": 0.9, "seed": 3, "max_tokens": 77, "thinking": 0, "effort": "low"}
        more = {"service_tier": "flex", "extra_body": {"safetySettings": []}, "extra_headers": {"X-Run": "one"}}
        client("google", server, **options, **more).complete(ASK, [BASH], timeout=SECONDS)
    body = server.asked[0].body
    assert body["generationConfig"] == {
        "temperature": 0.5, "topP": 0.9, "seed": 3, "maxOutputTokens": 77,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low", "thinkingBudget": 0},
    }  # fmt: skip
    assert (body["serviceTier"], body["safetySettings"]) == ("flex", [])
    assert server.asked[0].headers["x-run"] == "one"


def test_thoughts_are_not_asked_for_where_a_gemini_model_has_none() -> None:
    refused = Fail(400, "Thinking is not enabled for models/gemini-2.0-flash")
    with ModelServer([refused, Say("One."), Say("Two.")]) as server:
        asked = client("google", server)
        assert asked.complete(ASK, [BASH], timeout=SECONDS).text == "One."
        asked.complete(ASK, [BASH], timeout=SECONDS)
    asked_for = ["thinkingConfig" in each.body.get("generationConfig", {}) for each in server.asked]
    assert asked_for == [True, False, False]


def test_calls_without_a_signature_are_marked_where_a_gemini_model_refuses_them() -> None:
    of_a_task = [Message("assistant", "I look.", (RequestedCall("task-1-1", "bash", {"command": "ls"}),))]
    conversation = [*ASK, *of_a_task, Message("tool", "a.py", call_id="task-1-1")]
    with ModelServer([[Run("ls")], Say("Done.")]) as server:
        asked = client("google", server)
        first = asked.complete(conversation, [BASH], timeout=SECONDS)
        result = Message("tool", "b.py", call_id=first.calls[0].id)
        assert asked.complete([*conversation, first.message, result], [BASH], timeout=SECONDS).text == "Done."
    assert len(server.asked) == 3  # The first was refused.
    parts = [part for content in server.asked[-1].body["contents"] for part in content["parts"]]
    signatures = [part["thoughtSignature"] for part in parts if "functionCall" in part]
    assert len(set(signatures)) == 2  # Its own stays as it came.
    assert base64.b64decode(signatures[0]) == b"skip_thought_signature_validator"


def test_an_error_in_another_form_than_googles_is_one_all_the_same() -> None:
    odd = Answer('{"error": {"code": 503, "message": "busy", "details": ["come back later"]}}', 503)
    with ModelServer([odd, Say("Done.")]) as server:
        assert client("google", server).complete(ASK, [BASH], timeout=SECONDS).text == "Done."


def test_a_gemini_model_that_is_cut_off_says_so() -> None:
    with ModelServer([[Say("Half"), CutOff(), Tokens(10, 5)]]) as server:
        reply = client("google", server).complete(ASK, [BASH], timeout=SECONDS)
    assert reply.cut_off
    # Gemini 2.5 Pro: $1.25 and $10 a million tokens.
    assert reply.usage.cost_usd == pytest.approx((10 * 1.25 + 5 * 10) / 1e6)


@pytest.mark.parametrize(
    ("fail", "error", "words"),
    [
        (Fail(400, "API key not valid.", code="API_KEY_INVALID"), ModelFault, "the key in GEMINI_API_KEY"),
        (Fail(404), ModelFault, "no such model"),
        (Fail(400, "The input token count (9) exceeds the maximum number of tokens"), ContextOverflow, "token count"),
        (Fail(400, "Invalid JSON payload"), AgentFault, "the request was refused: Invalid JSON payload"),
        (Fail(429, retry_after=600), ModelFault, r"\(the provider wants 600 more\)"),
    ],
)
def test_an_error_of_google_is_read_as_the_others_are(fail: Fail, error: type[Exception], words: str) -> None:
    with ModelServer([fail] * 2) as server, pytest.raises(error, match=words):
        client("google", server, retry_seconds=5).complete(ASK, [BASH], timeout=SECONDS)


@each_provider
def test_a_failure_that_passes_is_repeated_and_a_closed_client_leaves_no_connection(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_evocode.llm.provider_errors._FIRST_WAIT", 0.01)
    with ModelServer([Fail(503), Fail(429, retry_after=0.01), Say("Done.")]) as server:
        asked = client(provider, server)
        assert asked.complete(ASK, [BASH], timeout=SECONDS).text == "Done."
        asked.close()
        assert server.is_left()


@pytest.mark.parametrize(
    ("provider", "options", "words"),
    [
        ("google", {}, "google/m needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY, or name its variable with"),
        (
            "azure",
            {},
            "azure/m needs the address of your resource: set AZURE_OPENAI_ENDPOINT, or base_url=https://NAME",
        ),
        ("azure", {"base_url": "https://x.openai.azure.com"}, "azure/m needs a key: set AZURE_OPENAI_API_KEY"),
        ("bedrock", {}, "bedrock/m needs a region: set AWS_REGION, or the option region=us-east-1"),
        ("bedrock", {"region": "eu-central1"}, "'eu-central1' is none; set the option region=eu-central-1"),
        ("bedrock", {"region": "us-east-1"}, "bedrock/m needs credentials: set AWS_PROFILE"),
        ("vertex", {}, "vertex/m needs a region: set CLOUD_ML_REGION, or the option region=global"),
        ("vertex", {"region": "Mars"}, "'Mars' is none; set the option region=global"),
        ("vertex", {"region": "global"}, "vertex/m needs a project: set ANTHROPIC_VERTEX_PROJECT_ID"),
    ],
)
def test_what_is_missing_is_told_before_anything_starts(provider: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        make_client(provider, "m", ModelOptions.model_validate(options)).check()


PACKAGE = '''
from pytest_evocode.llm.protocol import Message, Reply


class Parrot:
    """A model that says what it is told."""

    context_tokens = None
    knows_price = False

    def __init__(self, model, options):
        self.model, self.options = model, options

    def check(self):
        pass

    def prepare(self):
        pass

    def close(self):
        pass

    def complete(self, conversation, tools, *, timeout):
        return Reply(text=conversation[-1].text)
'''


def test_another_package_adds_a_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "parrots-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrots\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_evocode.providers]\nparrot = parrots:Parrot\nbroken = parrots:No\n")
    (tmp_path / "parrots.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    parrot = make_client("parrot", "grey", ModelOptions(temperature=0.5))
    assert parrot.model == "grey"
    assert parrot.complete(ASK, [BASH], timeout=SECONDS).text == "Solve it."
    with pytest.raises(UsageError, match=r"did you mean parrot/grey\? known are openai, .*, parrot"):
        make_client("parot", "grey")
    with pytest.raises(UsageError, match="broken/m: the provider's entry point parrots:No cannot be loaded"):
        make_client("broken", "m")
