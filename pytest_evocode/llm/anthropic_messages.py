"""Client of Anthropic's Messages API; the conversation is cached at the provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_evocode.llm.base_client import BaseClient, arguments_of, id_taken, listed, name_taken, without_open_end
from pytest_evocode.llm.connection import Json
from pytest_evocode.llm.protocol import Ending, Message, Reply, RequestedCall, ShownImage, Tool, native_of, tagged
from pytest_evocode.llm.provider_errors import ProviderFault
from pytest_evocode.llm.streams import StreamedMessage

_API: Literal["messages"] = "messages"
# The API requires a limit for each reply; tokens that are not used cost nothing.
_MAX_TOKENS, _MAX_TOKENS_OF_UNKNOWN = 32_000, 8192
_CACHED = {"cache_control": {"type": "ephemeral"}}
# Models with a thinking budget think between tool calls only with this beta feature.
_THINKS_BETWEEN_CALLS = "interleaved-thinking-2025-05-14"
# For requests of a summary, and for those that have one.
_COMPACTS = "compact-2026-09-04"
# Newer models refuse thoughts before which the conversation was changed, as by shortening it, unless they are told to
# leave these thoughts out.
_DROPS_THOUGHTS = "thinking-binding-controls-2026-08-01"
# Fields that the API refuses beside a request for a summary.
_UNCOMPACTED = ("context_management", "stop_sequences", "tool_choice")
_DROP = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}

#: Why a reply ended, in one word for all providers, by the API's own.
ENDINGS: dict[Any, Ending] = {
    "end_turn": "done",
    "stop_sequence": "done",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "context",
    "refusal": "refused",
    "pause_turn": "paused",
    "compaction": "done",
}


class MessagesClient(BaseClient):
    """Client of the Messages API."""

    _form = "Messages"
    _api = _API
    _streamed = StreamedMessage
    _drops_thoughts = False

    def _resource(self, sdk: Any) -> Any:
        return sdk.messages

    def _request(self, conversation: Sequence[Message], tools: Sequence[Tool]) -> tuple[Json, Json]:
        # The model goes into the body below: given as an argument, a deprecated one makes the SDK warn each time. At
        # platforms it is part of the address, which the SDK makes of the argument.
        at_platform = self._provider.is_platform
        payload: Json = {
            "model": self.model if at_platform else "",
            "messages": _messages(conversation),
            "max_tokens": self._max_tokens,
        }
        if system := [_text(message.text) for message in conversation if message.role == "system" and message.text]:
            payload["system"] = [*system[:-1], system[-1] | _CACHED]
        if tools:
            payload["tools"] = [*(_tool(each) for each in tools[:-1]), _tool(tools[-1]) | _CACHED]
        if betas := [feature for feature, used in self._betas(payload["messages"]).items() if used]:
            payload["extra_headers"] = {"anthropic-beta": ",".join(betas)}
        return payload, {
            "model": None if at_platform else self.model,
            "temperature": self._options.temperature,
            "top_p": self._options.top_p,
            "service_tier": self._options.service_tier,
            "output_config": {"effort": self._options.effort} if self._options.effort is not None else None,
            "thinking": self._thinking,
        }

    def _betas(self, messages: list[Json]) -> dict[str, bool]:
        """Return the beta features that a request may need, each with whether it does."""
        first = messages[0]["content"][0] if messages else {}
        return {
            _THINKS_BETWEEN_CALLS: bool(self._budget),
            _COMPACTS: first.get("type") == "compaction" and "signature" in first,
            _DROPS_THOUGHTS: self._drops_thoughts,
        }

    def check_compaction(self) -> None:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""
        self.probe_compaction()

    def compact(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""

        def request() -> tuple[Json, Json]:
            payload, options = self._request(conversation, tools)
            betas = payload.get("extra_headers", {}).get("anthropic-beta", "").split(",")
            # A later summary is of an earlier one, too, whose request has the feature already.
            payload["extra_headers"] = {"anthropic-beta": ",".join(dict.fromkeys([*filter(None, betas), _COMPACTS]))}
            options |= {name: value for name, value in self._extra_body.items() if name not in _UNCOMPACTED}
            return payload, options | {"compaction": {"type": "summarize"}}

        reply = self._ask(request, self._resource, self.reply, timeout)
        blocks = [block for block in native_of(reply.message, _API) if block.get("type") == "compaction"]
        summary = "\n\n".join(str(block.get("content") or "") for block in blocks)
        return replace(reply, text=summary, native=tagged(_API, blocks) if summary else None)

    def _do_without(self, fault: ProviderFault) -> bool:
        bound = fault.status == 400 and "prefix_mismatch_behavior" in fault.words and not self._drops_thoughts
        self._drops_thoughts |= bound
        return bound

    @property
    def _budget(self) -> int:
        """Tokens of thinking per reply that the options give; 0 where they give no number."""
        return self._options.thinking if isinstance(self._options.thinking, int) else 0

    @property
    def _thinking(self) -> Json | None:
        thinking = self._thinking_asked_for
        if not self._drops_thoughts or thinking == {"type": "disabled"}:
            return thinking
        return (thinking or {"type": "adaptive"}) | _DROP

    @property
    def _thinking_asked_for(self) -> Json | None:
        if self._options.thinking is None:
            return None
        if self._options.thinking == "adaptive":
            return {"type": "adaptive", "display": "summarized"}
        if self._budget:
            return {"type": "enabled", "budget_tokens": self._budget, "display": "summarized"}
        return {"type": "disabled"}

    @property
    def _max_tokens(self) -> int:
        """Limit of a reply in tokens: the thinking budget counts towards it, and is added to the reply's own."""
        if self._options.max_tokens is not None:
            return self._options.max_tokens
        most = self._facts.output_tokens if self._facts else None
        return min(_MAX_TOKENS + self._budget, most) if most else _MAX_TOKENS_OF_UNKNOWN + self._budget

    def reply(self, body: Json) -> Reply:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""
        content = listed(body["content"])
        return Reply(
            text="".join(str(block.get("text") or "") for block in content if block.get("type") == "text"),
            calls=tuple(_as_call(block) for block in content if block.get("type") == "tool_use"),
            reasoning="\n\n".join(
                str(block["thinking"]) for block in content if block.get("type") == "thinking" and block.get("thinking")
            ),
            native=tagged(_API, content),
            ending=ENDINGS.get(body.get("stop_reason"), "unknown"),
            stop_reason=str(body.get("stop_reason") or ""),
            model=str(body.get("model") or ""),
            remarks=_remarks(body),
        )


