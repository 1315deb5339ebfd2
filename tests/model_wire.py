"""The forms of Chat Completions, Responses and Messages: what comes in, and replies and errors going out."""

from __future__ import annotations

import base64
import itertools
import json
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from tests import gemini_wire, messages_wire
from tests.model_scripts import Asked, CutOff, Fail, Part, Say, Think, Tokens, Use

Json = dict[str, Any]
#: By the end of the address; the last four are those of Bedrock and Vertex AI.
APIS = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/responses/compact": "responses",
    "/messages": "messages",
    ":generateContent": "gemini",
    ":streamGenerateContent": "gemini",
    "/invoke": "messages",
    "/invoke-with-response-stream": "messages",
    ":rawPredict": "messages",
    ":streamRawPredict": "messages",
}
AWS_STREAM = "/invoke-with-response-stream"
_METHODS = "/invoke|/invoke-with-response-stream|:rawPredict|:streamRawPredict|:generateContent|:streamGenerateContent"
_MODEL_IN_PATH = re.compile(rf"/models?/([^/]+?)({_METHODS})$")
#: The names of tools that providers publish.
_NAMES = {
    "chat": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "responses": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "messages": re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}"),
}
_ids = itertools.count(1)
#: What summaries say, by the encrypted content that stands for them in Responses.
_summaries: dict[str, str] = {}


def read_request(api: str, path: str, headers: dict[str, str], body: Json) -> Asked:
    """A request, and the conversation in it."""
    if named := _MODEL_IN_PATH.search(path):
        body = {"model": unquote(named[1])} | body
    asked = Asked(path, api, headers, body)
    readers = {
        "chat": _read_chat,
        "responses": _read_responses,
        "messages": messages_wire.read_request,
        "gemini": gemini_wire.read_request,
    }
    readers[api](asked)
    return asked


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content)
    return str(content or "")


def _read_chat(asked: Asked) -> None:
    for message in asked.body["messages"]:
        match message["role"]:
            case "system" | "developer":
                asked.system += _text(message["content"])
            case "user":
                asked.said.append(_text(message["content"]))
            case "tool":
                asked.results[message["tool_call_id"]] = _text(message["content"])
            case "assistant":
                asked.replies += 1
                asked.calls |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
    for tool in asked.body.get("tools") or ():
        asked.tools[tool["function"]["name"]] = tool["function"].get("parameters", {})


def _read_responses(asked: Asked) -> None:
    asked.compacts = asked.path.endswith("/compact")
    asked.system = _text(asked.body.get("instructions"))
    given = asked.body["input"]
    before = ""
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind == "compaction":
            asked.summary = _summaries[item["encrypted_content"]]
            continue
        by_model = kind in ("reasoning", "function_call", "custom_tool_call") or item.get("role") == "assistant"
        asked.replies += by_model and before != "model"
        before = "model" if by_model else "user"
        if kind in ("function_call", "custom_tool_call"):
            asked.calls[item["call_id"]] = item["name"]
        elif kind in ("function_call_output", "custom_tool_call_output"):
            asked.results[item["call_id"]] = _text(item["output"])
        elif kind == "message" and item["role"] == "user":
            asked.said.append(_text(item["content"]))
        elif kind == "message" and not by_model:
            asked.system += _text(item["content"])
    for tool in asked.body.get("tools") or ():
        if tool["type"] == "function":
            asked.tools[tool["name"]] = tool.get("parameters", {})
        elif tool["type"] == "namespace":
            asked.tools |= {f"{tool['name']}/{each['name']}": each["parameters"] for each in tool["tools"]}


def refusal(asked: Asked, key: str | None, models: Sequence[str], context_tokens: int | None) -> Fail | None:
    """Why the provider would not have the model answer; None where it would."""
    given = asked.headers.get("x-goog-api-key") or asked.headers.get("x-api-key") or asked.headers.get("api-key")
    given = given or asked.headers.get("authorization", "").removeprefix("Bearer ")
    size = len(json.dumps(asked.body)) // 4
    if key is not None and given != key:
        return Fail(401)
    if models and asked.model not in models:
        return Fail(404)
    if context_tokens is not None and size > context_tokens:
        return overflow(asked.api, size, context_tokens)
    wrong = _malformed(asked)
    return Fail(400, wrong) if wrong else None


