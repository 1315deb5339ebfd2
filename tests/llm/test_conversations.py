"""What is said to a model and what comes back, through the official SDKs, whatever the API."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from pytest_evocode.llm.protocol import Message, RequestedCall
from tests.llm.conftest import ASK, BASH, SECONDS, client_for, each_api, each_openai_api
from tests.model_scripts import Answer, CutOff, Run, Say, Think, Use
from tests.model_server import ModelServer


@each_api
def test_a_reply_has_the_text_the_calls_and_the_reasoning(api: str) -> None:
    with ModelServer([[Think("First I look."), Say("I look."), Run("ls"), Run("pwd")]]) as server:
        reply = client_for(api, server).complete(ASK, [BASH], timeout=SECONDS)
    assert (reply.text, reply.reasoning) == ("I look.", "First I look.")
    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("bash", {"command": "ls"}),
        ("bash", {"command": "pwd"}),
    ]
    assert len({call.id for call in reply.calls}) == 2
    assert not reply.cut_off
    assert reply.request_id.startswith("req_")


@each_api
def test_the_results_of_calls_are_heard_with_all_that_was_said_before(api: str) -> None:
    with ModelServer([[Say("I look."), Run("ls"), Run("pwd")], Say("Done.")]) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        results = [
            Message("tool", text, call_id=call.id) for call, text in zip(first.calls, ("a.py", "/app"), strict=True)
        ]
        second = client.complete([*ASK, first.message, *results], [BASH], timeout=SECONDS)
    assert second.text == "Done."
    asked = server.asked[1]
    assert (asked.system, asked.said) == ("You are an agent.", ["Solve it."])
    assert list(asked.results.values()) == ["a.py", "/app"]
    assert asked.replies == 1
    assert asked.tools == {"bash": BASH.parameters}


@each_api
def test_a_second_round_goes_on_in_the_conversation_of_the_first(api: str) -> None:
    with ModelServer([Say("Done."), Say("Done again.")]) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        reply = client.complete([*ASK, first.message, Message("user", "And now?")], [BASH], timeout=SECONDS)
    assert reply.text == "Done again."
    assert server.asked[1].said == ["Solve it.", "And now?"]
    assert server.asked[1].replies == 1


@each_api
def test_signed_reasoning_goes_back_unchanged_after_being_saved_as_json(api: str) -> None:
    with ModelServer([[Think("Deep."), Run("ls")], Say("Done.")]) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        saved = json.loads(json.dumps(dataclasses.asdict(first.message)))
        message = Message("assistant", saved["text"], calls=first.calls, native=saved["native"])
        result = Message("tool", "a.py", call_id=first.calls[0].id)
        client.complete([*ASK, message, result], [BASH], timeout=SECONDS)
    sent = json.dumps(server.asked[1].body)
    assert "Deep." in sent
    assert api == "chat" or "signature of" in sent


@each_api
def test_a_message_of_another_api_is_sent_by_its_text_and_calls(api: str) -> None:
    said = Message(
        "assistant",
        "I look.",
        (RequestedCall("call_x", "bash", {"command": "ls"}),),
        native={"api": "z", "message": []},
    )
    with ModelServer([Say("Done.")]) as server:
        client_for(api, server).complete(
            [*ASK, said, Message("tool", "a.py", call_id="call_x")], [BASH], timeout=SECONDS
        )
    assert (server.asked[0].calls, server.asked[0].results) == ({"call_x": "bash"}, {"call_x": "a.py"})
    assert "I look." in json.dumps(server.asked[0].body)


@pytest.mark.parametrize(
    ("api", "given", "written"),
    [("chat", '{"command": "ls', '{"command": "ls'), ("responses", "ls", "ls"), ("messages", '["ls"]', '["ls"]')],
)
def test_arguments_that_are_no_json_object_are_none_and_kept_as_written(api: str, given: str, written: str) -> None:
    with ModelServer([Use("bash", given), Say("Sorry.")]) as server:
        client = client_for(api, server)
        reply = client.complete(ASK, [BASH], timeout=SECONDS)
        [call] = reply.calls
        assert (call.arguments, call.written) == (None, written)
        result = Message("tool", "That was no JSON.", call_id=call.id)
        assert client.complete([*ASK, reply.message, result], [BASH], timeout=SECONDS).text == "Sorry."


def test_a_compatible_server_that_renders_arguments_itself_gets_json_for_those_that_were_none() -> None:
    with ModelServer([Use("bash", '{"command": "ls'), Say("Sorry.")]) as server:
        client = client_for("chat", server)
        reply = client.complete(ASK, [BASH], timeout=SECONDS)
        result = Message("tool", "That was no JSON.", call_id=reply.calls[0].id)
        client.complete([*ASK, reply.message, result], [BASH], timeout=SECONDS)
    [sent] = server.asked[1].body["messages"][2]["tool_calls"]
    assert sent["function"] == {"name": "bash", "arguments": "{}"}


@each_api
def test_a_reply_that_ends_at_the_limit_of_tokens_says_so(api: str) -> None:
    with ModelServer([[Say("I was about to"), CutOff()]]) as server:
        reply = client_for(api, server).complete(ASK, [BASH], timeout=SECONDS)
    words = {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens"}
    assert (reply.ending, reply.stop_reason, reply.cut_off) == ("length", words[api], True)


ENDED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "chat": [
        ({"finish_reason": "stop", "message": {"content": "x"}}, "done"),
        ({"finish_reason": "content_filter", "message": {"content": ""}}, "filtered"),
        ({"finish_reason": "stop", "message": {"content": None, "refusal": "No."}}, "refused"),
        ({"finish_reason": "eos", "message": {"content": "x"}}, "unknown"),
    ],
    "responses": [
        ({"status": "completed", "output": []}, "done"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}, "filtered"),
        (
            {
                "status": "completed",
                "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}],
            },
            "refused",
        ),
    ],
    "messages": [
        ({"stop_reason": "end_turn", "content": []}, "done"),
        ({"stop_reason": "refusal", "content": []}, "refused"),
        ({"stop_reason": "pause_turn", "content": []}, "paused"),
        ({"stop_reason": "model_context_window_exceeded", "content": []}, "context"),
    ],
}


@pytest.mark.parametrize(("api", "body", "ending"), [(api, *each) for api, rows in ENDED.items() for each in rows])
def test_a_reply_has_why_it_ended_in_one_word_for_all_providers(api: str, body: dict[str, Any], ending: str) -> None:
    answer = {"choices": [body]} if api == "chat" else body
    with ModelServer([Answer(json.dumps(answer | {"model": "the-model-2026"}))]) as server:
        reply = client_for(api, server).complete(ASK, [BASH], timeout=SECONDS)
    assert (reply.ending, reply.model) == (ending, "the-model-2026")
    assert reply.refused == (ending in ("refused", "filtered"))


@each_api
def test_reasoning_that_was_cut_off_does_not_end_what_is_sent_back(api: str) -> None:
    with ModelServer([[Think("So"), CutOff()], Say("Done.")]) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        reply = client.complete([*ASK, first.message, Message("user", "Go on.")], [BASH], timeout=SECONDS)
    assert reply.text == "Done."
    if api != "chat":
        assert "signature of" not in json.dumps(server.asked[1].body)


@each_api
@pytest.mark.parametrize("nothing", ["", " "])
def test_a_reply_of_nothing_can_be_followed_by_a_new_instruction(api: str, nothing: str) -> None:
    with ModelServer([Say(nothing), Say("Done.")]) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        assert (
            client.complete([*ASK, first.message, Message("user", "Go on.")], [BASH], timeout=SECONDS).text == "Done."
        )


@each_api
def test_output_that_is_no_text_is_sent_with_marks_for_what_cannot_be(api: str) -> None:
    with ModelServer([Run("cat blob"), Say("Done.")]) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        result = Message("tool", b"\xffPNG \0".decode("utf-8", "surrogateescape"), call_id=first.calls[0].id)
        client.complete([*ASK, first.message, result], [BASH], timeout=SECONDS)
    assert server.asked[1].last_result == "?PNG \0"


@each_api
def test_a_command_without_output_has_an_empty_result(api: str) -> None:
    with ModelServer([Run("true"), Say("Done.")]) as server:
        client = client_for(api, server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        client.complete([*ASK, first.message, Message("tool", "", call_id=first.calls[0].id)], [BASH], timeout=SECONDS)
    assert server.asked[1].last_result == ""


@each_api
def test_a_conversation_needs_neither_tools_nor_a_system_message(api: str) -> None:
    with ModelServer([Say("Hello.")]) as server:
        assert client_for(api, server).complete([Message("user", "Hi.")], [], timeout=None).text == "Hello."
    assert "tools" not in server.asked[0].body


@each_openai_api
def test_what_a_model_refuses_to_do_is_its_text(api: str) -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot."}
    item = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "output": [item], "status": "completed"}
    with ModelServer([Answer(json.dumps(body))]) as server:
        assert client_for(api, server).complete(ASK, [BASH], timeout=SECONDS).text == "I cannot."


def test_parts_that_only_answers_have_are_not_sent_back() -> None:
    with ModelServer([[Think("Hm."), Run("ls")], Say("Done.")]) as server:
        client = client_for("chat", server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        client.complete([*ASK, first.message, Message("tool", "", call_id=first.calls[0].id)], [BASH], timeout=SECONDS)
    assert set(server.asked[1].body["messages"][2]) == {"role", "content", "tool_calls", "reasoning_content"}


def test_calls_without_an_id_get_one_that_their_results_can_name() -> None:
    calls = [
        {"function": {"name": "bash", "arguments": "{}"}},
        {"id": "", "function": {"name": "bash", "arguments": "{}"}},
    ]
    body = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}
    with ModelServer([Answer(json.dumps(body)), Say("Done.")]) as server:
        client = client_for("chat", server)
        first = client.complete(ASK, [BASH], timeout=SECONDS)
        results = [Message("tool", str(number), call_id=call.id) for number, call in enumerate(first.calls)]
        client.complete([*ASK, first.message, *results], [BASH], timeout=SECONDS)
    assert list(server.asked[1].calls) == [call.id for call in first.calls]
    assert list(server.asked[1].results.values()) == ["0", "1"]


def test_text_in_parts_is_put_together() -> None:
    content = [{"type": "text", "text": "One, "}, {"type": "text", "text": "two."}]
    body = {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}
    with ModelServer([Answer(json.dumps(body))]) as server:
        assert client_for("chat", server).complete(ASK, [BASH], timeout=SECONDS).text == "One, two."
