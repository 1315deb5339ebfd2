"""The shell agent's conversation with its model over all rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from pytest_evocode.llm.protocol import Message, Reply, RequestedCall, ShownImage
from pytest_evocode.results.records import Usage

ELIDED = "[This output was left out to make room.]"
#: The latest results, which are never left out.
_KEPT = 2
_IMAGE = 6000  # characters


class Conversation:
    """Messages in an order that providers accept: every call is answered before the next message."""

    def __init__(self, messages: Sequence[Message] = (), *, filled: int = 0, overflowed: bool = False) -> None:
        self.messages = list(messages)
        self.filled = filled
        """Tokens of the last request and its reply."""
        self.overflowed = overflowed
        """Whether the last turn ended because the conversation was longer than the model takes."""

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def add(self, message: Message) -> None:
        """Append a message."""
        self.messages.append(message)

    @property
    def unanswered(self) -> list[RequestedCall]:
        """Calls of the last reply without a result."""
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
        """Leave out the oldest results, ``share`` (0 to 1) of all their characters, and return the ids of their calls.

        The last results stay. The list is empty where there is nothing to leave out.
        """
        places = [
            place
            for place, message in enumerate(self.messages)
            if message.role == "tool" and _size(message) > len(ELIDED)
        ][:-_KEPT]
        goal = share * sum(_size(self.messages[place]) for place in places)
        elided: list[str] = []
        for place in places:
            if goal <= 0:
                break
            message = self.messages[place]
            goal -= _size(message)
            elided.append(message.call_id)
            self.messages[place] = replace(message, text=ELIDED, images=())
        return elided

    def as_json(self) -> list[dict[str, Any]]:
        """Return the messages as JSON values."""
        return [asdict(message) for message in self.messages]

    @classmethod
    def from_json(cls, messages: Sequence[dict[str, Any]]) -> Conversation:
        """Restore what :meth:`as_json` returned.

        >>> kept = Conversation([Message("user", "hello")])
        >>> Conversation.from_json(kept.as_json()).messages == kept.messages
        True
        """
        return cls([_message(message) for message in messages])


def _size(message: Message) -> int:
    """Return how many characters a result takes; an image takes about as many tokens as so many."""
    return len(message.text) + _IMAGE * len(message.images)


def _message(values: dict[str, Any]) -> Message:
    images = tuple(ShownImage(**image) for image in values.get("images", ()))
    return Message(**{**values, "calls": _calls(values), "images": images})


def reply_as_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON values."""
    return {**asdict(replace(reply, usage=Usage())), "usage": reply.usage.model_dump()}


def reply_from_json(values: dict[str, Any]) -> Reply:
    """Restore what :func:`reply_as_json` returned."""
    return Reply(**{**values, "calls": _calls(values), "usage": Usage.model_validate(values["usage"])})


def _calls(values: dict[str, Any]) -> tuple[RequestedCall, ...]:
    return tuple(RequestedCall(**call) for call in values["calls"])


def head_and_tail(text: str, limit: int) -> str:
    r"""Return a text cut to about ``limit`` characters: its beginning, how much is left out, and its end.

    >>> head_and_tail("a" * 50 + "b" * 50, 20)
    'aaaaaaaaaa\n[... 80 characters left out ...]\nbbbbbbbbbb'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[len(text) - half :]}"
