"""The events of streamed answers, as they come in bytes: where each ends, and which only say that one begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_evocode.llm.streams import (
    StreamedAnswer,
    StreamedCompletion,
    StreamedContent,
    StreamedMessage,
    StreamedResponse,
)
from pytest_evocode.llm.usage import Api

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LONGEST_END = 4
_FORMS: Mapping[Api, type[StreamedAnswer]] = {
    "messages": StreamedMessage,
    "chat": StreamedCompletion,
    "responses": StreamedResponse,
    "gemini": StreamedContent,
}
#: What Messages and Responses send before the model has written anything.
_OPENING = frozenset(
    {"message_start", "ping", "response.created", "response.queued", "response.in_progress", "keepalive"}
)


class EventSplitter:
    """Splits bytes into whole events."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._seen = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the events that are whole with these bytes, each with the blank line that ends it."""
        self._rest += data
        while end := _END.search(self._rest, max(0, self._seen - _LONGEST_END)):
            yield bytes(self._rest[: end.end()])
            del self._rest[: end.end()]
            self._seen = 0
        self._seen = len(self._rest)

    def rest(self) -> bytes:
        """Return what no blank line has ended: some servers leave out the last one."""
        return bytes(self._rest)


def data_of(event: bytes) -> str:
    r"""Return the data of an event; empty for comments, which keep connections open.

    >>> data_of(b"event: ping\ndata: {}\n\n"), data_of(b": still busy\n\n")
    ('{}', '')
    """
    lines = event.decode("utf-8", "replace").splitlines()
    return "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))


def all_data(stream: bytes) -> Iterator[str]:
    """Yield the data of all events of a stream."""
    splitter = EventSplitter()
    for event in (*splitter.feed(stream), splitter.rest()):
        if data := data_of(event):
            yield data


def streamed_answer(api: Api) -> StreamedAnswer:
    """Return an answer of an API that nothing has come of yet."""
    return _FORMS[api]()


def answer_in(api: Api, body: bytes, *, streamed: bool = False) -> Any:
    """Return the answer in a body as the API gives it in one piece: its JSON value, or its text where it has none."""
    if streamed:
        events = list(all_data(body))
    else:
        found = json_of(body)
        if not isinstance(found, list):
            return found
        events = [json.dumps(each) for each in found]  # A stream of Gemini's in its other form.
    answer = streamed_answer(api)
    for data in events:
        answer.take(data)
    return answer.body


def completion_events(answer: Mapping[str, Any], *, counts: bool) -> bytes:
    """Return an answer of Chat Completions as the events of a stream, for a program that has asked for one.

    Args:
        answer: The answer in one piece, with its one choice.
        counts: Whether the stream says at its end what was used.
    """
    common = {name: value for name, value in answer.items() if name not in ("choices", "usage")}
    common["object"] = "chat.completion.chunk"
    [choice] = answer["choices"]
    delta = dict(choice["message"])
    if calls := delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(calls)]
    rest = {name: value for name, value in choice.items() if name not in ("message", "finish_reason")}
    end = {"index": choice.get("index", 0), "delta": {}, "finish_reason": choice.get("finish_reason")}
    chunks: list[dict[str, Any]] = [{"choices": [{**rest, "delta": delta, "finish_reason": None}]}, {"choices": [end]}]
    chunks += [{"choices": [], "usage": answer.get("usage")}] if counts else []
    texts = (*(json.dumps({**common, **each}) for each in chunks), "[DONE]")
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def json_of(body: bytes) -> Any:
    """Return the JSON value in a body, or its text where it has none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def is_opening(data: str) -> bool:
    """Return whether an event has nothing of what the model writes, nor of what it costs.

    As long as no other has come, the request can be sent again without anybody noticing. An error is such an event.
    """
    try:
        event: Any = json.loads(data) if data else {}
    except ValueError:
        return False
    if not isinstance(event, dict) or event.get("type") in _OPENING:
        return True
    if event.get("type") == "error" or event.get("error"):
        return True
    choices = event.get("choices")
    if isinstance(choices, list) and choices:
        return not any(_says_something(choice) for choice in choices)
    return not event


def _says_something(choice: Any) -> bool:
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    return bool(choice.get("finish_reason")) or (
        isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")
    )


def is_added_count(event: bytes) -> bool:
    """Return whether an event of Chat Completions is the one that ``include_usage`` adds: a count, and no choice."""
    try:
        found: Any = json.loads(data_of(event) or "{}")
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("choices") == [] and bool(found.get("usage"))
