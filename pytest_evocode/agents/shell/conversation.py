"""What the model and its surroundings have said to one another over all rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from pytest_evocode.llm.protocol import Message, Reply, RequestedCall
from pytest_evocode.results.records import Usage

ELIDED = "[This output was left out to make room.]"
#: The model is left this many of its latest observations.
_KEPT = 2


class Conversation:
    """Messages in order, which a provider takes as they are: every call is answered before anything else is said."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self.messages = list(messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def add(self, message: Message) -> None:
        """Say something more."""
        self.messages.append(message)

    @property
    def unanswered(self) -> list[RequestedCall]:
        """Calls of the last reply that have no result yet."""
        answered: set[str] = set()
        for message in reversed(self.messages):
            if message.role == "tool":
                answered.add(message.call_id)
            elif message.role == "assistant":
                return [call for call in message.calls if call.id not in answered]
            else:
                break
        return []

    def elide(self, share: float) -> list[str]:
        """Leave out the oldest observations, ``share`` (0 to 1) of their characters; returns the ids of their calls.

        The last ones stay. Empty when there is nothing left to leave out.
        """
        places = [
            place
            for place, message in enumerate(self.messages)
            if message.role == "tool" and len(message.text) > len(ELIDED)
        ][:-_KEPT]
        goal = share * sum(len(self.messages[place].text) for place in places)
        elided: list[str] = []
        for place in places:
            if goal <= 0:
                break
            message = self.messages[place]
            goal -= len(message.text)
            elided.append(message.call_id)
            self.messages[place] = replace(message, text=ELIDED)
        return elided

    def as_json(self) -> list[dict[str, Any]]:
        """The messages in values that JSON has a form for."""
        return [asdict(message) for message in self.messages]

    @classmethod
    def from_json(cls, messages: Sequence[dict[str, Any]]) -> Conversation:
        """What :meth:`as_json` gave.

        >>> Conversation.from_json(Conversation([Message("user", "hello")]).as_json()).messages
        [Message(role='user', text='hello', calls=(), call_id='', native=None)]
        """
        return cls([Message(**{**message, "calls": _calls(message)}) for message in messages])


def reply_as_json(reply: Reply) -> dict[str, Any]:
    """A reply in values that JSON has a form for."""
    return {**asdict(replace(reply, usage=Usage())), "usage": reply.usage.model_dump()}


def reply_from_json(values: dict[str, Any]) -> Reply:
    """What :func:`reply_as_json` gave."""
    return Reply(**{**values, "calls": _calls(values), "usage": Usage.model_validate(values["usage"])})


def _calls(values: dict[str, Any]) -> tuple[RequestedCall, ...]:
    return tuple(RequestedCall(**call) for call in values["calls"])


def head_and_tail(text: str, limit: int) -> str:
    """A text of at most about ``limit`` characters: its beginning and its end, and between them what is missing.

    >>> head_and_tail("a" * 50 + "b" * 50, 20)
    'aaaaaaaaaa\\n[... 80 characters left out ...]\\nbbbbbbbbbb'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[len(text) - half :]}"
