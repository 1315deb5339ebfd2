"""The conversation of the shell agent: what is left out of it, and how it is kept."""

from __future__ import annotations

import json

from pytest_evocode.agents.shell.conversation import (
    ELIDED,
    Conversation,
    head_and_tail,
    reply_as_json,
    reply_from_json,
)
from pytest_evocode.llm.protocol import Message, Reply, RequestedCall
from pytest_evocode.llm.token_ids import TokenFacts
from pytest_evocode.results.records import Usage


def conversation(*outputs: str) -> Conversation:
    """One in which a call gave each of the outputs, with ids from 0."""
    messages = [Message("system", "You are."), Message("user", "Do.")]
    for number, output in enumerate(outputs):
        messages.append(Message("assistant", calls=(RequestedCall(str(number), "bash", {"command": "x"}),)))
        messages.append(Message("tool", output, call_id=str(number)))
    return Conversation(messages)


def outputs(of: Conversation) -> list[str]:
    return [message.text for message in of if message.role == "tool"]


def test_the_oldest_outputs_are_left_out_first_and_the_last_two_never() -> None:
    talk = conversation(*(letter * 1000 for letter in "abcdef"))
    assert talk.elide(0.5) == ["0", "1"]
    assert outputs(talk) == [ELIDED, ELIDED, "c" * 1000, "d" * 1000, "e" * 1000, "f" * 1000]
    assert talk.elide(1.0) == ["2", "3"]
    assert talk.elide(1.0) == []
    assert outputs(talk)[-2:] == ["e" * 1000, "f" * 1000]


def test_an_output_shorter_than_what_would_replace_it_stays() -> None:
    talk = conversation("short", "a" * 1000, "b" * 1000, "c" * 1000)
    talk.elide(1.0)
    assert outputs(talk)[:2] == ["short", ELIDED]


def test_calls_without_a_result_are_those_of_the_last_reply() -> None:
    talk = conversation("done")
    assert talk.unanswered == []
    first, second = RequestedCall("x", "bash", {}), RequestedCall("y", "bash", {})
    talk.add(Message("assistant", calls=(first, second)))
    talk.add(Message("tool", "done", call_id="x"))
    assert talk.unanswered == [second]


def test_a_conversation_survives_json() -> None:
    talk = conversation("done")
    talk.add(
        Message(
            "assistant", "Hm.", calls=(RequestedCall("z", "bash", None, "{broken"),), native={"signed": ["thought"]}
        )
    )
    assert Conversation.from_json(json.loads(json.dumps(talk.as_json()))).messages == talk.messages


def test_a_reply_survives_json() -> None:
    usage = Usage(prompt_tokens=5, completion_tokens=1, cost_usd=0.25, requests=1)
    reply = Reply(
        "Hm.",
        (RequestedCall("z", "bash", {"command": "ls"}),),
        "thought",
        {"native": 1},
        usage,
        "id-1",
        "length",
        "max_tokens",
        "a-model",
        tokens=TokenFacts((1, 2), (3,), (-0.5,)),
    )
    kept = json.loads(json.dumps(reply_as_json(reply)))
    assert reply_from_json(kept).tokens.metrics == {
        "prompt_token_ids": (1, 2), "completion_token_ids": (3,), "logprobs": (-0.5,),
    }  # fmt: skip
    assert reply_from_json(kept) == reply


def test_of_a_long_output_the_beginning_and_the_end_are_shown() -> None:
    assert head_and_tail("short", 200) == "short"
    shown = head_and_tail("first " + "x" * 1000 + " last", 200)
    assert shown.startswith("first ")
    assert shown.endswith(" last")
    assert "[... 811 characters left out ...]" in shown