def overflow(api: str, size: int, context_tokens: int) -> Fail:
    """What is said of a conversation that is too long."""
    if api == "messages":
        return Fail(400, f"prompt is too long: {size} tokens > {context_tokens} maximum")
    words = {
        "gemini": f"The input token count ({size}) exceeds the maximum number of tokens allowed ({context_tokens}).",
        "chat": f"This model's maximum context length is {context_tokens} tokens. However, your messages resulted in "
        f"{size} tokens. Please reduce the length of the messages.",
        "responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    }
    return Fail(400, words[api], code="context_length_exceeded")


def _malformed(asked: Asked) -> str:
    """What of a conversation the provider refuses: calls without results and the other way round, reasoning changed."""
    if wrong := [name for name in asked.calls.values() if not _NAMES[asked.api].fullmatch(name)]:
        return f"tool names that do not match {_NAMES[asked.api].pattern}: {wrong}"
    if missing := set(asked.calls) - set(asked.results):
        return f"tool calls without a result: {sorted(missing)}"
    if surplus := set(asked.results) - set(asked.calls):
        return f"results of calls that are not there: {sorted(surplus)}"
    if asked.api == "gemini":
        return gemini_wire.malformed(asked)
    if asked.api == "messages":
        return "max_tokens: Field required" if "max_tokens" not in asked.body else messages_wire.malformed(asked)
    if asked.api == "chat" and any(
        message["role"] == "assistant" and message.get("content") is None and not message.get("tool_calls")
        for message in asked.body["messages"]
    ):
        return "Invalid value for 'content': expected a string, got null."
    if asked.api == "responses":
        for item in asked.body["input"] if isinstance(asked.body["input"], list) else ():
            if item.get("type") == "reasoning" and item["encrypted_content"] != _sign(_text(item["summary"])):
                return "The encrypted content could not be verified."
    return ""


_WORDS = {
    400: ("invalid_request_error", "The request is wrong."),
    401: ("authentication_error", "Incorrect API key provided."),
    403: ("permission_error", "Your key may not use this."),
    404: ("not_found_error", "The model does not exist or you do not have access to it."),
    408: ("timeout_error", "The request timed out."),
    409: ("conflict_error", "The request is in conflict with another."),
    429: ("rate_limit_error", "Rate limit reached."),
    500: ("api_error", "The server had an error."),
    529: ("overloaded_error", "Overloaded"),
}


def error_body(api: str, fail: Fail) -> Json:
    """An error in the form of the API."""
    kind, words = _WORDS.get(fail.status, _WORDS[500 if fail.status >= 500 else 400])
    error: Json = {"type": kind, "message": fail.message or words}
    if api == "gemini":
        return gemini_wire.error_body(fail, words)
    if api == "messages":
        return {"type": "error", "error": error, "request_id": None}
    code = fail.code or ("model_not_found" if fail.status == 404 else None)
    return {"error": error | {"code": code, "param": fail.param}}


def tokens_of(parts: Sequence[Part], default: Tokens) -> Tokens:
    """What a reply of these parts counts."""
    return next((part for part in parts if isinstance(part, Tokens)), default)


def write_reply(asked: Asked, parts: Sequence[Part], default: Tokens) -> Json:
    """A reply in the form of the API, as it is sent in one piece."""
    writers = {
        "chat": _write_chat,
        "responses": _write_responses,
        "messages": messages_wire.write_reply,
        "gemini": gemini_wire.write_reply,
    }
    return writers[asked.api](asked, parts, tokens_of(parts, default), any(isinstance(part, CutOff) for part in parts))


def _arguments(use: Use) -> str:
    return use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments)


def _sign(text: str) -> str:
    return f"signature of {len(text)}:{sum(map(ord, text))}"


