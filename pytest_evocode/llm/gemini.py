"""Client of Google's Gemini API, through Google's own SDK."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_evocode.errors import RequestUnanswered
from pytest_evocode.llm.base_client import BaseClient, arguments_of, listed, name_taken
from pytest_evocode.llm.connection import Json, Patience, broken_by
from pytest_evocode.llm.protocol import Ending, Message, Reply, RequestedCall, Tool, native_of, tagged
from pytest_evocode.llm.provider_errors import ProviderFault, from_status
from pytest_evocode.llm.sdk_private import post_to_gemini
from pytest_evocode.llm.streams import StreamedAnswer, StreamedContent

_API: Literal["gemini"] = "gemini"
# What stands in the documentation for the signature of a call that has none, as one of another model.
UNSIGNED = base64.b64encode(b"skip_thought_signature_validator").decode()
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")
#: HTTP libraries that releases of the SDK use.
_HTTP_LIBRARIES = ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3")


class GeminiClient(BaseClient):
    """Client of generateContent."""

    _form = "generateContent"
    _api = _API
    _streamed = StreamedContent
    _shows_thoughts = True
    _marks_unsigned = False

    def _resource(self, sdk: Any) -> Any:
        return _Models(sdk.models)

    def _request(self, conversation: Sequence[Message], tools: Sequence[Tool]) -> tuple[Json, Json]:
        contents = _contents(conversation)
        payload: Json = {"model": self.model, "contents": _marked(contents) if self._marks_unsigned else contents}
        config = {
            "temperature": self._options.temperature,
            "topP": self._options.top_p,
            "seed": self._options.seed,
            "maxOutputTokens": self._options.max_tokens,
            "thinkingConfig": self._thinking or None,
        }
        system = [{"text": message.text} for message in conversation if message.role == "system" and message.text]
        return payload, {
            "systemInstruction": {"parts": system} if system else None,
            "tools": [{"functionDeclarations": [_tool(each) for each in tools]}] if tools else None,
            "generationConfig": {name: value for name, value in config.items() if value is not None} or None,
            "serviceTier": self._options.service_tier,
        }

    @property
    def _thinking(self) -> Json:
        thinking: Json = {"includeThoughts": True} if self._shows_thoughts else {}
        if self._options.effort is not None:
            thinking["thinkingLevel"] = self._options.effort
        if self._options.thinking is not None:
            thinking["thinkingBudget"] = -1 if self._options.thinking == "adaptive" else self._options.thinking
        return thinking

    def _do_without(self, fault: ProviderFault) -> bool:
        # Newer models refuse calls without a signature, such as those that a task's conversation begins with.
        words = fault.words.lower().replace("_", " ")
        unsigned = not self._marks_unsigned and fault.status == 400 and "thought signature" in words
        # Models that do not think refuse to show their thoughts, which nobody asked for.
        refused = self._shows_thoughts and fault.status == 400 and "think" in words and not unsigned
        self._marks_unsigned |= unsigned
        self._shows_thoughts &= not refused
        return unsigned or refused

    def reply(self, body: Json) -> Reply:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""
        candidates = listed(body.get("candidates") or [])
        blocked = (body.get("promptFeedback") or {}).get("blockReason")
        if not candidates and not blocked:
            raise LookupError("candidates")
        candidate: Json = candidates[0] if candidates else {}
        content = {"role": "model"} | (candidate.get("content") or {})
        parts: list[Json] = content.get("parts") or []
        return Reply(
            text="".join(str(part.get("text") or "") for part in parts if not part.get("thought")),
            calls=tuple(_as_call(part["functionCall"]) for part in parts if part.get("functionCall")),
            reasoning="".join(str(part.get("text") or "") for part in parts if part.get("thought")),
            native=tagged(_API, content) if parts else None,
            request_id=str(body.get("responseId") or ""),
            ending=_ending(blocked or candidate.get("finishReason"), parts),
            stop_reason=str(blocked or candidate.get("finishReason") or ""),
            model=str(body.get("modelVersion") or ""),
        )


_FILTERED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "OTHER"})


def _ending(word: Any, parts: list[Json]) -> Ending:
    """Return why a reply ended; ``word`` is its ``finishReason``, or why the request was blocked."""
    if word in _FILTERED:
        return "filtered"
    if word == "MAX_TOKENS":
        return "length"
    if any(part.get("functionCall") for part in parts):
        return "calls"
    return "done" if word == "STOP" else "unknown"


@dataclass(frozen=True, slots=True)
class _Models:
    """The part of the SDK's client that sends requests, as :func:`~pytest_evocode.llm.connection.send_request`."""

    models: Any

    def send(
        self, sdk: Any, payload: Json, patience: Patience, streamed: StreamedAnswer | None
    ) -> tuple[bytes, Mapping[str, str]]:
        """Send a request once, and return the body and the headers of the answer."""
        from google.genai import types

        http = types.HttpOptions(
            timeout=max(1, int(patience.silence * 1000)),
            extra_body=payload.get("extra_body") or None,
            headers=payload.get("extra_headers") or None,
        )
        method = "generateContent" if streamed is None else "streamGenerateContent"
        body = {"contents": payload["contents"]}
        headers: Mapping[str, str] = {}
        try:
            for text, headers in patience.watch(post_to_gemini(self.models, payload["model"], method, body, http)):
                if streamed is None:
                    return text.encode(), headers
                streamed.take(text)
        except sdk.errors.APIError as error:
            raise RequestUnanswered(_fault(error)) from None
        except sdk.errors.UnknownApiResponseError as error:
            return str(error).encode(), headers
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in _HTTP_LIBRARIES:
                raise
            if streamed is None or not streamed.is_complete:
                raise RequestUnanswered(broken_by(error)) from None
        return b"", headers


