"""OpenAI's Chat Completions API, by its reference and the messages that its refusals have.

Models whose names begin with ``gpt-5`` or ``o`` and a digit refuse what reasoning models refuse.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.model_scripts import Asked
from tests.providers.exchanges import (
    Call,
    Event,
    Json,
    Kind,
    Refused,
    Said,
    Shown,
    Usage,
    add_result,
    names,
    pieces,
    text_of,
    unknown,
)

FIELDS = names(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages "
    "metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier "
    "stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options"
)
# Annotations are in replies, which the guide on function calling sends back as they came.
_MESSAGE_FIELDS = names("role content name refusal audio tool_calls function_call tool_call_id annotations")
_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
REASONS = re.compile(r"(gpt-5|o\d)")
#: Longest names of functions and ids of calls.
LONGEST = 64
_STATUS: dict[Kind, tuple[int, str, str | None, str]] = {
    "invalid": (400, "invalid_request_error", None, "The request is invalid."),
    "context": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. "
        "Please reduce the length of the messages.",
    ),
    "authentication": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-***."),
    "permission": (403, "invalid_request_error", "unsupported_country_region_territory", "You may not do this."),
    "not_found": (404, "invalid_request_error", "model_not_found", "The model does not exist."),
    "rate_limit": (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests per min (RPM)."),
    "server": (500, "server_error", None, "The server had an error while processing your request. Sorry about that!"),
    "overloaded": (503, "server_error", "server_is_overloaded", "The server is currently overloaded. Try again later."),
}


def openai_key(headers: Mapping[str, str]) -> str | None:
    """The key of a request to one of OpenAI's APIs."""
    return headers.get("authorization", "").removeprefix("Bearer ") or headers.get("api-key")


def openai_status(refused: Refused) -> int:
    """The HTTP status of an error of one of OpenAI's APIs."""
    return _STATUS[refused.kind][0]


def openai_error(refused: Refused) -> Json:
    """The body of an error of one of OpenAI's APIs."""
    _, kind, code, words = _STATUS[refused.kind]
    error = {"message": refused.message or words, "type": kind}
    return {"error": error | {"param": refused.param or None, "code": refused.code or code}}


def openai_models(shown: Sequence[Shown]) -> Json:
    """The list of models of OpenAI's APIs, which does not tell their windows."""
    data = [{"id": each.name, "object": "model", "created": 1767225600, "owned_by": "system"} for each in shown]
    return {"object": "list", "data": data}


def check_name(where: str, name: str) -> None:
    """Raise Refused for the name of a function."""
    if not _NAME.fullmatch(name):
        raise Refused(
            "invalid",
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            param=where,
            code="invalid_value",
        )
    check_length(where, name)


def check_length(where: str, text: str) -> None:
    """Raise Refused for an id or a name that is too long."""
    if len(text) > LONGEST:
        raise Refused(
            "invalid",
            f"Invalid '{where}': string too long. Expected a string with maximum length {LONGEST}, but got a string "
            f"with length {len(text)} instead.",
            param=where,
            code="string_above_max_length",
        )


class ChatApi:
    """See :class:`~tests.providers.exchanges.Api`.

    ``thoughts``: the field of messages in which a compatible server shows the model's reasoning, and takes it back;
    OpenAI itself has none.
    """

    name = "chat"

    def __init__(self, thoughts: str | None = None) -> None:
        self._thoughts = thoughts
        self._ids = itertools.count(1)

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return openai_key(headers)

    def check(self, asked: Asked) -> None:
        body = asked.body
        if extra := unknown(body, FIELDS):
            raise Refused("invalid", f"Unrecognized request argument supplied: {extra}")
        for name in ("model", "messages"):
            if name not in body:
                raise Refused("invalid", f"you must provide a {name} parameter", code="missing_required_parameter")
        _check_options(body)
        if not body["messages"]:
            raise Refused(
                "invalid",
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array "
                "instead.",
                param="messages",
                code="empty_array",
            )
        for number, tool in enumerate(body.get("tools") or ()):
            check_name(f"tools[{number}].function.name", tool["function"]["name"])
        fields = _MESSAGE_FIELDS | {self._thoughts} if self._thoughts else _MESSAGE_FIELDS
        for number, message in enumerate(body["messages"]):
            if extra := unknown(message, fields):
                where = f"messages[{number}].{extra}"
                raise Refused("invalid", f"Unknown parameter: '{where}'.", param=where, code="unknown_parameter")
            _check_message(f"messages[{number}]", message)
        _check_calls(body["messages"])

    def read(self, asked: Asked) -> None:
        for message in asked.body["messages"]:
            match message["role"]:
                case "system" | "developer":
                    asked.system += text_of(message["content"])
                case "user":
                    asked.said.append(text_of(message["content"]))
                case "tool":
                    add_result(asked, message["tool_call_id"], text_of(message["content"]))
                case "assistant":
                    asked.replies += 1
                    asked.calls |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
        for tool in asked.body.get("tools") or ():
            asked.tools[tool["function"]["name"]] = tool["function"].get("parameters", {})

    def streams(self, asked: Asked) -> bool:
        return bool(asked.body.get("stream"))

    def reply(self, asked: Asked, said: Said) -> Json:
        refuses = said.stop == "refusal"
        message: Json = {
            "role": "assistant",
            "content": None if refuses else said.text or None,
            "refusal": said.text if refuses else None,
            "annotations": [],
        }
        if self._thoughts and said.thoughts:
            message[self._thoughts] = said.thoughts
        if said.calls:
            message["tool_calls"] = [_call(call, said.stop == "length") for call in said.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(said)}
        whole = self._begin(asked, "chat.completion") | {"choices": [choice]}
        return whole if said.reported is None else whole | {"usage": _usage(said.reported)}

    def _begin(self, asked: Asked, kind: str) -> Json:
        return {
            "id": f"chatcmpl-{next(self._ids):024d}",
            "object": kind,
            "created": 1767225600,
            "model": asked.model,
            "service_tier": "default",
            "system_fingerprint": None,
        }

    def events(self, asked: Asked, said: Said) -> Iterator[Event]:
        counts = bool((asked.body.get("stream_options") or {}).get("include_usage"))
        common = self._begin(asked, "chat.completion.chunk") | ({"usage": None} if counts else {})

        def chunk(delta: Json, reason: str | None = None) -> Event:
            return "", common | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

        spoken = "refusal" if said.stop == "refusal" else "content"
        yield chunk({"role": "assistant", "content": "" if spoken == "content" else None, "refusal": None})
        if self._thoughts:
            for piece in pieces(said.thoughts):
                yield chunk({self._thoughts: piece})
        for piece in pieces(said.text):
            yield chunk({spoken: piece})
        for index, call in enumerate(said.calls):
            written = _call(call, said.stop == "length")
            arguments = written["function"]["arguments"]
            begun = written | {"function": written["function"] | {"arguments": ""}}
            yield chunk({"tool_calls": [{"index": index} | begun]})
            for piece in pieces(arguments):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish_reason(said))
        if counts and said.reported is not None:
            yield "", common | {"choices": [], "usage": _usage(said.reported)}
        yield "", "[DONE]"

    def status(self, refused: Refused) -> int:
        return openai_status(refused)

    def error(self, refused: Refused) -> Json:
        return openai_error(refused)

    def error_event(self, refused: Refused, sent: int) -> Event:
        return "", self.error(refused)

    def call_id(self, number: int) -> str:
        return f"call_{number:024d}"

    def models(self, shown: Sequence[Shown]) -> Json:
        return openai_models(shown)


