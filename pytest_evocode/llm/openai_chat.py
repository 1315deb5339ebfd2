"""Client of OpenAI's Chat Completions API, which most compatible servers offer."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

from pytest_evocode.errors import ModelFault
from pytest_evocode.llm.base_client import BaseClient, arguments_of, id_taken, listed, name_taken
from pytest_evocode.llm.connection import Json
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.llm.protocol import Ending, Message, Reply, RequestedCall, Tool, native_of, tagged
from pytest_evocode.llm.provider_errors import ProviderFault
from pytest_evocode.llm.providers import Provider
from pytest_evocode.llm.streams import StreamedCompletion
from pytest_evocode.llm.token_ids import asking_for_tokens, lack_of_tokens, says_in_streams, tokens_told

_API: Literal["chat"] = "chat"
# Parts of an answer that some servers refuse to see again.
_ANSWER_ONLY = frozenset({"annotations", "audio", "function_call", "refusal"})


class ChatClient(BaseClient):
    """Client of the Chat Completions API."""

    _form = "Chat Completions"
    _api = _API
    _streamed = StreamedCompletion
    _counts_streams = True

    def __init__(self, provider: Provider, model: str, options: ModelOptions, facts: ModelFacts | None) -> None:
        super().__init__(provider, model, options, facts)
        self._streams = options.token_ids is None or says_in_streams(options.token_ids)

    @cached_property
    def _limit(self) -> str:
        """Name of the option for the limit of a reply.

        OpenAI's reasoning models refuse the old name, and compatible servers may not know the new one.
        """
        return "max_completion_tokens" if self.is_official else "max_tokens"

    def _resource(self, sdk: Any) -> Any:
        return sdk.chat.completions

    def _request(self, conversation: Sequence[Message], tools: Sequence[Tool]) -> tuple[Json, Json]:
        payload: Json = {"model": self.model, "messages": [*self._messages(conversation)]}
        if tools:
            payload["tools"] = [each.definition for each in tools]
        tokens = self._options.token_ids
        return payload, {
            **(asking_for_tokens(tokens, {}) if tokens is not None else {}),
            "stream_options": {"include_usage": True} if self._streams and self._counts_streams else None,
            "temperature": self._options.temperature,
            "top_p": self._options.top_p,
            "seed": self._options.seed,
            "service_tier": self._options.service_tier,
            "reasoning_effort": self._options.effort,
            self._limit: self._options.max_tokens,
        }

    def _do_without(self, fault: ProviderFault) -> bool:
        if "stream_options" in f"{fault.param} {fault.words}" and self._counts_streams:
            self._counts_streams = False  # Servers that do not know it count without.
            return True
        wants_new_name = self._limit == "max_tokens" and "max_completion_tokens" in fault.words
        if wants_new_name:
            self._limit = "max_completion_tokens"
        return wants_new_name

    def _messages(self, conversation: Sequence[Message]) -> Iterator[Json]:
        """Yield the messages; a tool's result is text only, so the user shows its images after the last result."""
        images: list[Json] = []
        for message in conversation:
            if message.role != "tool" and images:
                yield {"role": "user", "content": images}
                images = []
            yield self._message(message)
            for image in message.images:
                images.append({"type": "text", "text": f"The image of the call {message.call_id}:"})
                images.append({"type": "image_url", "image_url": {"url": image.url}})
        if images:
            yield {"role": "user", "content": images}

    def _message(self, message: Message) -> Json:
        if message.role == "tool":
            return {"role": "tool", "tool_call_id": self._id_taken(message.call_id), "content": message.text}
        if message.role != "assistant":
            return {"role": message.role, "content": message.text}
        native = native_of(message, _API)
        if native is None:
            native = {"role": "assistant", "content": message.text if message.text or not message.calls else None}
            if message.calls:
                native["tool_calls"] = [_call(each) for each in message.calls]
        if calls := native.get("tool_calls"):
            native = native | {"tool_calls": [self._taken(call) for call in calls]}
        return native if self.is_official else _with_json_arguments(native)

    def _taken(self, call: Json) -> Json:
        """Return a call as the API takes it back: it refuses names and ids that models write."""
        function = call["function"]
        named = function | {"name": name_taken(str(function.get("name") or ""))}
        return call | {"id": self._id_taken(call["id"]), "function": named}

    def _id_taken(self, id: str) -> str:
        """Return the id of a call; compatible servers get their own back, which some models know their calls by."""
        return id_taken(id, 40) if self.is_official else id

    def reply(self, body: Json) -> Reply:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""
        choices = listed(body["choices"])
        if (server := self._options.token_ids) is not None and (lack := lack_of_tokens(server, body)):
            raise ModelFault(f"{self.label} at {self.base_url}: {lack}")
        message: Json = choices[0]["message"]
        native = {"role": "assistant", "content": None} | {
            name: value for name, value in message.items() if name not in _ANSWER_ONLY and value not in (None, "", [])
        }
        # Some servers give calls no ids; without them results cannot be matched.
        native_calls = [{"type": "function"} | call | {"id": _id_of(call)} for call in native.get("tool_calls", ())]
        if native_calls:
            native["tool_calls"] = native_calls
        elif native["content"] is None:
            native["content"] = ""
        return Reply(
            text=_text(message.get("content")) or str(message.get("refusal") or ""),
            calls=tuple(_as_call(call) for call in native_calls),
            reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
            native=tagged(_API, native),
            ending=_ending(choices[0].get("finish_reason"), message, bool(native_calls)),
            stop_reason=str(choices[0].get("finish_reason") or ""),
            model=str(body.get("model") or ""),
            tokens=tokens_told(_API, [body]),
        )


def _ending(word: Any, message: Json, calls: bool) -> Ending:
    """Return why a reply ended; ``word`` is its ``finish_reason``."""
    if word == "content_filter":
        return "filtered"
    if message.get("refusal"):
        return "refused"
    if word == "length":
        return "length"
    return "calls" if calls else "done" if word == "stop" else "unknown"


def _call(call: RequestedCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}


def _id_of(call: Json) -> str:
    return call.get("id") or f"call_{uuid.uuid4().hex}"


def _as_call(call: Json) -> RequestedCall:
    function = call.get("function") or {}
    arguments, written = arguments_of(function.get("arguments"))
    return RequestedCall(call["id"], str(function.get("name") or ""), arguments, written)


def _with_json_arguments(message: Json) -> Json:
    """Replace arguments that are not JSON by none: servers that render the history themselves fail on them."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    mended = []
    for call in calls:
        arguments, _ = arguments_of(call["function"].get("arguments"))
        mended.append(call if arguments is not None else call | {"function": call["function"] | {"arguments": "{}"}})
    return message | {"tool_calls": mended}


def _text(content: Any) -> str:
    """Return a message's text, which may come as a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")
