"""Anthropic's Messages API, by its reference and the messages that its refusals have.

Consecutive turns of one side count as one, as the reference says. Prefilled replies are refused, as newer models do.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.model_scripts import Asked, Say, Think
from tests.providers.exchanges import (
    Call,
    Event,
    Issued,
    Json,
    Kind,
    Refused,
    Said,
    Shown,
    Usage,
    add_result,
    names,
    pieces,
    sign,
    text_of,
    unknown,
)

FIELDS = names(
    "billing_policy cache_control compaction container context_management diagnostics fallback_credit_token fallbacks "
    "inference_geo max_tokens mcp_servers messages metadata model output_config output_format service_tier speed "
    "stop_sequences stream system temperature thinking thread tool_choice tools top_k top_p"
)
#: Of the blocks that clients write themselves; of others the fields are not looked at.
BLOCK_FIELDS = {
    "text": names("type text cache_control citations"),
    "thinking": names("type thinking signature"),
    "redacted_thinking": names("type data"),
    "tool_use": names("type id name input cache_control caller toolset_name"),
    "tool_result": names("type tool_use_id content is_error cache_control toolset_name"),
}
_STATUS: dict[Kind, tuple[int, str, str]] = {
    "invalid": (400, "invalid_request_error", "The request is invalid."),
    "context": (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "permission": (403, "permission_error", "Your API key does not have permission to use the specified resource."),
    "not_found": (404, "not_found_error", "The requested resource was not found."),
    "rate_limit": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "server": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}
#: Models before Opus 4.8.
_OLDER = re.compile(r"claude-(3|[a-z]+-4-[0-7](?!\d))")
_NAME, _ID = re.compile(r"[a-zA-Z0-9_-]{1,128}"), re.compile(r"[a-zA-Z0-9_-]+")


class MessagesApi:
    """See :class:`~tests.providers.exchanges.Api`."""

    name = "messages"

    def __init__(self) -> None:
        self._issued = Issued()
        self._ids = itertools.count(1)

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ") or None

    def check(self, asked: Asked) -> None:
        body = asked.body
        if "anthropic-version" not in asked.headers:
            raise Refused("invalid", "anthropic-version: header is required")
        if extra := unknown(body, FIELDS):
            raise Refused("invalid", f"{extra}: Extra inputs are not permitted")
        needed = ("model", "messages", *(() if asked.path.endswith("/count_tokens") else ("max_tokens",)))
        for name in needed:
            if name not in body:
                raise Refused("invalid", f"{name}: Field required")
        _check_limits(body)
        _check_tools(body)
        _check_texts("system", body.get("system") or [])
        messages = body["messages"]
        if not messages:
            raise Refused("invalid", "messages: at least one message is required")
        for number, message in enumerate(messages):
            _check_message(number, message)
            if message["role"] == "system":
                _check_place(number, messages, asked.model)
        if messages[-1]["role"] == "assistant":
            raise Refused(
                "invalid",
                "This model does not support assistant message prefill. The conversation must end with a user message.",
            )
        turns = _turns(messages)
        _check_calls(turns)
        if (body.get("thinking") or {}).get("type", "disabled") != "disabled":
            self._check_thoughts(turns)
        if (marks := _count_marks(body)) > 4:
            raise Refused("invalid", f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")

    def _check_thoughts(self, turns: Sequence[Json]) -> None:
        """What the model thought before the calls of the last turn has to be there."""
        for number, turn in enumerate(turns):
            thoughts = [block["thinking"] for block in turn["content"] if block["type"] == "thinking"]
            for block in turn["content"] if number == len(turns) - 2 else ():
                thought = self._issued.thoughts.get(block.get("id", ""), "") if block["type"] == "tool_use" else ""
                if thought and thought not in thoughts:
                    raise Refused(
                        "invalid",
                        f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                        f"`{turn['content'][0]['type']}`. When `thinking` is enabled, a final `assistant` message must "
                        "start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` "
                        "blocks).",
                    )

    def read(self, asked: Asked) -> None:
        within = [message["content"] for message in asked.body["messages"] if message["role"] == "system"]
        asked.system = "\n".join(map(text_of, [asked.body.get("system"), *within]))
        for turn in _turns(asked.body["messages"]):
            asked.replies += turn["role"] == "assistant"
            for block in turn["content"]:
                if block["type"] == "tool_use":
                    asked.calls[block["id"]] = block["name"]
                elif block["type"] == "tool_result":
                    add_result(asked, block["tool_use_id"], text_of(block.get("content")))
                elif block["type"] == "text" and turn["role"] == "user":
                    asked.said.append(block["text"])
        for tool in asked.body.get("tools") or ():
            asked.tools[tool["name"]] = tool.get("input_schema", {})

    def streams(self, asked: Asked) -> bool:
        return bool(asked.body.get("stream"))

    def reply(self, asked: Asked, said: Said) -> Json:
        for call in said.calls:
            self._issued.thoughts[call.id] = said.thoughts
        cut = said.stop == "length"
        message = self._begin(asked, said)
        message["content"] = [_block(part, cut) for part in said.parts]
        if said.stop == "refusal":
            message["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
        message["stop_reason"] = _stop_reason(said)
        if said.reported is not None:
            message["usage"] = _usage(said.reported)
        return message

    def _begin(self, asked: Asked, said: Said) -> Json:
        return {
            "id": f"msg_01{next(self._ids):022d}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }

    def events(self, asked: Asked, said: Said) -> Iterator[Event]:
        whole = self.reply(asked, said)
        begun = whole | {"content": [], "stop_reason": None}
        begun.pop("stop_details", None)
        if said.reported is not None:
            begun["usage"] = _usage(said.reported) | {"output_tokens": 1, "service_tier": "standard"}
            begun["usage"].pop("output_tokens_details", None)
        yield _event({"type": "message_start", "message": begun})
        for index, part in enumerate(said.parts):
            empty = {"text": "", "thinking": "", "signature": "", "input": {}}
            block = whole["content"][index]
            start = block | {name: value for name, value in empty.items() if name in block}
            yield _event({"type": "content_block_start", "index": index, "content_block": start})
            if index == 0:
                yield _event({"type": "ping"})
            for delta in _deltas(part, said.stop == "length"):
                yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            yield _event({"type": "content_block_stop", "index": index})
        ending = {name: whole[name] for name in ("stop_reason", "stop_sequence", "stop_details") if name in whole}
        usage = {} if said.reported is None else {"usage": whole["usage"]}
        yield _event({"type": "message_delta", "delta": ending} | usage)
        yield _event({"type": "message_stop"})

    def status(self, refused: Refused) -> int:
        return _STATUS[refused.kind][0]

    def error(self, refused: Refused) -> Json:
        _, kind, words = _STATUS[refused.kind]
        error = {"type": kind, "message": refused.message or words}
        return {"type": "error", "error": error, "request_id": f"req_01{next(self._ids):022d}"}

    def error_event(self, refused: Refused, sent: int) -> Event:
        return "error", self.error(refused)

    def call_id(self, number: int) -> str:
        return f"toolu_01{number:022d}"

    def models(self, shown: Sequence[Shown]) -> Json:
        data = [
            {
                "type": "model",
                "id": each.name,
                "display_name": each.name,
                "created_at": "2026-01-01T00:00:00Z",
                "max_input_tokens": each.context_tokens,
                "max_tokens": each.output_tokens,
                "lifecycle": "active",
            }
            for each in shown
        ]
        ends = [each.name for each in shown]
        return {
            "data": data,
            "has_more": False,
            "first_id": ends[0] if ends else None,
            "last_id": ends[-1] if ends else None,
        }


def _check_limits(body: Json) -> None:
    limit, thinking = body.get("max_tokens", 1), body.get("thinking") or {}
    if not isinstance(limit, int) or limit < 1:
        raise Refused("invalid", "max_tokens: Input should be greater than or equal to 1")
    if thinking.get("type") == "enabled":
        if thinking["budget_tokens"] < 1024:
            raise Refused("invalid", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if limit <= thinking["budget_tokens"]:
            raise Refused("invalid", "`max_tokens` must be greater than `thinking.budget_tokens`.")
        if body.get("temperature", 1) != 1:
            raise Refused("invalid", "`temperature` may only be set to 1 when thinking is enabled.")


def _check_tools(body: Json) -> None:
    names: set[str] = set()
    for number, tool in enumerate(body.get("tools") or ()):
        if tool.get("type", "custom") not in ("custom", None):
            continue
        if not _NAME.fullmatch(tool["name"]):
            raise Refused(
                "invalid", f"tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )
        if tool["input_schema"].get("type") != "object":
            raise Refused("invalid", f"tools.{number}.custom.input_schema.type: Input should be 'object'")
        if tool["name"] in names:
            raise Refused("invalid", "tools: Tool names must be unique.")
        names.add(tool["name"])
    choice = body.get("tool_choice") or {}
    if choice.get("type") == "tool" and choice["name"] not in names:
        raise Refused("invalid", f"Tool '{choice['name']}' not found in provided tools")


def _check_texts(where: str, content: Any) -> None:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block["type"] == "text" and not block["text"]:
            raise Refused("invalid", f"{where}: text content blocks must be non-empty")
        if block["type"] == "text" and not block["text"].strip():
            raise Refused("invalid", f"{where}: text content blocks must contain non-whitespace text")


def _check_message(number: int, message: Json) -> None:
    known = names("role content clear_at output_config" if message["role"] == "system" else "role content")
    if extra := unknown(message, known):
        raise Refused("invalid", f"messages.{number}.{extra}: Extra inputs are not permitted")
    if message["role"] not in ("user", "assistant", "system"):
        raise Refused("invalid", f"messages.{number}.role: Input should be 'user', 'assistant' or 'system'")
    if number == 0 and message["role"] != "user":
        raise Refused("invalid", 'messages: first message must use the "user" role')
    if not message["content"]:
        raise Refused(
            "invalid",
            f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
            "message",
        )
    _check_texts("messages", message["content"])
    for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
        _check_block(f"messages.{number}.content.{place}", message["role"], block)


def _check_place(number: int, messages: Sequence[Json], model: str) -> None:
    """Newer models take instructions in the conversation, right after what the user says."""
    if _OLDER.search(model):
        raise Refused("invalid", f"messages.{number}.role: role 'system' is not supported on this model")
    if messages[number - 1]["role"] == "assistant":
        raise Refused("invalid", f"messages.{number}: `system` messages must follow a `user` message")


def _check_block(where: str, role: str, block: Json) -> None:
    kind = block["type"]
    if kind in BLOCK_FIELDS and (extra := unknown(block, BLOCK_FIELDS[kind])):
        raise Refused("invalid", f"{where}.{kind}.{extra}: Extra inputs are not permitted")
    if kind == "tool_use":
        if role != "assistant":
            raise Refused("invalid", f"{where}: `tool_use` blocks can only be in `assistant` messages")
        if not _ID.fullmatch(block["id"]):
            raise Refused("invalid", f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not _NAME.fullmatch(block["name"]):
            raise Refused("invalid", f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(block["input"], dict):
            raise Refused("invalid", f"{where}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result":
        if role != "user":
            raise Refused("invalid", f"{where}: `tool_result` blocks can only be in `user` messages")
        if not _ID.fullmatch(block["tool_use_id"]):
            raise Refused("invalid", f"{where}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        _check_texts(where, block.get("content") or [])
    if kind == "thinking" and block["signature"] != sign(block["thinking"]):
        raise Refused("invalid", f"{where}: Invalid `signature` in `thinking` block")


def _turns(messages: Sequence[Json]) -> list[Json]:
    """The conversation with consecutive messages of one side in one, and without instructions within it."""
    turns: list[Json] = []
    for message in messages:
        if message["role"] == "system":
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": message["role"], "content": blocks})
    return turns


def _check_calls(turns: Sequence[Json]) -> None:
    """Calls have results in the next turn, before anything else there, and each has one."""
    seen: set[str] = set()
    before: list[str] = []
    for number, turn in enumerate([*turns, {"role": "user", "content": []}]):
        kinds = [block["type"] for block in turn["content"]]
        results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        first = results if kinds[: len(results)] == ["tool_result"] * len(results) else []
        if missing := [call for call in before if call not in first]:
            raise Refused(
                "invalid",
                f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message.",
            )
        for place, result in enumerate(results):
            if result not in before:
                raise Refused(
                    "invalid",
                    f"messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{result}. Each `tool_result` block must have a corresponding `tool_use` block in the previous "
                    "message.",
                )
            if result in results[:place]:
                raise Refused(
                    "invalid",
                    f"messages.{number}.content.{place}: each tool_use must have a single result. Found multiple "
                    f"`tool_result` blocks with id: {result}",
                )
        before = []
        for place, block in enumerate(turn["content"]):
            if block["type"] == "tool_use":
                if block["id"] in seen:
                    raise Refused("invalid", f"messages.{number}.content.{place}: `tool_use` ids must be unique")
                seen.add(block["id"])
                before.append(block["id"])


def _count_marks(value: Any) -> int:
    if isinstance(value, dict):
        inside = sum(_count_marks(each) for name, each in value.items() if name not in ("input", "input_schema"))
        return inside + (value.get("cache_control") is not None)
    return sum(map(_count_marks, value)) if isinstance(value, list) else 0


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.uncached,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }


def _stop_reason(said: Said) -> str:
    if said.stop:
        return {"length": "max_tokens", "refusal": "refusal"}[said.stop]
    return "tool_use" if said.calls else "end_turn"


def _block(part: Say | Think | Call, cut: bool) -> Json:
    match part:
        case Say(text):
            return {"type": "text", "text": text}
        case Think(text):
            return {"type": "thinking", "thinking": text, "signature": sign(text)}
        case Call(id_, tool, arguments):
            # What is cut off is no JSON, and so no input.
            return {"type": "tool_use", "id": id_, "name": tool, "input": {} if cut else arguments}


def _deltas(part: Say | Think | Call, cut: bool) -> Iterator[Json]:
    match part:
        case Say(text):
            yield from ({"type": "text_delta", "text": piece} for piece in pieces(text))
        case Think(text):
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(text))
            yield {"type": "signature_delta", "signature": sign(text)}
        case Call():
            written = part.written[: len(part.written) // 2] if cut else part.written
            yield {"type": "input_json_delta", "partial_json": ""}
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(written))


def _event(data: Json) -> Event:
    return data["type"], data