def _check_options(body: Json) -> None:
    if "stream_options" in body and body["stream_options"] is not None and not body.get("stream"):
        raise Refused(
            "invalid",
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    if REASONS.match(body["model"]):
        if body.get("max_tokens") is not None:
            raise Refused(
                "invalid",
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                "instead.",
                param="max_tokens",
                code="unsupported_parameter",
            )
        if body.get("temperature") not in (None, 1):
            raise Refused(
                "invalid",
                f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. Only the "
                "default (1) value is supported.",
                param="temperature",
                code="unsupported_value",
            )
    if body.get("tools") == []:
        raise Refused(
            "invalid",
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="tools",
            code="empty_array",
        )
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not body.get("tools"):
            raise Refused(
                "invalid",
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
            )


def _check_message(where: str, message: Json) -> None:
    if message["role"] not in _ROLES:
        raise Refused(
            "invalid",
            f"Invalid value: '{message['role']}'. Supported values are: {', '.join(map(repr, _ROLES))}.",
            param=f"{where}.role",
            code="invalid_value",
        )
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        raise Refused(
            "invalid",
            f"Invalid '{where}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty "
            "array instead.",
            param=f"{where}.tool_calls",
            code="empty_array",
        )
    speaks = message.get("content") is not None or message.get("refusal") is not None or message.get("audio")
    if not speaks and not calls:
        raise Refused("invalid", "Invalid value for 'content': expected a string, got null.", param=f"{where}.content")
    for number, call in enumerate(calls or ()):
        check_length(f"{where}.tool_calls[{number}].id", call["id"])
        check_name(f"{where}.tool_calls[{number}].function.name", call["function"]["name"])
        if not isinstance(call["function"]["arguments"], str):
            place = f"{where}.tool_calls[{number}].function.arguments"
            raise Refused(
                "invalid",
                f"Invalid type for '{place}': expected a string, but got an object instead.",
                param=place,
                code="invalid_type",
            )
    if message["role"] == "tool" and not message.get("tool_call_id"):
        raise Refused(
            "invalid",
            "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
            param=f"{where}.tool_call_id",
        )


def _check_calls(messages: Sequence[Json]) -> None:
    """Results follow their calls, and nothing comes between them."""
    left: list[str] = []
    allowed: list[str] = []
    for number, message in enumerate([*messages, {"role": "user"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in allowed:
                raise Refused(
                    "invalid",
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    param=f"messages.[{number}].role",
                )
            left = [call for call in left if call != message["tool_call_id"]]
            continue
        if left:
            raise Refused(
                "invalid",
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(left)}",
                param="messages",
            )
        allowed = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(allowed)) < len(allowed):
            twice = next(call for call in allowed if allowed.count(call) > 1)
            raise Refused("invalid", f"Duplicate value for 'tool_call_id' of '{twice}' in message[{number}].")
        left = allowed


def _finish_reason(said: Said) -> str:
    if said.stop == "length":
        return "length"
    return "tool_calls" if said.calls else "stop"


def _call(call: Call, cut: bool) -> Json:
    arguments = call.written[: len(call.written) // 2] if cut else call.written
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _usage(usage: Usage) -> Json:
    counted: dict[str, Any] = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.written,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    return counted
