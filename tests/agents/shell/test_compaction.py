"""What is left out of a conversation that is too long, in which order, and what always stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_evocode.agents.shell.compaction import forget, put_summary, shorten, size, to_summarise
from pytest_evocode.agents.shell.conversation import ELIDED, Conversation
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
