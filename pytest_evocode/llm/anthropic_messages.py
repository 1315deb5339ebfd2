"""Anthropic's Messages, with the conversation cached at the provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_evocode.errors import RequestRefused
from pytest_evocode.llm.base_client import BaseClient
from pytest_evocode.llm.connection import Json
from pytest_evocode.llm.protocol import Message, Reply, RequestedCall, Tool
from pytest_evocode.llm.replies import arguments_of, native_of, priced_usage, tagged, without_open_end
from pytest_evocode.results.records import Usage

_API = "messages"
# The API wants a limit for each reply; this is long for one step of an agent, and cheap not to use.
_MAX_TOKENS, _MAX_TOKENS_OF_UNKNOWN = 32_000, 8192
_CACHED = {"cache_control": {"type": "ephemeral"}}
# Models that take a budget of thinking think between calls of tools only when they are told that they may.
_THINKS_BETWEEN_CALLS = {"anthropic-beta": "interleaved-thinking-2025-05-14"}


class MessagesClient(BaseClient):
    """Speaks Messages."""

    def _resource(self, sdk: Any) -> Any:
        return sdk.messages

    def complete(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """See :class:`~pytest_evocode.llm.protocol.ModelClient`."""
        # The model is an option as far as the SDK knows, which otherwise warns at each request of one that will end.
        payload: Json = {"model": "", "messages": _messages(conversation), "max_tokens": self._max_tokens}
        if system := [_text(message.text) for message in conversation if message.role == "system" and message.text]:
            payload["system"] = [*system[:-1], system[-1] | _CACHED]
        if tools:
            payload["tools"] = [*(_tool(each) for each in tools[:-1]), _tool(tools[-1]) | _CACHED]
        options = {
            "model": self.model,
            "temperature": self._options.temperature,
            "output_config": {"effort": self._options.effort} if self._options.effort is not None else None,
            "thinking": self._thinking,
        }
        if self._budget:
            payload["extra_headers"] = _THINKS_BETWEEN_CALLS
        try:
            body, request_id = self._connection.post(self._resource, payload, options, timeout)
        except RequestRefused as refused:
            raise self._connection.explain(refused.fault) from None
        return self._reply(body, request_id)

    @property
    def _budget(self) -> int:
        """Tokens of thinking that the options give, where they give a number."""
        return self._options.thinking if isinstance(self._options.thinking, int) else 0

    @property
    def _thinking(self) -> Json | None:
        if self._options.thinking is None:
            return None
        if self._options.thinking == "adaptive":
            return {"type": "adaptive", "display": "summarized"}
        if self._budget:
            return {"type": "enabled", "budget_tokens": self._budget, "display": "summarized"}
        return {"type": "disabled"}

    @property
    def _max_tokens(self) -> int:
        """A budget of thinking is part of the limit, and comes on top of what the reply itself may have."""
        if self._options.max_tokens is not None:
            return self._options.max_tokens
        most = self._facts.output_tokens if self._facts else None
        return min(_MAX_TOKENS + self._budget, most) if most else _MAX_TOKENS_OF_UNKNOWN + self._budget

    def _reply(self, body: Json, request_id: str) -> Reply:
        content = body.get("content")
        if not isinstance(content, list):
            raise self._connection.unreadable(body, request_id, "Messages")
        return Reply(
            text="".join(str(block.get("text") or "") for block in content if block.get("type") == "text"),
            calls=tuple(_as_call(block) for block in content if block.get("type") == "tool_use"),
            reasoning="\n\n".join(
                str(block["thinking"]) for block in content if block.get("type") == "thinking" and block.get("thinking")
            ),
            native=tagged(_API, content),
            usage=self._usage(body.get("usage") or {}),
            request_id=request_id,
            cut_off=body.get("stop_reason") in ("max_tokens", "model_context_window_exceeded"),
        )

    def _usage(self, usage: Json) -> Usage:
        """The API counts what the cache took and gave apart from the other input."""
        rest, read = usage.get("input_tokens"), usage.get("cache_read_input_tokens")
        written = usage.get("cache_creation_input_tokens")
        prompt = None if rest is None else rest + (read or 0) + (written or 0)
        return priced_usage(self._facts, prompt, usage.get("output_tokens"), cached=read, written=written)


def _messages(conversation: Sequence[Message]) -> list[Json]:
    """Turns of user and assistant: what follows one another on the same side is one, and empty ones are refused."""
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
    # The end of what was sent is in the cache for the next request, the one before it was put there by the last.
    for turn in [turn for turn in turns if turn["role"] == "user"][-2:]:
        turn["content"][-1] |= _CACHED
    return turns


def _blocks(message: Message) -> list[Json]:
    if message.role == "tool":
        result: Json = {"type": "tool_result", "tool_use_id": message.call_id}
        return [result | ({"content": message.text} if message.text else {})]
    native = native_of(message, _API) if message.role == "assistant" else None
    if native is not None:
        said = [block for block in native if block.get("type") != "text" or str(block.get("text") or "").strip()]
        return without_open_end(said, ("thinking", "redacted_thinking"))
    text = [_text(message.text)] if message.text.strip() and message.role != "system" else []
    return [*text, *(_call(each) for each in message.calls)]


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _tool(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _call(call: RequestedCall) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}}


def _as_call(block: Json) -> RequestedCall:
    given: Any = block.get("input")
    arguments, written = arguments_of(given)
    return RequestedCall(str(block.get("id")), str(block.get("name")), arguments, written)
