"""OpenAI's Responses API, by its reference and the messages that its refusals have.

Reasoning is encrypted for those who ask for it. Without it, it can be sent back only where the response was stored.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.model_scripts import Asked, Say, Think
from tests.providers.chat_api import (
    LONGEST,
    REASONS,
    check_length,
    check_name,
    openai_error,
    openai_key,
    openai_models,
    openai_status,
)
from tests.providers.exchanges import (
    Event,
    Json,
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
    "access_programs background background_options context_management conversation image include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store "
    "stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user"
)
# Not in the reference, but Codex sends it.
_TAKEN = FIELDS | {"client_metadata"}
#: Of the items that clients write or send back most; of others the fields are not looked at.
ITEM_FIELDS = {
    "message": names("type role content id status phase"),
    "function_call": names("type call_id name arguments id status caller namespace async"),
    "function_call_output": names("type call_id output id status caller"),
    "reasoning": names("type id summary content encrypted_content status"),
}
_CONTENT = {
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "assistant": ("output_text", "refusal"),
}
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_ID = re.compile(r"[a-zA-Z0-9_-]+")


class ResponsesApi:
    """See :class:`~tests.providers.exchanges.Api`."""

    name = "responses"

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._stored: dict[str, list[Json]] = {}
        """By the id of a stored response, the conversation up to its end."""
        self._kept: set[str] = set()
        """The ids of stored items."""
        self._reasoned: dict[str, str] = {}
        """By the id of an item, that of the reasoning that it came with."""

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return openai_key(headers)

    def check(self, asked: Asked) -> None:
        body = asked.body
        if extra := unknown(body, _TAKEN):
            raise Refused("invalid", f"Unknown parameter: '{extra}'.", param=extra, code="unknown_parameter")
        for name in ("model", "input"):
            if name not in body:
                raise Refused(
                    "invalid",
                    f"Missing required parameter: '{name}'.",
                    param=name,
                    code="missing_required_parameter",
                )
        _check_options(body)
        previous = body.get("previous_response_id")
        if previous is not None and previous not in self._stored:
            raise Refused(
                "invalid",
                f"Previous response with id '{previous}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        for number, item in enumerate(body["input"] if isinstance(body["input"], list) else ()):
            _check_item(f"input[{number}]", item)
        items = self._items(body)
        _check_calls(items)
        self._check_reasoning(items)

    def _items(self, body: Json) -> list[Json]:
        given = body["input"]
        new = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return [*self._stored.get(body.get("previous_response_id") or "", ()), *new]

    def _check_reasoning(self, items: Sequence[Json]) -> None:
        ids = [item["id"] for item in items if item.get("id")]
        if twice := next((each for each in ids if ids.count(each) > 1), None):
            raise Refused(
                "invalid",
                f"Duplicate item found with id {twice}. Remove duplicate items from your input and try again.",
                param="input",
            )
        for item, after in itertools.pairwise([*items, {"type": "end"}]):
            needed = self._reasoned.get(item.get("id") or "")
            if needed and needed not in ids:
                raise Refused(
                    "invalid",
                    f"Item '{item['id']}' of type '{_kind(item)}' was provided without its required 'reasoning' item: "
                    f"'{needed}'.",
                    param="input",
                )
            if _kind(item) != "reasoning":
                continue
            if not _by_model(after):
                raise Refused(
                    "invalid",
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                    param="input",
                )
            encrypted = item.get("encrypted_content")
            if encrypted is None and item["id"] not in self._kept:
                raise Refused(
                    "not_found",
                    f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. "
                    "Try again with `store` set to true, or remove this item from your input.",
                    param="input",
                )
            if encrypted is not None and encrypted != sign(item["id"]):
                raise Refused(
                    "invalid",
                    f"The encrypted content {encrypted[:8]}... could not be verified. Reason: Encrypted content could "
                    "not be decrypted or parsed.",
                    code="invalid_encrypted_content",
                )

    def read(self, asked: Asked) -> None:
        asked.system = text_of(asked.body.get("instructions"))
        before = False
        for item in self._items(asked.body):
            asked.replies += _by_model(item) and not before
            before = _by_model(item)
            match _kind(item):
                case "function_call" | "custom_tool_call":
                    asked.calls[item["call_id"]] = item["name"]
                case "function_call_output" | "custom_tool_call_output":
                    add_result(asked, item["call_id"], text_of(item["output"]))
                case "message" if item["role"] == "user":
                    asked.said.append(text_of(item["content"]))
                case "message" if item["role"] != "assistant":
                    asked.system += text_of(item["content"])
        for tool in asked.body.get("tools") or ():
            if tool["type"] == "function":
                asked.tools[tool["name"]] = tool.get("parameters") or {}

    def streams(self, asked: Asked) -> bool:
        return bool(asked.body.get("stream"))

    def reply(self, asked: Asked, said: Said) -> Json:
        return self._whole(asked, said, self._output(asked, said))

    def _output(self, asked: Asked, said: Said) -> list[Json]:
        encrypts = "reasoning.encrypted_content" in (asked.body.get("include") or ())
        summarises = bool((asked.body.get("reasoning") or {}).get("summary"))
        cut = said.stop == "length"
        output: list[Json] = []
        reasoning = ""
        for part in said.parts:
            number = f"{next(self._ids):032x}"
            if isinstance(part, Think):
                reasoning = f"rs_{number}"
                summary = [{"type": "summary_text", "text": part.text}] if summarises else []
                item: Json = {"type": "reasoning", "id": reasoning, "summary": summary}
                output.append(item | ({"encrypted_content": sign(reasoning)} if encrypts else {}))
                continue
            status = {"status": "incomplete" if cut and part is said.parts[-1] else "completed"}
            if isinstance(part, Say):
                kind = "refusal" if said.stop == "refusal" else "output_text"
                content: Json = {"type": kind, "refusal": part.text}
                if kind == "output_text":
                    content = {"type": kind, "text": part.text, "annotations": [], "logprobs": []}
                item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [content]}
            else:
                item = {"type": "function_call", "id": f"fc_{number}", "call_id": part.id, "name": part.tool}
                item["arguments"] = part.written[: len(part.written) // 2] if cut else part.written
            if reasoning:
                self._reasoned[item["id"]] = reasoning
            output.append(item | status)
        return output

    def _whole(self, asked: Asked, said: Said, output: list[Json]) -> Json:
        body = asked.body
        whole: Json = {
            "id": f"resp_{next(self._ids):032x}",
            "object": "response",
            "created_at": 1767225600,
            "status": "incomplete" if said.stop == "length" else "completed",
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if said.stop == "length" else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "metadata": body.get("metadata") or {},
            "model": asked.model,
            "output": output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": body.get("previous_response_id"),
            "reasoning": {"effort": "medium", "summary": None} | (body.get("reasoning") or {}),
            "service_tier": "default",
            "store": body.get("store") is not False,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium"} | (body.get("text") or {}),
            "tool_choice": body.get("tool_choice") or "auto",
            "tools": body.get("tools") or [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None if said.reported is None else _usage(said.reported),
        }
        if whole["store"]:
            self._stored[whole["id"]] = [*self._items(body), *output]
            self._kept |= {item["id"] for item in output}
        return whole

    def events(self, asked: Asked, said: Said) -> Iterator[Event]:
        output = self._output(asked, said)
        whole = self._whole(asked, said, output)
        begun = whole | {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
        events: list[Json] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        for index, item in enumerate(output):
            empty = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
            started = item | {name: value for name, value in empty.items() if name in item}
            events.append({"type": "response.output_item.added", "output_index": index, "item": started})
            events += [event | {"output_index": index, "item_id": item["id"]} for event in _item_events(item)]
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": f"response.{whole['status']}", "response": whole})
        for number, event in enumerate(events):
            yield event["type"], event | {"sequence_number": number}

    def status(self, refused: Refused) -> int:
        return openai_status(refused)

    def error(self, refused: Refused) -> Json:
        return openai_error(refused)

    def error_event(self, refused: Refused, sent: int) -> Event:
        error = openai_error(refused)["error"]
        code = error["code"] or error["type"]
        data = {"type": "error", "code": code, "message": error["message"], "param": None, "sequence_number": sent}
        return "error", data

    def call_id(self, number: int) -> str:
        return f"call_{number:024d}"

    def models(self, shown: Sequence[Shown]) -> Json:
        return openai_models(shown)


def _kind(item: Json) -> str:
    return str(item.get("type") or "message")


def _by_model(item: Json) -> bool:
    kinds = ("reasoning", "function_call", "custom_tool_call")
    return _kind(item) in kinds or (_kind(item) == "message" and item["role"] == "assistant")


def _check_options(body: Json) -> None:
    if REASONS.match(body["model"]) and body.get("temperature") not in (None, 1):
        raise Refused(
            "invalid",
            "Unsupported parameter: 'temperature' is not supported with this model.",
            param="temperature",
        )
    limit = body.get("max_output_tokens")
    if limit is not None and limit < 16:
        raise Refused(
            "invalid",
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got "
            f"{limit} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    for number, tool in enumerate(body.get("tools") or ()):
        if tool["type"] == "function":
            check_name(f"tools[{number}].name", tool["name"])


def _check_item(where: str, item: Json) -> None:
    kind = _kind(item)
    if kind in ITEM_FIELDS and (extra := unknown(item, ITEM_FIELDS[kind])):
        place = f"{where}.{extra}"
        raise Refused("invalid", f"Unknown parameter: '{place}'.", param=place, code="unknown_parameter")
    if item.get("id") is not None:
        _check_id(f"{where}.id", kind, item["id"])
    if kind in ("function_call", "function_call_output"):
        if not item["call_id"]:
            raise Refused(
                "invalid",
                f"Invalid '{where}.call_id': empty string. Expected a string with minimum length 1, but got an empty "
                "string instead.",
                param=f"{where}.call_id",
                code="empty_string",
            )
        check_length(f"{where}.call_id", item["call_id"])
    if kind == "function_call":
        check_name(f"{where}.name", item["name"])
        if not isinstance(item["arguments"], str):
            place = f"{where}.arguments"
            raise Refused(
                "invalid",
                f"Invalid type for '{place}': expected a string, but got an object instead.",
                param=place,
                code="invalid_type",
            )
    if kind == "message":
        allowed = _CONTENT["assistant" if item["role"] == "assistant" else "user"]
        for number, part in enumerate(item["content"] if isinstance(item["content"], list) else ()):
            if part["type"] not in allowed:
                raise Refused(
                    "invalid",
                    f"Invalid value: '{part['type']}'. Supported values are: {', '.join(map(repr, allowed))}.",
                    param=f"{where}.content[{number}]",
                    code="invalid_value",
                )


def _check_id(where: str, kind: str, given: str) -> None:
    if not _ID.fullmatch(given):
        raise Refused(
            "invalid",
            f"Invalid '{where}': '{given}'. Expected an ID that contains letters, numbers, underscores, or dashes, "
            "but this value contained additional characters.",
            param=where,
            code="invalid_value",
        )
    if len(given) > LONGEST:
        check_length(where, given)
    if not given.startswith(prefix := _PREFIXES.get(kind, "")):
        raise Refused(
            "invalid",
            f"Invalid '{where}': '{given}'. Expected an ID that begins with '{prefix}'.",
            param=where,
            code="invalid_value",
        )


def _check_calls(items: Sequence[Json]) -> None:
    """Each call has its output somewhere after it, and each output its call before it."""
    calls: list[str] = []
    answered: list[str] = []
    for item in items:
        if _kind(item) == "function_call":
            calls.append(item["call_id"])
        elif _kind(item) == "function_call_output":
            if item["call_id"] not in calls:
                raise Refused(
                    "invalid",
                    f"No tool call found for function call output with call_id {item['call_id']}.",
                    param="input",
                )
            answered.append(item["call_id"])
    if missing := [call for call in calls if call not in answered]:
        raise Refused("invalid", f"No tool output found for function call {missing[0]}.", param="input")


def _item_events(item: Json) -> Iterator[Json]:
    match item["type"]:
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                at = {"summary_index": index}
                empty = part | {"text": ""}
                yield {"type": "response.reasoning_summary_part.added", "part": empty} | at
                for piece in pieces(part["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", "delta": piece} | at
                yield {"type": "response.reasoning_summary_text.done", "text": part["text"]} | at
                yield {"type": "response.reasoning_summary_part.done", "part": part} | at
        case "message":
            [part] = item["content"]
            at = {"content_index": 0}
            spoken = "refusal" if part["type"] == "refusal" else "text"
            kind = "response.refusal" if spoken == "refusal" else "response.output_text"
            more: dict[str, Any] = {} if spoken == "refusal" else {"logprobs": []}
            yield {"type": "response.content_part.added", "part": part | {spoken: ""}} | at
            for piece in pieces(part[spoken]):
                yield {"type": f"{kind}.delta", "delta": piece} | at | more
            yield {"type": f"{kind}.done", spoken: part[spoken]} | at | more
            yield {"type": "response.content_part.done", "part": part} | at
        case "function_call":
            for piece in pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
            done = {"type": "response.function_call_arguments.done", "name": item["name"]}
            yield done | {"arguments": item["arguments"]}


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.output,
    }
