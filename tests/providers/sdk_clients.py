"""Conversations through the official SDKs, whose histories are sent back as their guides say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from tests.providers.exchanges import Json, Usage
from tests.providers.server import KEY, ProviderServer

_SCHEMA: Json = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass(frozen=True)
class Heard:
    """What a client made of a reply."""

    text: str
    calls: tuple[tuple[str, str, Json], ...]
    """Of each its id, the tool's name and the arguments."""
    usage: Usage
    thoughts: str = ""


class Client(Protocol):
    """A conversation with a model."""

    def say(self, text: str) -> None: ...

    def give(self, results: dict[str, str]) -> None:
        """Send what tools gave, by the ids of their calls."""

    def ask(self, stream: bool) -> Heard: ...

    def close(self) -> None: ...


class AnthropicClient:
    def __init__(self, server: ProviderServer) -> None:
        import anthropic

        self._sdk: Any = anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0)
        self._messages: list[Any] = []

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def give(self, results: dict[str, str]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results.items()]
        self._messages.append({"role": "user", "content": blocks})

    def ask(self, stream: bool) -> Heard:
        request: Json = {
            "model": "claude-opus-4-8",
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "system": "You are a programmer.",
            "tools": [{"name": "bash", "description": "Runs.", "input_schema": _SCHEMA}],
            "messages": self._messages,
        }
        if stream:
            with self._sdk.messages.stream(**request) as events:
                message = events.get_final_message()
        else:
            message = self._sdk.messages.create(**request)
        self._messages.append({"role": "assistant", "content": message.content})
        usage = message.usage
        details = usage.output_tokens_details
        return Heard(
            "".join(block.text for block in message.content if block.type == "text"),
            tuple((block.id, block.name, block.input) for block in message.content if block.type == "tool_use"),
            Usage(
                usage.input_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens,
                usage.output_tokens,
                details.thinking_tokens if details else 0,
            ),
            "".join(block.thinking for block in message.content if block.type == "thinking"),
        )

    def close(self) -> None:
        self._sdk.close()


class ChatClient:
    def __init__(self, server: ProviderServer) -> None:
        import openai

        self._sdk: Any = openai.OpenAI(base_url=server.url_for("chat"), api_key=KEY, max_retries=0)
        self._messages: list[Any] = [{"role": "system", "content": "You are a programmer."}]

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def give(self, results: dict[str, str]) -> None:
        self._messages += [{"role": "tool", "tool_call_id": call, "content": text} for call, text in results.items()]

    def ask(self, stream: bool) -> Heard:
        request: Json = {
            "model": "gpt-5",
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": _SCHEMA}}],
            "messages": self._messages,
        }
        if stream:
            with self._sdk.chat.completions.stream(**request, stream_options={"include_usage": True}) as events:
                whole = events.get_final_completion()
        else:
            whole = self._sdk.chat.completions.create(**request)
        message = whole.choices[0].message
        calls = message.tool_calls or []
        written: Json = {"role": "assistant", "content": message.content}
        if calls:
            written["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in calls
            ]
        self._messages.append(written)
        usage = whole.usage
        cached, written_tokens = (
            usage.prompt_tokens_details.cached_tokens,
            usage.prompt_tokens_details.cache_write_tokens,
        )
        return Heard(
            message.content or "",
            tuple((call.id, call.function.name, json.loads(call.function.arguments)) for call in calls),
            Usage(
                usage.prompt_tokens - cached - written_tokens,
                cached,
                written_tokens,
                usage.completion_tokens,
                usage.completion_tokens_details.reasoning_tokens,
            ),
        )

    def close(self) -> None:
        self._sdk.close()


