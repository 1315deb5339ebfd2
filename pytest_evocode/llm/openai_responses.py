"""Client of OpenAI's Responses API; nothing is stored at the provider, each request has the whole conversation."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.base_client import BaseClient, arguments_of, id_taken, listed, name_taken, without_open_end
from pytest_evocode.llm.connection import Json
from pytest_evocode.llm.protocol import Ending, Message, Reply, RequestedCall, Tool, native_of, tagged
from pytest_evocode.llm.provider_errors import ProviderFault
from pytest_evocode.llm.streams import StreamedResponse

_API: Literal["responses"] = "responses"
#: Kinds of items that are calls.
_CALLS = ("function_call", "custom_tool_call")


class ResponsesClient(BaseClient):
    """Client of the Responses API."""

    _form = "Responses"
    _api = _API
    _streamed = StreamedResponse

    _refused_parts: frozenset[str] = frozenset()

    def _resource(self, sdk: Any) -> Any:
        return sdk.responses

    def _request(self, conversation: Sequence[Message], tools: Sequence[Tool]) -> tuple[Json, Json]:
        items = [item for message in conversation if message.role != "system" for item in _items(message)]
        payload: Json = {"model": self.model, "input": items, "store": False}
        if instructions := "\n\n".join(message.text for message in conversation if message.role == "system"):
            payload["instructions"] = instructions
        if tools:
            payload["tools"] = [_tool(each) for each in tools]
        # Models without reasoning refuse the former, unverified organisations are refused the latter.
        include = None if "include" in self._refused_parts else ["reasoning.encrypted_content"]
        reasoning = {} if "summary" in self._refused_parts else {"summary": "auto"}
        if self._options.effort is not None:
            reasoning["effort"] = self._options.effort
        return payload, {
            "include": include,
            "reasoning": reasoning or None,
            "temperature": self._options.temperature,
            "top_p": self._options.top_p,
            "service_tier": self._options.service_tier,
            "max_output_tokens": self._options.max_tokens,
        }

    def check_compaction(self) -> None:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""
        if not hasattr(importlib.import_module("openai.resources.responses").Responses, "compact"):
            raise UsageError("the installed version of the package openai cannot ask for it: pip install -U openai")
        self.probe_compaction()

    def compact(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`; what the provider returns is encrypted."""

        def request() -> tuple[Json, Json]:
            payload, _ = self._request(conversation, ())
            kept = {name: value for name, value in payload.items() if name != "store"}
            return kept, {"service_tier": self._options.service_tier}

        return self._ask(request, lambda sdk: _Compaction(sdk.responses), self._compacted, timeout)

    def _compacted(self, body: Json) -> Reply:
        output = listed(body["output"])
        native = tagged(_API, output) if output else None
        return Reply("", native=native, ending="done" if output else "unknown")

    def _do_without(self, fault: ProviderFault) -> bool:
        signs = {
            "include": fault.param == "include" or "encrypted content is not supported" in fault.words.lower(),
            "summary": fault.param == "reasoning.summary"
            or "reasoning summar" in fault.words.lower()
            or (fault.param == "reasoning" and self._options.effort is None),
        }
        for part, is_refused in signs.items():
            if fault.status == 400 and is_refused and part not in self._refused_parts:
                self._refused_parts |= {part}
                return True
        return False

    def reply(self, body: Json) -> Reply:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""
        output = listed(body["output"])
        reason = (body.get("incomplete_details") or {}).get("reason")
        return Reply(
            text="".join(_texts(output, "message", "content")),
            calls=tuple(_as_call(item) for item in output if item.get("type") in _CALLS),
            reasoning="\n\n".join(_texts(output, "reasoning", "summary") or _texts(output, "reasoning", "content")),
            native=tagged(_API, output),
            ending=_ending(body.get("status"), reason, output),
            stop_reason=str(reason or body.get("status") or ""),
            model=str(body.get("model") or ""),
        )


@dataclass(frozen=True, slots=True)
class _Compaction:
    """The part of the SDK's client that compacts, with the names of the part that asks the model."""

    responses: Any

    @property
    def with_streaming_response(self) -> Any:
        """What sends the request, see :func:`~pytest_evocode.llm.connection.send_request`."""
        return SimpleNamespace(create=self.responses.with_streaming_response.compact)


def _ending(status: Any, reason: Any, output: list[Json]) -> Ending:
    """Return why a response ended; ``reason`` is that of an incomplete one."""
    if status == "incomplete":
        by_reason: dict[Any, Ending] = {"max_output_tokens": "length", "content_filter": "filtered"}
        return by_reason.get(reason, "unknown")
    parts: list[Any] = [part for item in output if item.get("type") == "message" for part in item.get("content") or ()]
    if any(part.get("type") == "refusal" for part in parts):
        return "refused"
    if any(item.get("type") in _CALLS for item in output):
        return "calls"
    return "done" if status == "completed" else "unknown"


def _items(message: Message) -> list[Json]:
    """Return the items of the input that stand for a message."""
    if message.role == "user":
        return [{"role": "user", "content": message.text}]
    if message.role == "tool":
        output: Any = message.text
        if message.images:
            images = [{"type": "input_image", "image_url": image.url} for image in message.images]
            output = [{"type": "input_text", "text": message.text}, *images]
        return [{"type": "function_call_output", "call_id": id_taken(message.call_id), "output": output}]
    native = native_of(message, _API)
    if native is not None:
        return without_open_end([_taken(item) for item in native], ("reasoning",))
    text = [{"role": "assistant", "content": message.text}] if message.text else []
    return [*text, *(_call(each) for each in message.calls)]


def _tool(tool: Tool) -> Json:
    # Strict schemas allow no optional arguments.
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "strict": False} | described


def _call(call: RequestedCall) -> Json:
    taken = {"call_id": id_taken(call.id), "name": name_taken(call.name)}
    return {"type": "function_call", **taken, "arguments": call.arguments_text}


def _taken(item: Json) -> Json:
    """Return an item of a reply as the API takes it back: it refuses names and ids that models write."""
    if item.get("type") != "function_call":
        return item
    return item | {"call_id": id_taken(str(item.get("call_id"))), "name": name_taken(str(item.get("name")))}


def _as_call(item: Json) -> RequestedCall:
    # Tools that take plain text, such as a patch, and those of a namespace, are some programs'.
    arguments, written = arguments_of(item["arguments"] if "arguments" in item else {"input": item.get("input")})
    name = "__".join(str(part) for part in (item.get("namespace"), item.get("name")) if part)
    return RequestedCall(str(item.get("call_id")), name, arguments, written)


def _texts(output: list[Json], kind: str, key: str) -> list[str]:
    """Return the texts of all items of a kind; a refusal counts as text."""
    parts: list[Any] = [part for item in output if item.get("type") == kind for part in item.get(key) or ()]
    return [str(part.get("text") or part.get("refusal") or "") for part in parts]
