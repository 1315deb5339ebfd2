"""The form of Google's generateContent: what comes in, and replies and errors going out."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from tests.model_scripts import Asked, Fail, Part, Say, Think, Tokens, Use

Json = dict[str, Any]
#: What stands for the signature of a call of another model.
_FOREIGN = base64.b64encode(b"skip_thought_signature_validator").decode()


def read_request(asked: Asked) -> None:
    """Fill in the conversation. Calls have no ids here: the number of the call in the conversation stands for one."""
    asked.system = _text((asked.body.get("systemInstruction") or {}).get("parts", ()))
    called = answered = 0
    for content in asked.body["contents"]:
        asked.replies += content["role"] == "model"
        for part in content["parts"]:
            if "functionCall" in part:
                called += 1
                asked.calls[str(called)] = part["functionCall"]["name"]
            elif "functionResponse" in part:
                answered += 1
                response = part["functionResponse"]["response"]
                asked.results[str(answered)] = str(response.get("output", response.get("error", response)))
            elif content["role"] == "user":
                asked.said.append(part["text"])
    for tool in asked.body.get("tools") or ():
        for each in tool.get("functionDeclarations", ()):
            asked.tools[each["name"]] = each["parametersJsonSchema"]


def malformed(asked: Asked) -> str:
    """What of a conversation the API refuses: turns in another order, and signatures changed.

    Calls without a signature are refused since the user spoke last; of those before it Google wants none.
    """
    roles = [content["role"] for content in asked.body["contents"]]
    if roles[:1] != ["user"] or any(role == "model" == after for role, after in itertools.pairwise(roles)):
        return "Please ensure that turns alternate between a user and a model."
    contents = asked.body["contents"]
    spoke = max(at for at, content in enumerate(contents) if content["role"] == "user" and _text(content["parts"]))
    for at, content in enumerate(contents):
        for part in content["parts"]:
            call, signature = part.get("functionCall"), part.get("thoughtSignature", "")
            # Either alphabet of Base64 will do.
            signature = signature.replace("_", "/").replace("-", "+")
            if call and signature not in (_sign(call["name"]), _FOREIGN) and (signature or at > spoke):
                return "Function call is missing a valid thought_signature."
    return ""


def write_reply(asked: Asked, parts: Sequence[Part], tokens: Tokens, cut_off: bool) -> Json:
    """A reply, as it is sent in one piece."""
    content: list[Json] = []
    for part in parts:
        match part:
            case Think(text):
                content.append({"text": text, "thought": True})
            case Say(text):
                content.append({"text": text})
            case Use(tool, arguments):
                call = {"name": tool, "args": arguments}
                content.append({"functionCall": call, "thoughtSignature": _sign(tool)})
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": content},
                "finishReason": "MAX_TOKENS" if cut_off else "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": tokens.prompt,
            "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": tokens.completion - 1,
            "thoughtsTokenCount": 1,
            "totalTokenCount": tokens.prompt + tokens.completion,
        },
        "modelVersion": asked.model,
        "responseId": "a-response",
    }


def chunks(reply: Json) -> Iterator[Json]:
    """The reply in pieces, each of which is one: texts come in two, and the last piece says how it ended."""
    [candidate] = reply["candidates"]
    common = {key: value for key, value in reply.items() if key != "candidates"}
    counted = {key: value for key, value in reply["usageMetadata"].items() if "andidates" not in key}
    for part in candidate["content"]["parts"]:
        text = part.get("text", "")
        for piece in [part | {"text": text[:3]}, part | {"text": text[3:]}] if len(text) > 3 else [part]:
            content = {"role": "model", "parts": [piece]}
            yield common | {"candidates": [{"content": content, "index": 0}], "usageMetadata": counted}
    end = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": candidate["finishReason"], "index": 0}
    yield common | {"candidates": [end]}


def error_body(fail: Fail, words: str) -> Json:
    """An error in Google's form; a wrong key is a request with wrong arguments there."""
    error: Json = {"code": fail.status, "message": fail.message or words, "status": fail.code or "INTERNAL"}
    if fail.status == 400 and fail.code:
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": fail.code}]
    if fail.retry_after is not None:
        error["details"] = [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{fail.retry_after:g}s"}
        ]
    return {"error": error}


def _text(parts: Sequence[Json]) -> str:
    return "\n".join(str(part.get("text", "")) for part in parts)


def _sign(text: str) -> str:
    # Not UTF-8, as signatures are.
    return base64.b64encode(b"\xff\x00" + text.encode()).decode()