class ResponsesClient:
    """``stores``: the conversation is kept at the provider, and only what is new is sent."""

    def __init__(self, server: ProviderServer, stores: bool = False) -> None:
        import openai

        self._sdk: Any = openai.OpenAI(base_url=server.url_for("responses"), api_key=KEY, max_retries=0)
        self._items: list[Any] = []
        self._stores, self._previous = stores, None

    def say(self, text: str) -> None:
        self._items.append({"role": "user", "content": text})

    def give(self, results: dict[str, str]) -> None:
        self._items += [
            {"type": "function_call_output", "call_id": call, "output": text} for call, text in results.items()
        ]

    def ask(self, stream: bool) -> Heard:
        request: Json = {
            "model": "gpt-5",
            "instructions": "You are a programmer.",
            "reasoning": {"summary": "auto"},
            "include": ["reasoning.encrypted_content"],
            "tools": [{"type": "function", "name": "bash", "parameters": _SCHEMA, "strict": False}],
            "input": self._items,
            "store": self._stores,
        }
        if self._previous:
            request["previous_response_id"] = self._previous
        if stream:
            with self._sdk.responses.stream(**request) as events:
                response = events.get_final_response()
        else:
            response = self._sdk.responses.create(**request)
        if self._stores:
            self._items, self._previous = [], response.id
        else:
            self._items += [
                item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output
            ]
            for item in self._items:
                for part in item["content"] if isinstance(item.get("content"), list) else ():
                    part.pop("parsed", None)
        usage = response.usage
        details = usage.input_tokens_details
        calls = [item for item in response.output if item.type == "function_call"]
        return Heard(
            response.output_text,
            tuple((call.call_id, call.name, json.loads(call.arguments)) for call in calls),
            Usage(
                usage.input_tokens - details.cached_tokens - details.cache_write_tokens,
                details.cached_tokens,
                details.cache_write_tokens,
                usage.output_tokens,
                usage.output_tokens_details.reasoning_tokens,
            ),
            "".join(part.text for item in response.output if item.type == "reasoning" for part in item.summary),
        )

    def close(self) -> None:
        self._sdk.close()


class GeminiClient:
    def __init__(self, server: ProviderServer, model: str = "gemini-3-pro-preview") -> None:
        from google import genai
        from google.genai import types

        self._model, self._types = model, types
        self._sdk: Any = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url))
        self._contents: list[Any] = []
        self._names: dict[str, Any] = {}

    def say(self, text: str) -> None:
        self._contents.append({"role": "user", "parts": [{"text": text}]})

    def give(self, results: dict[str, str]) -> None:
        parts = [
            {
                "function_response": {
                    "name": self._names[call].name,
                    "id": self._names[call].id,
                    "response": {"output": text},
                }
            }
            for call, text in results.items()
        ]
        self._contents.append({"role": "user", "parts": parts})

    def ask(self, stream: bool) -> Heard:
        function = self._types.FunctionDeclaration(name="bash", description="Runs.", parameters_json_schema=_SCHEMA)
        config = self._types.GenerateContentConfig(
            system_instruction="You are a programmer.",
            tools=[self._types.Tool(function_declarations=[function])],
            thinking_config=self._types.ThinkingConfig(include_thoughts=True),
            automatic_function_calling=self._types.AutomaticFunctionCallingConfig(disable=True),
        )
        request = {"model": self._model, "contents": self._contents, "config": config}
        if stream:
            chunks = list(self._sdk.models.generate_content_stream(**request))
        else:
            chunks = [self._sdk.models.generate_content(**request)]
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
        self._contents.append(self._types.Content(role="model", parts=parts))
        usage = chunks[-1].usage_metadata
        calls = {
            str(part.function_call.id or number): part.function_call
            for number, part in enumerate(parts)
            if part.function_call
        }
        self._names |= calls
        return Heard(
            "".join(part.text for part in parts if part.text and not part.thought),
            tuple((name, call.name, call.args) for name, call in calls.items()),
            Usage(
                usage.prompt_token_count - usage.cached_content_token_count,
                usage.cached_content_token_count,
                0,
                usage.candidates_token_count + usage.thoughts_token_count,
                usage.thoughts_token_count,
            ),
            "".join(part.text for part in parts if part.text and part.thought),
        )

    def close(self) -> None:
        self._sdk.close()
