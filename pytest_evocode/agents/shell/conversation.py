"""The shell agent's conversation with its model over all rounds: how it begins, is kept, and is made shorter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from pytest_evocode.agents.words import CONVERSATION
from pytest_evocode.llm.base_client import name_taken
from pytest_evocode.llm.protocol import Message, Reply, RequestedCall, ShownImage, signed_calls
from pytest_evocode.llm.token_ids import TokenFacts
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import Step, Trajectory

ELIDED = CONVERSATION["elided"]
#: The latest results, which are never left out.
_KEPT_RESULTS = 2
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
        ][:-_KEPT_RESULTS]
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
    usage, tokens = Usage.model_validate(values["usage"]), TokenFacts.from_json(values.get("tokens", {}))
    return Reply(**{**values, "calls": _calls(values), "usage": usage, "tokens": tokens})


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


def earlier_messages(trajectory: Trajectory) -> Iterator[Message]:
    """Yield the messages of a trajectory, without those of the system: the agent has its own.

    The first is a user's, as providers ask for, and every call is answered.
    """
    begun = False
    for step in trajectory.steps:
        if step.source == "system":
            continue
        if not begun and step.source == "agent":
            yield Message("user", "Begin.")
        begun = True
        if step.source == "user":
            yield Message("user", _text(step.message))
        else:
            yield from _of_agent(step)


def _of_agent(step: Step) -> Iterator[Message]:
    text = _text(step.message)
    calls = tuple(
        # Providers allow few characters in these, and an id once.
        RequestedCall(f"task-{step.step_id}-{number}", name_taken(call.function_name), call.arguments)
        for number, call in enumerate(step.tool_calls or (), 1)
    )
    if not text and not calls:
        return
    yield Message("assistant", text, calls)
    results = step.observation.results if step.observation else ()
    for call, written in zip(calls, step.tool_calls or (), strict=True):
        of_call = [_text(result.content) for result in results if result.source_call_id == written.tool_call_id]
        yield Message("tool", "\n".join(of_call) or CONVERSATION["no result"], call_id=call.id)
    of_none = [_text(result.content) for result in results if result.source_call_id is None]
    if any(of_none):
        yield Message("user", "\n".join(of_none))


def _text(content: Any) -> str:
    """Return a text, or those in a list of parts."""
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return "" if content is None else str(content)


CompactionStep = Literal["provider", "old outputs", "outputs", "calls", "texts", "summary", "ends"]
Compaction = Literal["agent", "provider"]
STEPS: tuple[CompactionStep, ...] = ("provider", "old outputs", "outputs", "calls", "texts", "summary", "ends")
"""What is left out, one after the other: everything before the last two replies for what the provider makes of it, if
that is wanted; the older half of the outputs; all others but the latest two; the long arguments of the model's own
calls; its reasoning and most of its texts; everything before the last two replies for a summary; most of what these
hold.
"""
ROOM = 0.5
"""Share of the window that is to be filled at most afterwards: seldom and much, because each time the provider's cache
is lost.
"""
_LONGEST_ARGUMENT, _LONGEST_TEXT, _LONGEST_END = 300, 300, 1000  # characters
#: Replies at the end of the conversation that stay whole as long as possible.
_KEPT_REPLIES = 2
#: A summary is of this share of the conversation at least.
_WORTH = 0.25
#: A token has about so many characters.
_PER_TOKEN = 3
_STILL_ASKED = "The request that you are working on, word for word, because all before it was made shorter:\n\n"
#: What the model is told when it is to write a summary.
SUMMARISER = CONVERSATION["summarise"]


def shorten(conversation: Conversation, step: CompactionStep) -> list[str]:
    """Take a step other than ``summary``, and return the ids of the calls or the roles of what was shortened."""
    if step == "old outputs":
        return conversation.elide(0.5)
    if step == "outputs":
        return conversation.elide(1.0)
    changed: list[str] = []
    end = len(conversation.messages) if step == "ends" else _begin_of_end(conversation)
    for place, message in enumerate(conversation.messages[:end]):
        shortened = _shortened(message, step)
        if shortened != message:
            conversation.messages[place] = shortened
            changed.append(message.call_id or next((call.id for call in message.calls), message.role))
    return changed


def _shortened(message: Message, step: CompactionStep) -> Message:
    if message.role == "tool" and step == "ends":
        return replace(message, text=head_and_tail(message.text, _LONGEST_END))
    if message.role != "assistant" or message.is_compacted:
        return message
    if step == "texts":
        text = head_and_tail(message.text, _LONGEST_TEXT)
        return replace(message, text=text, native=signed_calls(message.native, text))
    message = _with_short_calls(message)
    if step == "ends" and len(message.text) > _LONGEST_END:
        text = head_and_tail(message.text, _LONGEST_END)
        return replace(message, text=text, native=_replaced(message.native, {message.text: text}))
    return message


def _with_short_calls(message: Message) -> Message:
    """Return a reply whose calls have no long arguments, in the provider's own format as well."""
    texts: dict[str, str] = {}
    calls = []
    for call in message.calls:
        short, of_call = _short(call)
        calls.append(short)
        texts |= of_call
    if not texts:
        return message
    return replace(message, calls=tuple(calls), native=_replaced(message.native, texts))


