"""The form of Anthropic's Messages: what comes in, and replies going out.

Models that are called ``claude-opus-5-5`` refuse their own thoughts where what was said before them has changed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.model_scripts import Asked, Part, Say, Think, Tokens, Use

Json = dict[str, Any]
_ids = itertools.count(1)
_BINDS_THOUGHTS = "claude-opus-5-5"
_COMPACTS, _CONTROLS_BINDING = "compact-2026-09-04", "thinking-binding-controls-2026-08-01"
#: What each summary stands for, by its signature: the block as it was returned, and the blocks that it replaces.
_summarised: dict[str, tuple[Json, list[Any]]] = {}


def read_request(asked: Asked) -> None:
    """Fill in the conversation."""
    asked.compacts = "compaction" in asked.body
    asked.system = _text(asked.body.get("system"))
    for message in asked.body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        asked.replies += message["role"] == "assistant"
        for block in blocks:
            if block["type"] == "tool_use":
                asked.calls[block["id"]] = block["name"]
            elif block["type"] == "tool_result":
                asked.results[block["tool_use_id"]] = _text(block.get("content"))
            elif block["type"] == "text" and message["role"] == "user":
                asked.said.append(block["text"])
            elif block["type"] == "compaction":
                asked.summary = block["content"]
    for tool in asked.body.get("tools") or ():
        asked.tools[tool["name"]] = tool.get("input_schema", {})


def malformed(asked: Asked) -> str:
    """What of a conversation the API refuses: empty messages, calls without results, blocks that were changed."""
    body = asked.body
    betas = asked.headers.get("anthropic-beta", "").split(",")
    if wrong := _wrong_compaction(body, betas):
        return wrong
    if "block_binding" in body.get("thinking", {}) and _CONTROLS_BINDING not in betas:
        return "thinking.adaptive.block_binding: Extra inputs are not permitted"
    if (unbound := _unbound(asked)) and not _drops_unbound(body):
        return (
            f"{unbound[0]}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
            'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )
    for number, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        kinds = [block["type"] for block in blocks]
        if not message["content"]:
            return f"messages.{number}: all messages must have non-empty content"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return f"messages.{number}: text content blocks must be non-empty"
        if any(
            block["type"] == "thinking" and not block["signature"].startswith(_sign(block["thinking"]))
            for block in blocks
        ):
            return f"messages.{number}: Invalid `signature` in `thinking` block"
        if "tool_result" in kinds and kinds[: kinds.count("tool_result")] != ["tool_result"] * kinds.count(
            "tool_result"
        ):
            return f"messages.{number}: `tool_result` blocks have to come first"
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        after = body["messages"][number + 1]["content"] if calls else []
        results = [block.get("tool_use_id") for block in after if isinstance(block, dict)]
        if set(calls) - set(results):
            return f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after"
    marks = json.dumps(body).count('"cache_control"')
    return f"A maximum of 4 blocks with cache_control may be provided. Found {marks}." if marks > 4 else ""


def _wrong_compaction(body: Json, betas: Sequence[str]) -> str:
    blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    summaries = [block for block in blocks if block["type"] == "compaction"]
    if "compaction" in body and _COMPACTS not in betas:
        return f"the `compaction` parameter requires anthropic-beta: {_COMPACTS}"
    if "compaction" in body and "context_management" in body:
        return "compaction cannot be combined with context_management"
    if summaries and _COMPACTS not in betas:
        return "messages.0.content.0: Input tag 'compaction' does not match any of the expected tags"
    if len(summaries) > 1 or (summaries and summaries[0] is not blocks[0]):
        return "the compaction block has to be the first block of the conversation, and the only one"
    if summaries and summaries[0] != _summarised[summaries[0]["signature"]][0]:
        return "the content of the compaction block differs from what was returned"
    return ""


def _said_before(body: Json, path: str | None = None) -> list[Any]:
    """Everything that was said before a block, or in all, without thoughts; a summary is what it stands for."""
    said: list[Any] = [_plain(body.get("system")), _plain(body.get("tools"))]
    for number, message in enumerate(body["messages"]):
        content = message["content"]
        for place, block in enumerate([{"type": "text", "text": content}] if isinstance(content, str) else content):
            if f"messages.{number}.content.{place}" == path:
                return said
            if block["type"] == "compaction":
                said += _summarised[block["signature"]][1]
            elif block["type"] != "thinking":
                said.append([message["role"], _plain(block)])
    return said


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name != "cache_control"}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _bound(text: str, said: list[Any]) -> str:
    return f"{_sign(text)} {hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:12]}"


def _unbound(asked: Asked) -> list[str]:
    """The paths of the thoughts before which something has changed, and of all after the first of them."""
    if asked.model != _BINDS_THOUGHTS:
        return []
    paths = [
        (f"messages.{number}.content.{place}", block)
        for number, message in enumerate(asked.body["messages"])
        for place, block in enumerate(message["content"])
        if isinstance(block, dict) and block["type"] == "thinking"
    ]
    wrong = [
        number
        for number, (path, block) in enumerate(paths)
        if block["signature"] != _bound(block["thinking"], _said_before(asked.body, path))
    ]
    return [path for path, _ in paths[wrong[0] :]] if wrong else []


def _drops_unbound(body: Json) -> bool:
    binding = body.get("thinking", {}).get("block_binding", {})
    return bool(binding.get("prefix_mismatch_behavior") == "drop_block")


def _write_summary(asked: Asked, parts: Sequence[Part], tokens: Tokens) -> Json:
    content: list[Json] = []
    for part in parts:
        if isinstance(part, Say):
            content.append({"type": "compaction", "content": part.text, "signature": f"summary {next(_ids)}"})
            _summarised[content[0]["signature"]] = (content[0], _said_before(asked.body)[2:])
    nothing = {"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 0}
    counted = {"type": "compaction", "input_tokens": tokens.prompt, "output_tokens": tokens.completion}
    return {
        "id": f"msg_{next(_ids)}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": "compaction" if content else "refusal",
        "stop_sequence": None,
        "usage": nothing | {"iterations": [counted]},
    }


def write_reply(asked: Asked, parts: Sequence[Part], tokens: Tokens, cut_off: bool) -> Json:
    """A reply, as it is sent in one piece."""
    if asked.compacts:
        return _write_summary(asked, parts, tokens)
    content: list[Json] = []
    for part in parts:
        match part:
            case Think(text):
                bound = asked.model == _BINDS_THOUGHTS
                signature = _bound(text, _said_before(asked.body)) if bound else _sign(text)
                content.append({"type": "thinking", "thinking": text, "signature": signature})
            case Say(text):
                content.append({"type": "text", "text": text})
            case Use(tool, arguments):
                content.append({"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": tool, "input": arguments})
    uses = any(isinstance(part, Use) for part in parts)
    return {
        "id": f"msg_{next(_ids)}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": "max_tokens" if cut_off else "tool_use" if uses else "end_turn",
        "stop_sequence": None,
        "input_transformations": [
            {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"} for path in _unbound(asked)
        ],
        "usage": {
            "input_tokens": tokens.prompt - tokens.cached - tokens.written,
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": tokens.written,
            "output_tokens": tokens.completion,
        },
    }


def events(reply: Json) -> Iterator[Json]:
    """The reply in pieces."""
    begun = reply | {"content": [], "stop_reason": None, "usage": reply["usage"] | {"output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(reply["content"]):
        unfilled = {"text": "", "thinking": "", "signature": "", "input": {}}
        start = block | {key: value for key, value in unfilled.items() if key in block}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in _block_deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {key: reply[key] for key in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": reply["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _block_deltas(block: Json) -> list[Json]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": piece} for piece in (block["text"][:3], block["text"][3:])]
    if block["type"] == "thinking":
        thinking = {"type": "thinking_delta", "thinking": block["thinking"]}
        return [thinking, {"type": "signature_delta", "signature": block["signature"]}]
    written = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
    return [{"type": "input_json_delta", "partial_json": piece} for piece in ("", written[:5], written[5:])]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content)
    return str(content or "")


def _sign(text: str) -> str:
    return f"signature of {len(text)}:{sum(map(ord, text))}"
