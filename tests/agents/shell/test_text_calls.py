"""Models without tool calls: what is read out of their texts, and what they are told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_evocode.agents.shell.text_calls import TextCalls, requested, told
from pytest_evocode.agents.shell.tools import BASH
from pytest_evocode.errors import TurnStopped
from pytest_evocode.llm.protocol import Message, Reply, Tool


class Says:
    """A client whose model says one text after the other."""

    model, knows_price = "m", True
    context_tokens: int | None = 1000

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[Sequence[Message]] = []
        self.offered: list[Sequence[Tool]] = []

    def check(self) -> None: ...

    def prepare(self) -> None: ...

    def close(self) -> None: ...

    def complete(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        self.asked.append(conversation)
        self.offered.append(tools)
        return Reply(self.texts.pop(0), native={"api": "chat", "message": {"reasoning": "Hm."}})


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("I look.\n\n```bash\nls\n```\n", "ls"),
        ("```sh\nls\npwd\n```", "ls\npwd"),
        ("Such as\n```python\nprint()\n```\nnow\n```bash\nls\n```", "ls"),
        ("````bash\ncat >README.md <<'E'\n```\nmake\n```\nE\n````", "cat >README.md <<'E'\n```\nmake\n```\nE"),
        ("~~~bash\nls\n~~~", "ls"),
        ("```bash\nls\n```\nDONE", "ls"),
    ],
)
def test_one_block_is_a_call(text: str, script: str) -> None:
    call = requested(text)
    assert call is not None
    assert (call.name, call.arguments, call.wrong) == (BASH.name, {"command": script}, "")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("I look at it now.", "no block"),
        ("", "no block"),
        ("```python\nprint()\n```", "no block"),
        ("```bash\nls\n```\n```bash\npwd\n```", "2 blocks"),
        ("```bash\nls", "an open block"),
        ("I am DONE with that.", "no block"),
    ],
)
def test_other_replies_are_failures_that_say_what_is_wrong(text: str, wrong: str) -> None:
    call = requested(text)
    assert call is not None
    assert (call.arguments, call.written, call.wrong) == (None, text, wrong)


@pytest.mark.parametrize("text", ["DONE", "It works.\n\nDONE\n", "It works.\n**DONE**", "It works.\nDONE."])
def test_the_word_ends_the_turn(text: str) -> None:
    assert requested(text) is None


def test_a_model_is_asked_for_text_alone() -> None:
    says = Says("```bash\nls\n```", "DONE")
    client = TextCalls(says)
    first = client.complete([Message("user", "Go.")], [BASH], timeout=None)
    result = Message("tool", "README", call_id=first.calls[0].id)
    client.complete([Message("user", "Go."), first.message, result], [BASH], timeout=None)
    assert says.offered == [[], []]
    assert [(each.role, each.text, each.calls) for each in says.asked[1]] == [
        ("user", "Go.", ()),
        ("assistant", "```bash\nls\n```", ()),
        ("user", "README", ()),
    ]
    # What the provider gave of the model's reasoning goes back to it.
    assert says.asked[1][1].native == first.native


def test_three_failures_in_a_row_end_the_turn_before_a_fourth_is_paid() -> None:
    says = Says("Hm.", "```bash\na\n```\n```bash\nb\n```", "Hm.")
    client, conversation = TextCalls(says), [Message("user", "Go.")]
    for _ in range(3):
        reply = client.complete(conversation, [BASH], timeout=None)
        [call] = reply.calls
        conversation += [reply.message, Message("tool", told(call.wrong), call_id=call.id)]
    with pytest.raises(
        TurnStopped, match="format: 3 replies in a row had not one fenced block: no block, 2 blocks, no"
    ):
        client.complete(conversation, [BASH], timeout=None)


def test_failures_of_an_earlier_turn_do_not_count() -> None:
    says = Says("Hm.", "DONE")
    client, conversation = TextCalls(says), [Message("user", "Go.")]
    failure = Message("tool", told("no block"), call_id="x")
    conversation += [Message("assistant", "Hm."), failure] * 3 + [Message("user", "And now this.")]
    client.complete(conversation, [BASH], timeout=None)
    client.complete([*conversation, Message("assistant", "Hm."), failure], [BASH], timeout=None)