def _fault(error: Any) -> ProviderFault:
    headers = getattr(error.response, "headers", None) or {}
    return from_status(error.code, error.details, {name.lower(): value for name, value in headers.items()})


def _contents(conversation: Sequence[Message]) -> list[Json]:
    """Return the conversation as the API takes it: consecutive messages of one side are merged."""
    turns: list[Json] = []
    names: dict[str, RequestedCall] = {}
    for message in conversation:
        if message.role == "system":
            continue
        names |= {call.id: call for call in message.calls}
        role, parts = _turn(message, names)
        if parts and turns and turns[-1]["role"] == role:
            turns[-1]["parts"] = [*turns[-1]["parts"], *parts]
        elif parts:
            turns.append({"role": role, "parts": parts})
    return turns


def _marked(contents: list[Json]) -> list[Json]:
    """Return the conversation with a mark on the first call of each reply whose calls have no signature."""
    marked = []
    for content in contents:
        parts = list(content["parts"])
        calls = [number for number, part in enumerate(parts) if part.get("functionCall")]
        if calls and not any(parts[number].get("thoughtSignature") for number in calls):
            parts[calls[0]] = parts[calls[0]] | {"thoughtSignature": UNSIGNED}
        marked.append(content | {"parts": parts})
    return marked


def _turn(message: Message, calls: Mapping[str, RequestedCall]) -> tuple[str, list[Json]]:
    if message.role == "tool":
        call = calls.get(message.call_id)
        answer: Json = {
            "name": function_name_taken(call.name) if call else "tool",
            "response": {"output": message.text},
        }
        # Ids that we made up are not known to the API.
        own = {} if message.call_id.startswith(_MADE_UP) else {"id": message.call_id}
        images = [{"inlineData": {"mimeType": image.media_type, "data": image.data}} for image in message.images]
        return "user", [{"functionResponse": own | answer}, *images]
    if message.role == "user":
        return "user", [{"text": message.text}] if message.text else []
    native = native_of(message, _API)
    if native is not None:
        return "model", [_taken(part) for part in native["parts"]]
    text = [{"text": message.text}] if message.text else []
    return "model", [*text, *(_call(each) for each in message.calls)]


#: Beginning of the ids of calls to which the API gave none.
_MADE_UP = "call_"


def _call(call: RequestedCall) -> Json:
    own = {} if call.id.startswith(_MADE_UP) else {"id": call.id}
    return {"functionCall": own | {"name": function_name_taken(call.name), "args": call.arguments or {}}}


def _taken(part: Json) -> Json:
    """Return a part of a reply as the API takes it back: it refuses names that models write."""
    call = part.get("functionCall")
    name = function_name_taken(str(call.get("name") or "")) if call else ""
    if not call or name == call.get("name"):
        return part
    # Its signature is not that of what is sent.
    signature = {"thoughtSignature": UNSIGNED} if "thoughtSignature" in part else {}
    return part | {"functionCall": call | {"name": name}} | signature


def function_name_taken(name: str) -> str:
    """Return the name of a tool as the API takes it: with a letter or an underscore first, and dots."""
    return name if _NAME.fullmatch(name) else f"_{name_taken(name)}"[:64]


def _as_call(call: Json) -> RequestedCall:
    arguments, written = arguments_of(call.get("args") or {})
    return RequestedCall(call.get("id") or f"{_MADE_UP}{uuid.uuid4().hex}", str(call.get("name")), arguments, written)


def _tool(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
