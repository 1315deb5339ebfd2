"""What is left out of a conversation that is too long, in which order, and what always stays."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_evocode.agents.shell.conversation import (
    ELIDED,
    Conversation,
    forget,
    put_compacted,
    put_summary,
    shorten,
    size,
    to_compact,
    to_summarise,
)
from pytest_evocode.llm.protocol import Message, RequestedCall

FILE = "cat > a.txt <<'END'\n" + "x" * 2000 + "\nEND"


def call(number: int, script: str = FILE) -> RequestedCall:
    return RequestedCall(f"c{number}", "bash", {"command": script}, json.dumps({"command": script}))


def reply(number: int) -> Message:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    use = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {"command": FILE}}
    native = {"api": "messages", "message": [thinking, {"type": "text", "text": "I write. " * 100}, use]}
    return Message("assistant", "I write. " * 100, (call(number),), native=native)


def conversation() -> Conversation:
    found = Conversation([Message("system", "You are an agent."), Message("user", "The first request.")])
    for number in range(5):
        found.add(reply(number))
        found.add(Message("tool", f"output {number} " * 100, call_id=f"c{number}"))
        if number == 2:
            found.add(Message("user", "The newest request."))
            found.add(Message("user", "Go on.", is_nudge=True))
    return found


def outputs(found: Conversation) -> list[str]:
    return [message.text for message in found if message.role == "tool"]


def arguments(found: Conversation) -> list[Any]:
    return [each.arguments["command"] for message in found for each in message.calls if each.arguments]


def test_the_latest_results_stay_when_all_others_are_left_out() -> None:
    found = conversation()
    assert shorten(found, "old outputs") == ["c0", "c1"]
    assert shorten(found, "outputs") == ["c2"]
    assert [text == ELIDED for text in outputs(found)] == [True, True, True, False, False]
    assert shorten(found, "outputs") == []


def test_long_arguments_of_older_calls_are_shortened_in_the_providers_form_too_and_reasoning_stays() -> None:
    found = conversation()
    assert shorten(found, "calls") == ["c0", "c1", "c2"]
    assert [len(each) > 2000 for each in arguments(found)] == [False, False, False, True, True]
    first = found.messages[2]
    assert first.native["message"][0]["thinking"] == "Hm."
    assert first.native["message"][2]["input"] == first.calls[0].arguments
    assert json.loads(first.calls[0].written) == first.calls[0].arguments


def test_texts_and_reasoning_of_older_replies_go_next() -> None:
    found = conversation()
    assert shorten(found, "texts") == ["c0", "c1", "c2"]
    replies = [message for message in found if message.role == "assistant"]
    assert [message.native is None for message in replies] == [True, True, True, False, False]
    assert len(replies[0].text) < 400


def test_a_summary_takes_the_place_of_all_but_system_prompt_newest_request_and_last_replies() -> None:
    found = conversation()
    before = list(found)
    text = to_summarise(found, None)
    assert "The first request." in text
    assert "The newest request." not in text  # It stays as it is.
    assert text.count("[runs bash]") == 3
    put_summary(found, "All is well.")
    assert [message.role for message in found] == ["system", "user", "assistant", "user", *["assistant", "tool"] * 2]
    assert found.messages[1].text.endswith("All is well.")
    assert found.messages[3].text == "The newest request."
    assert list(found)[4:] == before[-4:]
    assert to_summarise(found, None) == ""  # Another one would make no room.


def test_what_is_summarised_fits_into_half_of_the_window() -> None:
    assert len(to_summarise(conversation(), 1000)) < 1600


def test_calls_without_an_answer_stay() -> None:
    found = conversation()
    found.add(reply(5))
    put_summary(found, "All is well.")
    assert [each.id for each in found.unanswered] == ["c5"]


def test_at_last_the_ends_of_the_last_replies_are_shortened() -> None:
    found = conversation()
    for step in ("old outputs", "outputs", "calls", "texts"):
        shorten(found, step)
    before = size(found)
    assert shorten(found, "ends")
    assert size(found) < before
    assert all(len(text) < 1100 for text in outputs(found))


def test_what_is_forgotten_leaves_the_system_prompt() -> None:
    found = conversation()
    forget(found)
    assert [message.role for message in found] == ["system", "user", "assistant"]


@pytest.mark.parametrize("step", ["old outputs", "outputs", "calls", "texts", "ends"])
def test_a_step_taken_again_on_the_same_conversation_does_the_same(step: Any) -> None:
    first, second = conversation(), conversation()
    shorten(first, step)
    shorten(second, step)
    assert first.messages == second.messages


# What the provider makes shorter.


COMPACTED = Message(
    "assistant", "All is well.", native={"api": "messages", "message": ["a summary"]}, is_compacted=True
)


def long_round() -> Conversation:
    """A conversation whose newest request lies before the last two replies."""
    found = conversation()
    for number in (5, 6):
        found.add(reply(number))
        found.add(Message("tool", f"output {number}", call_id=f"c{number}"))
    return found


def test_the_provider_gets_all_but_the_last_replies_and_the_newest_request_stays_word_for_word() -> None:
    found = long_round()
    before = list(found)
    assert to_compact(found) == before[:14]
    put_compacted(found, COMPACTED)
    system, made, *kept, request = found
    assert (system, made, kept) == (before[0], COMPACTED, before[14:])
    assert (request.role, request.is_nudge) == ("user", False)
    assert request.text.endswith("\n\nThe newest request.")
    assert to_compact(found) == []  # That would make no room.


def test_a_request_is_said_again_only_where_it_is_lost() -> None:
    held = {"api": "responses", "message": [{"content": [{"type": "input_text", "text": "The newest request."}]}]}
    found = long_round()
    put_compacted(found, Message("assistant", native=held, is_compacted=True))
    assert found.messages[-1].role == "tool"

    late = conversation()  # It was asked just before the last two replies.
    before = list(late)
    put_compacted(late, COMPACTED)
    assert list(late) == [before[0], COMPACTED, *before[8:]]


def test_a_request_that_is_said_again_is_introduced_once() -> None:
    found = long_round()
    put_compacted(found, COMPACTED)
    for number in range(7, 11):
        found.add(reply(number))
        found.add(Message("tool", f"output {number}", call_id=f"c{number}"))
    assert to_compact(found)[:2] == list(found)[:2]
    put_compacted(found, COMPACTED)
    assert sum(message.is_compacted for message in found) == 1
    assert found.messages[-1].text.count("word for word") == 1
    assert found.messages[-1].text.endswith("\n\nThe newest request.")


def test_what_the_provider_made_is_summarised_where_it_can_be_read() -> None:
    found = long_round()
    put_compacted(found, COMPACTED)
    found.messages[2:2] = [Message("user", "More. " * 300), reply(8), Message("tool", "output 8", call_id="c8")]
    assert "[engineer]\nAll is well." in to_summarise(found, None)
    put_summary(found, "A summary.")
    assert not any(message.is_compacted for message in found)
    found.messages[1:1] = [replace(COMPACTED, text="")]
    assert to_summarise(found, None) == ""


def test_what_the_provider_made_stays_as_it_came() -> None:
    found = conversation()
    put_compacted(found, COMPACTED)
    for step in ("old outputs", "outputs", "calls", "texts", "ends"):
        shorten(found, step)
    assert found.messages[1] == COMPACTED
    again = Conversation.from_json(json.loads(json.dumps(found.as_json())))
    assert again.messages[1] == COMPACTED


@pytest.mark.parametrize("api", ["gemini", "chat"])
def test_calls_keep_what_their_api_signs_them_with_when_reasoning_and_texts_are_left_out(api: str) -> None:
    part = {"functionCall": {"name": "bash", "args": {}}, "thoughtSignature": "c2ln"}
    signed = {"id": "c0", "function": {}, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    messages = {
        "gemini": {"role": "model", "parts": [{"text": "Hm. " * 400, "thought": True}, {"text": "I " * 900}, part]},
        "chat": {"role": "assistant", "content": "I " * 900, "reasoning_content": "Hm. " * 400, "tool_calls": [signed]},
    }
    found = Conversation([Message("user", "A request.")])
    for number in range(3):
        native = {"api": api, "message": messages[api]}
        found.add(Message("assistant", "I " * 900, (call(number),), native=native))
        found.add(Message("tool", "a", call_id=f"c{number}"))
    assert shorten(found, "texts") == ["c0"]
    sent = json.dumps(found.messages[1].native)
    assert "c2ln" in sent
    assert "Hm." not in sent
    assert len(sent) < 1000