def _remarks(body: Json) -> Json:
    """Return what the API did to the conversation before the model saw it."""
    dropped = [each for each in body.get("input_transformations") or () if each.get("type") == "thinking_dropped"]
    edits = (body.get("context_management") or {}).get("applied_edits")
    return ({"thinking_dropped": len(dropped)} if dropped else {}) | ({"applied_edits": edits} if edits else {})


def _messages(conversation: Sequence[Message]) -> list[Json]:
    """Return the conversation as the API takes it: consecutive messages of one side are merged, empty ones dropped."""
    turns: list[Json] = []
    for message in conversation:
        blocks = _blocks(message)
        if not blocks:
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    # The last end is cached for the next request; the one before it is found in the cache by this one.
    for turn in [turn for turn in turns if turn["role"] == "user"][-2:]:
        turn["content"][-1] |= _CACHED
    return turns


def _blocks(message: Message) -> list[Json]:
    if message.role == "tool":
        result: Json = {"type": "tool_result", "tool_use_id": id_taken(message.call_id)}
        content: Any = message.text
        if message.images:
            content = [_text(message.text), *(_image(image) for image in message.images)]
        return [result | ({"content": content} if content else {})]
    native = native_of(message, _API) if message.role == "assistant" else None
    if native is not None:
        blocks = [block for block in native if block.get("type") != "text" or str(block.get("text") or "").strip()]
        return without_open_end([_taken(block) for block in blocks], ("thinking", "redacted_thinking"))
    text = [_text(message.text)] if message.text.strip() and message.role != "system" else []
    return [*text, *(_call(each) for each in message.calls)]


def _taken(block: Json) -> Json:
    """Return a block as the API takes it back: it refuses names, ids and arguments that models write."""
    if block.get("type") != "tool_use":
        return block
    given = block.get("input")
    # What a stream brought may be no JSON.
    arguments = given if isinstance(given, dict) else {}
    return block | {"id": id_taken(block["id"]), "name": name_taken(block["name"], 128), "input": arguments}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _image(image: ShownImage) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _tool(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _call(call: RequestedCall) -> Json:
    return {"type": "tool_use", "id": id_taken(call.id), "name": name_taken(call.name), "input": call.arguments or {}}


def _as_call(block: Json) -> RequestedCall:
    given: Any = block.get("input")
    arguments, written = arguments_of(given)
    return RequestedCall(str(block.get("id")), str(block.get("name")), arguments, written)
