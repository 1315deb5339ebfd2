"""Google's generateContent and streamGenerateContent, by their reference and the messages that their refusals have.

Models from ``gemini-3`` on give calls ids, and want the signatures of the calls of the turn back, as the page on
thought signatures says.
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
    "cachedContent contents generationConfig labels model safetySettings serviceTier store systemInstruction "
    "toolConfig tools"
)
PART_FIELDS = names(
    "text thought thoughtSignature functionCall functionResponse inlineData fileData executableCode "
    "codeExecutionResult videoMetadata mediaResolution partMetadata toolCall toolResponse"
)
CONFIG_FIELDS = names(
    "temperature topP topK candidateCount maxOutputTokens stopSequences responseLogprobs logprobs presencePenalty "
    "frequencyPenalty seed responseMimeType responseSchema responseJsonSchema responseModalities mediaResolution "
    "speechConfig thinkingConfig imageConfig enableEnhancedCivicAnswers audioTimestamp"
)
_FREE = names("args response parameters parametersJsonSchema responseSchema responseJsonSchema labels")
_DATA = PART_FIELDS - names("thought thoughtSignature videoMetadata mediaResolution partMetadata")
_STATUS: dict[Kind, tuple[int, str, str]] = {
    "invalid": (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "context": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "authentication": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "permission": (
        403,
        "PERMISSION_DENIED",
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other "
        "form of API consumer identity to call this API.",
    ),
    "not_found": (404, "NOT_FOUND", "Requested entity was not found."),
    "rate_limit": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing."),
    "server": (500, "INTERNAL", "An internal error has occurred. Please retry."),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
}
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_OWN_ID = "function-call-"
#: What stands for the signature of a call that has none, such as one of another model.
_UNSIGNED = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


class GeminiApi:
    """See :class:`~tests.providers.exchanges.Api`."""

    name = "gemini"

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._signatures: set[str] = set()

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        return headers.get("x-goog-api-key") or query.get("key")

    def check(self, asked: Asked) -> None:
        body = _camel(asked.body)
        for where, fields, known in (
            ("", body, FIELDS),
            (" at 'generation_config'", body.get("generationConfig") or {}, CONFIG_FIELDS),
        ):
            if extra := unknown(fields, known):
                raise _field(extra, where)
        if not body.get("contents"):
            raise Refused("invalid", "* GenerateContentRequest.contents: contents is not specified\n")
        _check_tools(body)
        thinking = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
        if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
            raise Refused("invalid", "You can only set only one of thinking budget and thinking level.")
        for number, content in enumerate(body["contents"]):
            _check_content(number, content)
        _check_turns(body["contents"])
        self._check_signatures(asked.model, body["contents"])

    def _check_signatures(self, model: str, contents: Sequence[Json]) -> None:
        spoke = max(
            (at for at, content in enumerate(contents) if _role(content) == "user" and not _responses(content)),
            default=-1,
        )
        for at, content in enumerate(contents):
            calls = [part for part in content["parts"] if "functionCall" in part]
            for place, part in enumerate(calls):
                signature = str(part.get("thoughtSignature") or "").replace("-", "+").replace("_", "/")
                if not signature and place == 0 and at > spoke and _generation(model) >= 3:
                    raise Refused(
                        "invalid",
                        "Function call is missing a thought_signature in functionCall parts. This is required for "
                        "tools to work correctly, and missing thought_signature may lead to degraded model performance."
                        f" Additional data, function call `default_api:{part['functionCall']['name']}` , position "
                        f"{at + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more "
                        "details.",
                    )
                if signature and signature not in self._signatures and not _is_marked(part["thoughtSignature"]):
                    raise Refused("invalid", "Corrupted thought signature.")

    def read(self, asked: Asked) -> None:
        body = _camel(asked.body)
        asked.system = text_of((body.get("systemInstruction") or {}).get("parts"))
        called = itertools.count(1)
        answered = itertools.count(1)
        for content in body["contents"]:
            asked.replies += _role(content) == "model"
            for part in content["parts"]:
                if "functionCall" in part:
                    asked.calls[f"{next(called)}"] = part["functionCall"]["name"]
                elif "functionResponse" in part:
                    given = part["functionResponse"]["response"]
                    add_result(asked, f"{next(answered)}", str(given.get("output", given.get("error", given))))
                elif _role(content) == "user" and part.get("text"):
                    asked.said.append(part["text"])
        for tool in body.get("tools") or ():
            for each in tool.get("functionDeclarations") or ():
                schema = each.get("parametersJsonSchema") or _lower_types(each.get("parameters") or {})
                asked.tools[each["name"]] = schema

    def streams(self, asked: Asked) -> bool:
        return asked.path.endswith(":streamGenerateContent")

    def reply(self, asked: Asked, said: Said) -> Json:
        parts = self._parts(asked, said)
        return self._chunk(asked, said, parts, ends=True)

    def _parts(self, asked: Asked, said: Said) -> list[Json]:
        config = _camel(asked.body).get("generationConfig") or {}
        shows = bool((config.get("thinkingConfig") or {}).get("includeThoughts"))
        signature = sign(f"{asked.model} {next(self._ids)}")
        parts: list[Json] = []
        signed = False
        for part in said.parts:
            match part:
                case Think(text) if shows:
                    parts.append({"text": text, "thought": True})
                case Say(text):
                    parts.append({"text": text})
                case Call() if said.stop != "length":  # A call comes whole or not at all.
                    written: Json = {"functionCall": _call(part, asked.model)}
                    parts.append(written if signed else written | {"thoughtSignature": signature})
                    signed = True
        if parts and not signed and said.thoughts and _generation(asked.model) >= 3:
            parts[-1] |= {"thoughtSignature": signature}
        self._signatures.add(signature)
        return parts

    def _chunk(self, asked: Asked, said: Said, parts: list[Json], ends: bool) -> Json:
        candidate: Json = {"index": 0}
        if said.stop != "refusal":
            candidate["content"] = {"role": "model"} | ({"parts": parts} if parts else {})
        if ends:
            candidate["finishReason"] = {"": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[said.stop]
        chunk: Json = {"candidates": [candidate], "modelVersion": asked.model, "responseId": f"r{next(self._ids)}"}
        if said.reported is not None:
            chunk["usageMetadata"] = _usage(said.reported, ends)
        return chunk

    def events(self, asked: Asked, said: Said) -> Iterator[Event]:
        written: list[list[Json]] = []
        for part in self._parts(asked, said):
            if "text" not in part:
                written.append([part])
                continue
            bare = {name: value for name, value in part.items() if name != "thoughtSignature"}
            written += [[bare | {"text": piece}] for piece in pieces(part["text"])]
            if "thoughtSignature" in part:
                written.append([{"text": "", "thoughtSignature": part["thoughtSignature"]}])
        for number, parts in enumerate(written or [[]], 1):
            yield "", self._chunk(asked, said, parts, ends=number >= len(written))

    def status(self, refused: Refused) -> int:
        return _STATUS[refused.kind][0]

    def error(self, refused: Refused) -> Json:
        number, status, words = _STATUS[refused.kind]
        error: Json = {"code": number, "message": refused.message or words, "status": status}
        if refused.kind == "authentication":
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            error["details"] = [info | {"domain": "googleapis.com", "metadata": {}}]
        if refused.retry_after is not None:
            info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{refused.retry_after:g}s"}
            error["details"] = [info]
        return {"error": error}

    def error_event(self, refused: Refused, sent: int) -> Event:
        return "", self.error(refused)

    def call_id(self, number: int) -> str:
        return f"{_OWN_ID}{number}"

    def models(self, shown: Sequence[Shown]) -> Json:
        methods = ["generateContent", "countTokens"]
        return {
            "models": [
                {
                    "name": f"models/{each.name}",
                    "version": "001",
                    "displayName": each.name,
                    "inputTokenLimit": each.context_tokens,
                    "outputTokenLimit": each.output_tokens,
                    "supportedGenerationMethods": methods,
                }
                for each in shown
            ]
        }


def _camel(value: Any) -> Any:
    """A request with its names as the reference has them; the API takes those with underscores as well."""
    if isinstance(value, dict):
        renamed = {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): each for name, each in value.items()}
        return {name: each if name in _FREE else _camel(each) for name, each in renamed.items()}
    return [_camel(each) for each in value] if isinstance(value, list) else value


def _lower_types(schema: Any) -> Any:
    """A schema in the API's own form, whose types are in capitals, as JSON Schema."""
    if isinstance(schema, dict):
        return {
            name: each.lower() if name == "type" and isinstance(each, str) else _lower_types(each)
            for name, each in schema.items()
        }
    return [_lower_types(each) for each in schema] if isinstance(schema, list) else schema


