"""Puts streamed answers together: what the events of an API come to, in the form that it has without a stream.

The SDKs' own accumulators do not serve: they keep what their types know, where all has to be sent back as it came, and
that of Chat Completions doubles names and ids which compatible servers repeat.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

Json = dict[str, Any]


class StreamedAnswer(ABC):
    """An answer, as far as it has come."""

    is_complete = False
    """Whether nothing of it is missing, should the connection break now."""
    unreadable = ""
    """The data of an event that is in no form of the API."""

    def take(self, data: str) -> None:
        """Take the data of an event as it came."""
        if data and data != "[DONE]" and not self.unreadable:
            try:
                self.add(json.loads(data))
            except (LookupError, TypeError, AttributeError, ValueError):  # A field is there and is something else.
                self.unreadable = data

    @abstractmethod
    def add(self, event: Json) -> None:
        """Add the data of an event."""

    @property
    @abstractmethod
    def body(self) -> Json:
        """What has come so far, as the API would have sent it in one piece; empty where nothing has."""


class StreamedMessage(StreamedAnswer):
    """An answer of the Messages API."""

    def __init__(self) -> None:
        self._message: Json = {}
        self._blocks: dict[int, Json] = {}

    def add(self, event: Json) -> None:
        """See :class:`StreamedAnswer`."""
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                _extend(self._blocks[event["index"]], event["delta"])
            case "message_delta":
                # Counts are those of the whole message, and those that do not change are left out.
                usage = self._message.get("usage") or {}
                usage |= {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
                more = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
                self._message |= more | event["delta"] | {"usage": usage}
                self.is_complete = bool(self._message.get("stop_reason"))
            case "error":
                self._message["error"] = event["error"]

    @property
    def body(self) -> Json:
        """See :class:`StreamedAnswer`."""
        if not self._message:
            return {}
        return self._message | {"content": [_with_input(self._blocks[at]) for at in sorted(self._blocks)]}


def _extend(block: Json, delta: Json) -> None:
    """Add a delta to a block: texts grow, and so does the list of citations."""
    for name, value in delta.items():
        if name == "citation":
            block["citations"] = [*(block.get("citations") or ()), value]
        elif name != "type":
            block[name] = (block.get(name) or "") + value if isinstance(value, str) else value


def _with_input(block: Json) -> Json:
    """Return a block with the arguments of its call, which come as text; text that is no JSON stays text."""
    if "partial_json" not in block:
        return block
    whole = {name: value for name, value in block.items() if name != "partial_json"}
    try:
        return whole | {"input": json.loads(block["partial_json"] or "{}")}
    except ValueError:
        return whole | {"input": block["partial_json"]}


# What comes whole, and from some servers again and again.
_WHOLE = frozenset({"id", "type", "role", "name", "format", "signature", "object"})


class StreamedCompletion(StreamedAnswer):
    """An answer of Chat Completions."""

    def __init__(self) -> None:
        self._rest: Json = {}
        self._choice: Json = {}
        self._message: Json = {}

    def add(self, event: Json) -> None:
        """See :class:`StreamedAnswer`."""
        self._rest |= {name: value for name, value in event.items() if name != "choices" and value is not None}
        for choice in event.get("choices") or ():
            _merge(self._message, choice.get("delta") or choice.get("message") or {})
            self._add_tokens(choice)
            kept = {name: value for name, value in choice.items() if name not in ("token_ids", "logprobs")}
            self._choice |= {name: value for name, value in kept.items() if value is not None}
            self.is_complete |= bool(choice.get("finish_reason"))

    def _add_tokens(self, choice: Json) -> None:
        """Add what an event says of single tokens, which comes piece by piece."""
        if isinstance(ids := choice.get("token_ids"), list):
            self._choice.setdefault("token_ids", []).extend(ids)
        if isinstance(logprobs := choice.get("logprobs"), dict):
            known = self._choice.setdefault("logprobs", {})
            for name, value in logprobs.items():
                if isinstance(value, list):
                    known.setdefault(name, []).extend(value)

    @property
    def body(self) -> Json:
        """See :class:`StreamedAnswer`."""
        if not self._choice:
            return self._rest
        message = dict(self._message)
        if calls := message.get("tool_calls"):
            message["tool_calls"] = [{name: each for name, each in call.items() if name != "index"} for call in calls]
        choice = {name: value for name, value in self._choice.items() if name != "delta"} | {"message": message}
        usage = self._rest.get("usage") or choice.get("usage")  # Moonshot counts in the choice.
        return self._rest | {"choices": [choice]} | ({"usage": usage} if usage else {})


def _merge(known: Json, delta: Json) -> None:
    """Add a delta to what is known: texts grow, parts of a list are found by their index."""
    for name, value in delta.items():
        before = known.get(name)
        if isinstance(value, list) and all(isinstance(piece, dict) for piece in value):
            known[name] = list(before or ())
            for piece in value:
                _merge(_place_of(known[name], piece), piece)
        elif isinstance(before, dict) and isinstance(value, dict):
            _merge(before, value)
        elif isinstance(before, str) and isinstance(value, str) and name not in _WHOLE:
            known[name] = before + value
        elif isinstance(value, dict):
            known[name] = {}
            _merge(known[name], value)
        elif value or not before:
            known[name] = value


def _place_of(items: list[Json], piece: Json) -> Json:
    """Return the item of a list that a piece belongs to, a new one where there is none yet.

    Some servers give all calls the same index, or none, and each its id.
    """
    for item in reversed(items):
        others = any(piece.get(name) and item.get(name) not in (None, "", piece[name]) for name in ("id", "type"))
        if not others and piece.get("index") in (None, item.get("index")):
            return item
    items.append({})
    return items[-1]


class StreamedResponse(StreamedAnswer):
    """An answer of the Responses API, whose last event has all of it."""

    def __init__(self) -> None:
        self._response: Json = {}
        self._items: dict[int, Json] = {}

    def add(self, event: Json) -> None:
        """See :class:`StreamedAnswer`."""
        kind = event.get("type")
        if isinstance(event.get("response"), dict):
            self._response = event["response"]
        if kind == "response.output_item.done":
            self._items[event["output_index"]] = event["item"]
        elif kind == "error":
            self._response = self._response | {"error": event.get("error") or event}
        self.is_complete |= kind in ("response.completed", "response.incomplete", "response.failed")

    @property
    def body(self) -> Json:
        """See :class:`StreamedAnswer`."""
        # The last event of some servers leaves out what came before.
        output = self._response.get("output") or [self._items[at] for at in sorted(self._items)]
        return self._response | {"output": output} if self._response else {}


class StreamedContent(StreamedAnswer):
    """An answer of generateContent, whose chunks are answers themselves."""

    def __init__(self) -> None:
        self._rest: Json = {}
        self._candidate: Json = {}
        self._content: Json = {}
        self._parts: list[Json] = []

    def add(self, event: Json) -> None:
        """See :class:`StreamedAnswer`."""
        self._rest |= {name: value for name, value in event.items() if name != "candidates"}
        for candidate in event.get("candidates") or ():
            self._candidate |= candidate
            content = candidate.get("content") or {}
            self._content |= content
            for part in content.get("parts") or ():
                self._add_part(part)
            self.is_complete |= bool(candidate.get("finishReason"))
        self.is_complete |= bool((event.get("promptFeedback") or {}).get("blockReason"))

    def _add_part(self, part: Json) -> None:
        """Add a part, to the one before where both are plain texts or thoughts; what is signed stays as it is."""
        plain = {"text", "thought"}
        before = self._parts[-1] if self._parts else {}
        if part.keys() <= plain and not part.get("text"):
            return  # As the last one often is, and the API refuses to see it again.
        if before and before.keys() | part.keys() <= plain and before.get("thought") == part.get("thought"):
            self._parts[-1] = before | {"text": before["text"] + part["text"]}
        else:
            self._parts.append(part)

    @property
    def body(self) -> Json:
        """See :class:`StreamedAnswer`."""
        if not self._candidate:
            return self._rest
        content = self._content | ({"parts": self._parts} if self._parts else {})
        candidate = self._candidate | ({"content": content} if content else {})
        return self._rest | {"candidates": [candidate]}
