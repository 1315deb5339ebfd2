"""What a conversation says in any API's form: the model's reply in an answer, and in a request what it continues."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pytest_evocode.gateway.events import all_data, json_of
from pytest_evocode.gateway.exchanges import Exchange
from pytest_evocode.llm.anthropic_messages import MessagesClient
from pytest_evocode.llm.base_client import BaseClient, id_taken, name_taken
from pytest_evocode.llm.gemini import UNSIGNED, GeminiClient, function_name_taken
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.openai_chat import ChatClient
from pytest_evocode.llm.openai_responses import ResponsesClient
from pytest_evocode.llm.protocol import Reply
from pytest_evocode.llm.providers import PROVIDERS
from pytest_evocode.llm.token_ids import TokenFacts, tokens_told
from pytest_evocode.llm.usage import Api
from pytest_evocode.results.records import Usage

_READERS: Mapping[Api, tuple[type[BaseClient], str]] = {
    "messages": (MessagesClient, "anthropic"),
    "chat": (ChatClient, "openai"),
    "responses": (ResponsesClient, "openai"),
    "gemini": (GeminiClient, "google"),
}
_NAMES_TAKEN: Mapping[Api, Callable[[str], str]] = {
    "messages": partial(name_taken, longest=128),
    "chat": name_taken,
    "responses": name_taken,
    "gemini": function_name_taken,
}
# What changes from one start of a program to the next: reminders with the date and the like, numbers and ids.
_VOLATILE = re.compile(r"<system-reminder>.*?</system-reminder>|[0-9a-f-]*\d[0-9a-f-]*", re.DOTALL)


def reply_of(exchange: Exchange) -> Reply | None:
    """Return the model's reply; None where an exchange has none that can be read."""
    body = exchange.body()
    if exchange.api is None or body is None:
        return None
    reader, provider = _READERS[exchange.api]
    try:
        reply = reader(PROVIDERS[provider], exchange.model, ModelOptions(), None).reply(body)
    except (LookupError, TypeError, AttributeError, ValueError):
        return None
    return replace(reply, usage=exchange.usage or Usage(), request_id=exchange.request_id or reply.request_id)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool in a request."""

    call_id: str
    name: str
    """The tool's, where the API says it with the result."""
    text: str
    failed: bool | None = None
    """Whether the program says so; None where the API has no place for it."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a request tells of the conversation that it continues."""

    results: tuple[ToolResult, ...] = ()
    """Those of the whole conversation; of Gemini's, whose calls need no ids, those after the last reply."""
    calls: frozenset[str] = frozenset()
    """The calls of the conversation, as :func:`call_marks` tells them."""
    opening: frozenset[str] = frozenset()
    """What the user says before the first reply."""
    has_tools: bool = False
    """Whether the model may call tools."""
    has_replies: bool = False
    """Whether the model has replied before."""
    tools: tuple[dict[str, Any], ...] = ()
    """Definitions of the tools that the program runs, in the format of OpenAI's function calling."""


def request_facts(api: Api, asked: Any) -> RequestFacts:
    """Return what a request says of its conversation; nothing where it has another form."""
    with contextlib.suppress(LookupError, TypeError, AttributeError):
        messages = _messages(api, asked)
        by_model = [at for at, message in enumerate(messages) if _is_by_model(message)]
        before = messages[: by_model[0]] if by_model else messages
        said = (message for message in before if message.get("role") == "user")
        opening = frozenset(text.strip() for message in said for text in _texts(message)) - {""}
        places = [(place, name) for place, name in _names_and_ids(api, asked) if name != "name"]
        calls = {str(place[name]) for place, name in places if place.get(name)}
        if api == "gemini":
            found = [part["functionCall"] for message in messages for part in _parts(message) if "functionCall" in part]
            calls |= {mark for call in found for mark in call_marks(call.get("id"), call["name"], call.get("args"))}
            messages = messages[by_model[-1] :] if by_model else []
        results = tuple(_results(api, messages))
        tools = tuple(_definitions(asked.get("tools")))
        return RequestFacts(results, frozenset(calls), opening, bool(asked.get("tools")), bool(by_model), tools)
    return RequestFacts()


def call_marks(call_id: str | None, name: str, arguments: Mapping[str, Any] | None) -> set[str]:
    """Return what tells a call from others: its id, and what is called, for APIs whose calls need no ids."""
    return {f"{name} {json.dumps(arguments or {}, sort_keys=True)}", *([call_id] if call_id else [])}