def _field(name: str, where: str) -> Refused:
    return Refused("invalid", f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def _generation(model: str) -> int:
    found = re.search(r"gemini-(\d+)", model)
    return int(found[1]) if found else 0


def _is_marked(signature: str) -> bool:
    import base64

    marks = (*_UNSIGNED, *(base64.b64encode(each.encode()).decode() for each in _UNSIGNED))
    return signature.rstrip("=") in {mark.rstrip("=") for mark in marks}


def _role(content: Json) -> str:
    return str(content.get("role") or "user")


def _responses(content: Json) -> list[Json]:
    return [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]


def _calls(content: Json) -> list[Json]:
    return [part["functionCall"] for part in content["parts"] if "functionCall" in part]


def _check_name(where: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Refused(
            "invalid",
            f"* GenerateContentRequest.{where}: Invalid function name. Must start with a letter or an underscore. Must "
            "be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum "
            "length of 64.\n",
        )


def _check_tools(body: Json) -> None:
    names: set[str] = set()
    for number, tool in enumerate(body.get("tools") or ()):
        for place, each in enumerate(tool.get("functionDeclarations") or ()):
            where = f"tools[{number}].function_declarations[{place}]"
            _check_name(f"{where}.name", each["name"])
            if each["name"] in names:
                raise Refused("invalid", f"Duplicate function declaration found: {each['name']}")
            names.add(each["name"])
            if "parameters" in each and "parametersJsonSchema" in each:
                raise Refused("invalid", f"{where}: parameters and parameters_json_schema are mutually exclusive.")


def _check_content(number: int, content: Json) -> None:
    where = f"contents[{number}]"
    if extra := unknown(content, ("role", "parts")):
        raise _field(extra, f" at '{where}'")
    if _role(content) not in ("user", "model", "function"):
        raise Refused("invalid", "Please use a valid role: user, model.")
    if not content.get("parts"):
        raise Refused("invalid", f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.\n")
    for place, part in enumerate(content["parts"]):
        at = f"{where}.parts[{place}]"
        if extra := unknown(part, PART_FIELDS):
            raise _field(extra, f" at '{at}'")
        data = [name for name in part if name in _DATA]
        if len(data) > 1:
            raise Refused("invalid", f"Invalid value at '{at}' (oneof), oneof field 'data' is already set.")
        if not data or (part.get("text") == "" and "thoughtSignature" not in part):
            raise Refused(
                "invalid",
                f"* GenerateContentRequest.{at}.data: required oneof field 'data' must have one initialized field\n",
            )
        for kind in ("functionCall", "functionResponse"):
            if kind in part:
                _check_name(f"{at}.{kind}.name", part[kind]["name"])


def _check_turns(contents: Sequence[Json]) -> None:
    """Calls come after the user or results, results right after their calls, and the model does not speak last."""
    before: Json = {"role": "model", "parts": []}
    for content in contents:
        calls, responses = _calls(content), _responses(content)
        if calls and (before["role"] == "model" or _role(content) != "model"):
            raise Refused(
                "invalid",
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn.",
            )
        expected = _calls(before)
        if responses and not expected:
            raise Refused(
                "invalid",
                "Please ensure that function response turn comes immediately after a function call turn.",
            )
        if len(responses) != len(expected):
            raise Refused(
                "invalid",
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn.",
            )
        for call in expected:
            if not any(_answers(response, call) for response in responses):
                raise Refused("invalid", f"No function response matches the function call `{call['name']}`.")
        before = {"role": _role(content), "parts": content["parts"]}
    if before["role"] == "model":
        raise Refused("invalid", "Please ensure that multiturn requests ends with a user role or a function response.")


def _answers(response: Json, call: Json) -> bool:
    same_id = response.get("id") == call.get("id") if response.get("id") and call.get("id") else True
    return bool(response["name"] == call["name"] and same_id)


def _call(call: Call, model: str) -> Json:
    own = {} if call.id.startswith(_OWN_ID) and _generation(model) < 3 else {"id": call.id}
    return own | {"name": call.tool, "args": call.arguments}


def _usage(usage: Usage, ends: bool) -> Json:
    counted: Json = {
        "promptTokenCount": usage.prompt,
        "cachedContentTokenCount": usage.cached,
        "totalTokenCount": usage.prompt + (usage.output if ends else 0),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.prompt}],
    }
    if ends:
        counted["candidatesTokenCount"] = usage.output - usage.reasoning
        counted["thoughtsTokenCount"] = usage.reasoning
    return counted
