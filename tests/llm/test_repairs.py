"""What models write is mended before it is sent back to them, and what is refused by chance is asked once more."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_evocode.errors import ConversationRefused, ModelFault
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.connection import ProviderConnection
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, ModelClient, RequestedCall
from tests.llm.conftest import ASK, BASH, SECONDS, client_for
from tests.model_scripts import Answer, Asked, Fail, Say, Use
from tests.model_server import ModelServer

each_of_all_apis = pytest.mark.parametrize("api", ["chat", "responses", "messages", "gemini"])
ODD_NAMES = ("functions.bash:0", "b" * 200, "überall", "", "1 tool")
NAMES = {
    "chat": r"[a-zA-Z0-9_-]{1,64}",
    "responses": r"[a-zA-Z0-9_-]{1,64}",
    "messages": r"[a-zA-Z0-9_-]{1,128}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",
}


def client_of(api: str, server: ModelServer) -> ModelClient:
    if api != "gemini":
        return client_for(api, server)
    return make_client("google", "gemini-2.5-pro", ModelOptions(base_url=server.url))


def found(value: Any, keys: tuple[str, ...]) -> list[str]:
    """All texts below keys of these names, in order."""
    if isinstance(value, dict):
        here = [each for key, each in value.items() if key in keys and isinstance(each, str)]
        return here + [each for inner in value.values() for each in found(inner, keys)]
    return [each for inner in value for each in found(inner, keys)] if isinstance(value, list) else []


def history(asked: Asked) -> Any:
    return next(asked.body[key] for key in ("messages", "input", "contents") if key in asked.body)


@each_of_all_apis
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_tools_odd_name_is_sent_back_in_a_form_that_the_provider_takes(api: str, name: str) -> None:
    with ModelServer([Use(name, {"command": "ls"}), Say("Done.")]) as server:
        client = client_of(api, server)
        reply = client.complete(ASK, [BASH], timeout=SECONDS)
        assert [call.name for call in reply.calls] == [name]
        # As a resumed session has it.
        message = Message("assistant", calls=reply.calls, native=json.loads(json.dumps(reply.native)))
        result = Message("tool", "There is no such tool.", call_id=reply.calls[0].id)
        assert client.complete([*ASK, message, result], [BASH], timeout=SECONDS).text == "Done."
    names = found(history(server.asked[1]), ("name",))
    assert names
    assert all(re.fullmatch(NAMES[api], each) for each in names)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_an_odd_id_is_the_same_in_a_call_and_its_result(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProviderConnection, "is_official", True)  # Of a compatible server's ids nobody knows.
    ids = ("functions.bash:0", "functions.bash.0", "c" * 90)
    calls = tuple(RequestedCall(id, "bash", {"command": "ls"}) for id in ids)
    conversation = [*ASK, Message("assistant", calls=calls), *(Message("tool", "a.py", call_id=id) for id in ids)]
    with ModelServer([Say("Done.")]) as server:
        client_for(api, server).complete(conversation, [BASH], timeout=SECONDS)
    [asked] = server.asked
    assert list(asked.calls) == list(asked.results)
    assert len(asked.calls) == 3
    assert all(
        re.fullmatch(r"[a-zA-Z0-9_-]{1,40}" if api == "chat" else r"[a-zA-Z0-9_-]{1,64}", id) for id in asked.calls
    )


def test_a_compatible_server_gets_its_own_ids_back() -> None:
    calls = (RequestedCall("functions.bash:0", "bash", {"command": "ls"}),)
    conversation = [*ASK, Message("assistant", calls=calls), Message("tool", "a.py", call_id="functions.bash:0")]
    with ModelServer([Say("Done.")]) as server:
        client_for("chat", server).complete(conversation, [BASH], timeout=SECONDS)
    assert list(server.asked[0].calls) == ["functions.bash:0"]


@pytest.mark.parametrize("fault", [Fail(400, "bad"), Fail(404), Answer("<html>Blocked</html>", 403, "text/html")])
@each_of_all_apis
def test_what_is_refused_by_chance_is_asked_once_more(api: str, fault: Any, naps: list[float]) -> None:
    with ModelServer([fault, Say("Done."), fault, fault]) as server:
        client = client_of(api, server)
        assert client.complete(ASK, [BASH], timeout=SECONDS).text == "Done."
        with pytest.raises(ModelFault):
            client.complete(ASK, [BASH], timeout=SECONDS)
    assert (len(naps), len(server.asked)) == (2, 4)


def test_a_conversation_that_is_refused_is_nobodys_fault(naps: list[float]) -> None:
    with ModelServer([Fail(400, "bad")] * 2) as server, pytest.raises(ConversationRefused, match=r"refused: bad"):
        client_for("messages", server).complete(ASK, [BASH], timeout=SECONDS)