def _is_by_model(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("assistant", "model") or str(message.get("type")).endswith("_call")


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(content := message.get("content"), str):
        yield content
    yield from (str(part.get("text") or "") for part in _parts(message))


def _results(api: Api, messages: Iterable[Mapping[str, Any]]) -> Iterator[ToolResult]:
    for message in messages:
        if api == "chat" and message.get("role") == "tool":
            yield ToolResult(str(message.get("tool_call_id")), "", _text(message.get("content")))
        elif api == "responses" and str(message.get("type")).endswith("_call_output"):
            yield ToolResult(str(message.get("call_id")), "", _text(message.get("output")))
        for part in _parts(message):
            if api == "messages" and part.get("type") == "tool_result":
                text, failed = _text(part.get("content")), bool(part.get("is_error"))
                yield ToolResult(str(part.get("tool_use_id")), "", text, failed)
            elif api == "gemini" and isinstance(answer := part.get("functionResponse"), dict):
                given = answer.get("response")
                told = True if isinstance(given, dict) and "error" in given else None
                yield ToolResult(str(answer.get("id") or ""), str(answer.get("name")), _text(given), told)


_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema")
_PLAIN_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The arguments of a call in plain text, as replies are read."""


def _definitions(tools: Any, namespace: str = "") -> Iterator[dict[str, Any]]:
    """Yield the definitions of tools of any API; those without a name are run by the provider."""
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        if "functionDeclarations" in tool:
            yield from _definitions(tool["functionDeclarations"])
            continue
        told = tool["function"] if isinstance(tool.get("function"), dict) else tool
        name = told.get("name")
        if not isinstance(name, str) or not name:
            continue
        if tool.get("type") == "namespace":
            yield from _definitions(tool.get("tools"), f"{name}__")
            continue
        schema = next((told[each] for each in _SCHEMAS if isinstance(told.get(each), dict)), None)
        if schema is None and tool.get("type") == "custom":
            schema = _PLAIN_TEXT
        function: dict[str, Any] = {"name": namespace + name}
        if isinstance(told.get("description"), str):
            function["description"] = told["description"]
        if schema is not None:
            function["parameters"] = _with_small_types(schema)
        yield {"type": "function", "function": function}


def _with_small_types(schema: Any) -> Any:
    """Return a schema as JSON Schema writes its types; Gemini's API takes ``OBJECT`` for ``object``."""
    if isinstance(schema, list):
        return [_with_small_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _with_small_types(value)
        for name, value in schema.items()
    }


def _messages(api: Api, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = asked.get({"responses": "input", "gemini": "contents"}.get(api, "messages"))
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = message.get("parts", message.get("content"))
    return [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict) and len(content) == 1:  # What Gemini wraps results in.
        return _text(*content.values())
    if isinstance(content, list):
        return "\n".join(str(each.get("text", f"[{each.get('type')}]")) for each in content if isinstance(each, dict))
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def with_mended_calls(api: Api, asked: Any) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """Return a request whose calls have names and ids that its provider takes, and notes of what was mended.

    None where nothing is to be mended. Models write names and ids that their providers refuse to see again, and a call
    and its result get the same ones.
    """
    if not isinstance(asked, dict):
        return None
    mended = copy.deepcopy(asked)
    notes: dict[str, None] = {}
    empty = Counter[str]()
    for holder, field in _names_and_ids(api, mended):
        given = holder.get(field)
        if not isinstance(given, str):
            continue
        if field == "name":
            taken = _NAMES_TAKEN[api](given)
        elif given:
            taken = id_taken(given, 40 if api == "chat" else 64)
        else:  # The first result without an id is that of the first call without one.
            side = f"{field} {holder.get('type')}"
            empty[side] += 1
            taken = f"{id_taken(given)}_{empty[side]}"
        if taken != given:
            holder[field] = taken
            notes[f"the {'name' if field == 'name' else 'id'} {given!r} of a call was sent as {taken!r}"] = None
    return (mended, tuple(notes)) if notes else None


def _names_and_ids(api: Api, asked: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield where the names and ids of calls and their results are: an object, and the field of it."""
    for message in _messages(api, asked):
        if api == "chat":
            yield message, "tool_call_id"
            calls = message.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                yield call, "id"
                yield call["function"], "name"
        elif api == "responses" and "call_id" in message:
            yield message, "call_id"
            yield message, "name"
        for part in _parts(message):
            if api == "messages" and part.get("type") in ("tool_use", "tool_result"):
                yield part, "name"
                yield part, "id" if part["type"] == "tool_use" else "tool_use_id"
            elif api == "gemini" and (each := part.get("functionCall") or part.get("functionResponse")):
                name = each.get("name")
                yield each, "name"
                if each.get("name") != name and "thoughtSignature" in part:
                    part["thoughtSignature"] = UNSIGNED  # Its signature is not that of what is sent.


def likeness(api: Api, path: str, asked: Any) -> str:
    """Return what tells a request from others of its program, and is the same when the program is started again.

    These are the calls that the conversation has, whose ids the provider gave, and what users say, without what changes
    from one start to the next; results of tools do not count.
    """
    if not isinstance(asked, dict):
        return ""
    told: list[Any] = [path, asked.get("model"), bool(asked.get("stream"))]
    for message in _messages(api, asked):
        told.append(message.get("role") or message.get("type"))
        told.append(message.get("call_id") or [call.get("id") for call in message.get("tool_calls") or ()])
        if isinstance(message.get("content"), str) and message.get("role") != "tool":
            told.append(_VOLATILE.sub("", message["content"]))
        for part in _parts(message):
            told += [part.get("id"), _VOLATILE.sub("", str(part.get("text") or "")), part.get("functionCall")]
    return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()


def journal_entry(exchange: Exchange) -> dict[str, Any]:
    """Return what a journal has to keep of an exchange for its answer to be given again, as JSON values.

    The request is not part of it: each one has the whole conversation, so that all would grow with its square.
    """
    assert exchange.api is not None
    alike = likeness(exchange.api, exchange.path, exchange.asked())
    return replace(exchange, request="", likeness=alike).as_json()


def tokens_in(exchange: Exchange) -> TokenFacts:
    """Return the tokens of an answer; see :func:`pytest_evocode.llm.token_ids.tokens_told`."""
    if exchange.status != 200:
        return TokenFacts()
    texts = all_data(exchange.response.encode()) if exchange.streamed else iter([exchange.response])
    return tokens_told(exchange.api, (json_of(text.encode()) for text in texts))
