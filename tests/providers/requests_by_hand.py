"""Requests to fake providers without an SDK: what is right for each API, and how it is sent."""

from __future__ import annotations

import copy
import http.client
import json
from typing import Any

from tests.providers.exchanges import Json
from tests.providers.server import KEY, ProviderServer

APIS = ("messages", "chat", "responses", "gemini")
_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
_ARGUMENTS = {"command": "ls"}

#: A conversation with one call and its result, as each API wants it.
RIGHT: dict[str, Json] = {
    "messages": {
        "model": "claude-opus-4-8",
        "max_tokens": 1000,
        "system": "You are a programmer.",
        "tools": [{"name": "bash", "description": "Runs a script.", "input_schema": _SCHEMA}],
        "messages": [
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": _ARGUMENTS},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "log.txt"}]},
        ],
    },
    "chat": {
        "model": "gpt-5",
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": _SCHEMA}}],
        "messages": [
            {"role": "system", "content": "You are a programmer."},
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "bash", "arguments": json.dumps(_ARGUMENTS)},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "log.txt"},
        ],
    },
    "responses": {
        "model": "gpt-5",
        "store": False,
        "instructions": "You are a programmer.",
        "tools": [{"type": "function", "name": "bash", "parameters": _SCHEMA, "strict": False}],
        "input": [
            {"role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": json.dumps(_ARGUMENTS)},
            {"type": "function_call_output", "call_id": "call_1", "output": "log.txt"},
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "You are a programmer."}]},
        "tools": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": _SCHEMA}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "bash", "args": _ARGUMENTS}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": "log.txt"}}}]},
        ],
    },
}


def right(api: str) -> Json:
    """A copy of a request that is right, to be changed."""
    return copy.deepcopy(RIGHT[api])


def headers_for(api: str, key: str | None = KEY) -> dict[str, str]:
    """The headers of a request; without a key where it is None."""
    headers = {"content-type": "application/json"}
    if api == "messages":
        headers["anthropic-version"] = "2023-06-01"
    if key is not None:
        named = {"messages": {"x-api-key": key}, "gemini": {"x-goog-api-key": key}}
        headers |= named.get(api, {"authorization": f"Bearer {key}"})
    return headers


def path_for(api: str, *, stream: bool = False, model: str = "gemini-2.5-pro") -> str:
    """The path of a request to the model."""
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    paths = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
    return paths.get(api, f"/v1beta/models/{model}:{method}")


def send(
    server: ProviderServer,
    api: str,
    body: Any,
    *,
    headers: dict[str, str] | None = None,
    path: str = "",
    timeout: float = 5.0,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Send a request and return the status, the headers and the body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        written = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path or path_for(api), written, headers or headers_for(api))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def words_of(answer: bytes) -> str:
    """The message of an error, in whichever form."""
    return str(json.loads(answer)["error"]["message"])


def streamed(api: str, body: Json) -> tuple[Json, str]:
    """A request and its path as they ask for a stream."""
    if api == "gemini":
        return body, path_for(api, stream=True)
    options = {"stream_options": {"include_usage": True}} if api == "chat" else {}
    return body | {"stream": True} | options, path_for(api)