def _write_chat(asked: Asked, parts: Sequence[Part], tokens: Tokens, cut_off: bool) -> Json:
    said = "".join(part.text for part in parts if isinstance(part, Say))
    message: Json = {"role": "assistant", "content": said or None, "refusal": None, "annotations": []}
    if thoughts := "".join(part.text for part in parts if isinstance(part, Think)):
        message["reasoning_content"] = thoughts
    calls = [
        {"id": f"call_{next(_ids)}", "type": "function", "function": {"name": use.tool, "arguments": _arguments(use)}}
        for use in parts
        if isinstance(use, Use)
    ]
    if calls:
        message["tool_calls"] = calls
    reason = "length" if cut_off else "tool_calls" if calls else "stop"
    return {
        "id": f"chatcmpl-{next(_ids)}",
        "object": "chat.completion",
        "created": 1,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {
            "prompt_tokens": tokens.prompt,
            "completion_tokens": tokens.completion,
            "total_tokens": tokens.prompt + tokens.completion,
            "prompt_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _write_compacted(asked: Asked, parts: Sequence[Part], tokens: Tokens) -> Json:
    """What stands for a conversation: all that the user said, and a summary that nobody can read."""
    output: list[Json] = [
        {
            "type": "message",
            "id": f"msg_{next(_ids)}",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }
        for text in asked.said
    ]
    encrypted = f"encrypted-{next(_ids)}"
    _summaries[encrypted] = "".join(part.text for part in parts if isinstance(part, Say))
    return {
        "id": f"resp_{next(_ids)}",
        "object": "response.compaction",
        "created_at": 1,
        "output": [*output, {"type": "compaction", "id": f"cmp_{next(_ids)}", "encrypted_content": encrypted}],
        "usage": _responses_usage(tokens),
    }


def _responses_usage(tokens: Tokens) -> Json:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
        "output_tokens": tokens.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.prompt + tokens.completion,
    }


def _write_responses(asked: Asked, parts: Sequence[Part], tokens: Tokens, cut_off: bool) -> Json:
    if asked.compacts:
        return _write_compacted(asked, parts, tokens)
    output: list[Json] = []
    for part in parts:
        match part:
            case Think(text):
                summary = [{"type": "summary_text", "text": text}]
                item = {"type": "reasoning", "id": f"rs_{next(_ids)}", "summary": summary}
                output.append(item | {"encrypted_content": _sign(text)})
            case Say(text):
                content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
                item = {"type": "message", "id": f"msg_{next(_ids)}", "role": "assistant", "content": content}
                output.append(item | {"status": "completed"})
            case Use(tool):
                item = {"type": "function_call", "id": f"fc_{next(_ids)}", "call_id": f"call_{next(_ids)}"}
                namespace, _, name = tool.rpartition("/")
                item |= {"namespace": namespace} if namespace else {}
                output.append(item | {"name": name, "arguments": _arguments(part), "status": "completed"})
    return {
        "id": f"resp_{next(_ids)}",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if cut_off else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut_off else None,
        "error": None,
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": asked.body.get("tools") or [],
        "usage": _responses_usage(tokens),
    }


def wants_stream(asked: Asked) -> bool:
    """Whether a request asks for a stream, by its body or by its address."""
    return bool(asked.body.get("stream")) or asked.path.endswith((":streamGenerateContent", AWS_STREAM))


def aws_event(data: bytes) -> bytes:
    """One message of an event stream of AWS, which Bedrock wraps events in."""
    payload = json.dumps({"bytes": base64.b64encode(data).decode()}).encode()
    headers = b""
    for name, value in (
        (b":event-type", b"chunk"),
        (b":content-type", b"application/json"),
        (b":message-type", b"event"),
    ):
        headers += bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
    begin = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    begin += struct.pack(">I", zlib.crc32(begin)) + headers + payload
    return begin + struct.pack(">I", zlib.crc32(begin))


def event_data(data: Any) -> bytes:
    """The data of one server-sent event."""
    return (data if isinstance(data, str) else json.dumps(data)).encode()


def events(api: str, reply: Json) -> list[tuple[str, Any]]:
    """The reply in pieces: the names of server-sent events, if they have any, and their data."""
    if api == "chat":
        return [*(("", chunk) for chunk in _chat_chunks(reply)), ("", "[DONE]")]
    if api == "messages":
        return [(data["type"], data) for data in messages_wire.events(reply)]
    if api == "gemini":
        return [("", chunk) for chunk in gemini_wire.chunks(reply)]
    return [(data["type"], data | {"sequence_number": i}) for i, data in enumerate(_response_events(reply))]


def _chat_chunks(reply: Json) -> Iterator[Json]:
    [choice] = reply["choices"]
    common = reply | {"object": "chat.completion.chunk", "usage": None}

    def chunk(delta: Json, reason: str | None = None) -> Json:
        return common | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    message = {key: value for key, value in choice["message"].items() if key not in ("tool_calls", "annotations")}
    growing = [key for key, value in message.items() if isinstance(value, str) and key != "role"]
    yield chunk(message | dict.fromkeys(growing, ""))
    for key in sorted(growing, key="content".__eq__):  # Thoughts come first.
        for piece in (message[key][:3], message[key][3:]):
            yield chunk({key: piece})
    for index, call in enumerate(choice["message"].get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        begun = {"index": index} | call | {"function": call["function"] | {"arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        for piece in (arguments[:5], arguments[5:]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    ending = {key: value for key, value in choice.items() if key not in ("message", "index")}
    yield common | {"choices": [{"index": 0, "delta": {}} | ending]}
    yield common | {"choices": [], "usage": reply["usage"]}


def _response_events(reply: Json) -> Iterator[Json]:
    begun = reply | {"status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(reply["output"]):
        at = {"output_index": index}
        unfilled = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
        started = item | {key: value for key, value in unfilled.items() if key in item}
        yield {"type": "response.output_item.added", "item": started} | at
        at["item_id"] = item["id"]
        if item["type"] == "message":
            [part] = item["content"]
            at["content_index"] = 0
            yield {"type": "response.content_part.added", "part": part | {"text": ""}} | at
            yield {"type": "response.output_text.delta", "delta": part["text"], "logprobs": []} | at
            yield {"type": "response.output_text.done", "text": part["text"], "logprobs": []} | at
            yield {"type": "response.content_part.done", "part": part} | at
        elif item["type"] == "function_call":
            yield {"type": "response.function_call_arguments.delta", "delta": item["arguments"]} | at
            done = {"type": "response.function_call_arguments.done", "name": item["name"]}
            yield done | {"arguments": item["arguments"]} | at
        yield {"type": "response.output_item.done", "item": item, "output_index": index}
    yield {"type": f"response.{reply['status']}", "response": reply}