def _short(call: RequestedCall) -> tuple[RequestedCall, dict[str, str]]:
    """Return a call without long arguments, and the texts that were replaced."""
    arguments = call.arguments or {}
    texts = {
        value: head_and_tail(value, _LONGEST_ARGUMENT)
        for value in arguments.values()
        if isinstance(value, str) and len(value) > 2 * _LONGEST_ARGUMENT
    }
    if not texts:
        return call, {}
    short = {name: texts.get(value, value) if isinstance(value, str) else value for name, value in arguments.items()}
    return replace(call, arguments=short, written=json.dumps(short)), {**texts, call.written: json.dumps(short)}


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        return {name: _replaced(each, texts) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(each, texts) for each in value]
    return value


def _begin_of_end(conversation: Conversation) -> int:
    """Return the place of the second last reply, from which on messages stay; all do where there are fewer."""
    replies = [
        place
        for place, message in enumerate(conversation.messages)
        if message.role == "assistant" and not message.is_compacted
    ]
    return replies[-_KEPT_REPLIES] if len(replies) >= _KEPT_REPLIES else 0


def to_summarise(conversation: Conversation, window: int | None) -> str:
    """Return what a summary is to be of, no longer than half of the window; empty where that is not worth it."""
    if any(message.is_compacted and not message.text for message in conversation):
        return ""  # What the provider made is encrypted.
    end = _begin_of_end(conversation)
    request = _newest_request(conversation)
    told = [
        _as_text(message)
        for place, message in enumerate(conversation.messages[:end])
        if message.role != "system" and place != request
    ]
    text = "\n\n".join(told)
    if len(text) < _WORTH * size(conversation):
        return ""  # A summary would cost more than it makes room.
    return text if window is None else head_and_tail(text, max(1000, window * _PER_TOKEN // 2))


def put_summary(conversation: Conversation, summary: str) -> None:
    """Put a summary in the place of all before the last replies but the system prompt and the newest request."""
    end, request = _begin_of_end(conversation), _newest_request(conversation)
    messages = conversation.messages
    kept = messages[end:] if request >= end else [messages[request], *messages[end:]]
    told = f"Summary of our conversation and of your work so far, written because it had become too long:\n\n{summary}"
    conversation.messages = [
        *(message for message in messages[:1] if message.role == "system"),
        Message("user", told),
        Message("assistant", CONVERSATION["summarised"]),
        *kept,
    ]


def to_compact(conversation: Conversation) -> list[Message]:
    """Return what the provider is to make shorter, system prompt first; empty where that is not worth it."""
    messages = conversation.messages[: _begin_of_kept(conversation)]
    earlier = [message for message in messages if message.role != "system"]
    # What was compacted last time is no work to be made shorter.
    work = Conversation([message for message in earlier if not message.is_compacted])
    return messages if earlier and size(work) >= _WORTH * size(conversation) else []


def put_compacted(conversation: Conversation, compacted: Message) -> None:
    """Put what the provider made of :func:`to_compact` in its place; the newest request stays word for word.

    It goes to the end where the provider did not keep it, because newer models refuse to see their own thoughts again
    where something was put before them.
    """
    begin, request = _begin_of_kept(conversation), conversation.messages[_newest_request(conversation)]
    messages = conversation.messages
    system = [message for message in messages[:1] if message.role == "system"]
    is_there = request.role != "user" or request in messages[begin:] or _holds(compacted.native, request.text)
    again = [] if is_there else [Message("user", _STILL_ASKED + request.text.removeprefix(_STILL_ASKED))]
    conversation.messages = [*system, compacted, *messages[begin:], *again]


def _begin_of_kept(conversation: Conversation) -> int:
    """Return the place before which the provider may compact: the last replies stay, with what they answer."""
    begin = _begin_of_end(conversation)
    while begin > 0 and conversation.messages[begin - 1].role == "user":
        begin -= 1
    return begin


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(each, text) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(each, text) for each in value)
    return bool(value == text)


def put_in_words(conversation: Conversation) -> bool:
    """Put the last reply and the results of its calls into a message of the user's, in words that every API takes.

    Returns whether there is such a reply.
    """
    messages = conversation.messages
    places = [at for at, each in enumerate(messages) if each.role == "assistant" and not each.is_compacted]
    if not places:
        return False
    begin = end = places[-1]
    while end + 1 < len(messages) and messages[end + 1].role == "tool":
        end += 1
    told = "\n\n".join(_as_text(message) for message in messages[begin : end + 1])
    messages[begin : end + 1] = [Message("user", f"{CONVERSATION['in words']}\n\n{told}", is_nudge=True)]
    return True


def forget(conversation: Conversation) -> str:
    """Leave out all but the system prompt, because nothing else helped; returns what the model is told."""
    conversation.messages = [message for message in conversation.messages[:1] if message.role == "system"]
    conversation.add(Message("user", CONVERSATION["forget"]))
    conversation.add(Message("assistant", CONVERSATION["understood"]))
    return CONVERSATION["forget"]


def _newest_request(conversation: Conversation) -> int:
    """Return the place of the newest instruction."""
    places = [place for place, each in enumerate(conversation.messages) if each.role == "user" and not each.is_nudge]
    return places[-1] if places else 0


def _as_text(message: Message) -> str:
    if message.role == "tool":
        return f"[output]\n{message.text}"
    calls = [f"[runs {call.name}]\n{call.arguments_text}" for call in message.calls]
    who = {"user": "[user]", "assistant": "[engineer]"}.get(message.role, "")
    return "\n".join([f"{who}\n{message.text}", *calls] if message.text else calls)


def size(conversation: Conversation) -> int:
    """Return about how many characters are sent for a conversation."""
    return sum(
        len(json.dumps(message.native))
        if message.native is not None
        else len(message.text) + sum(len(call.arguments_text) for call in message.calls)
        for message in conversation
    )
