"""Messages in the format of a provider's API, which are sent back as they came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_evocode.llm.protocol import Message


def tagged(api: str, native: Any) -> dict[str, Any]:
    """Mark a message in the provider's own format with its API, for :attr:`Reply.native`."""
    return {"api": api, "message": native}


def native_of(message: Message, api: str) -> Any:
    """Return the message that :func:`tagged` was given for this API; None where there is none."""
    native = message.native
    return native.get("message") if isinstance(native, dict) and native.get("api") == api else None


def signed_calls(native: Any, text: str) -> dict[str, Any] | None:
    """Return a reply without its reasoning, and with another text, where its API signs calls; else None.

    Gemini refuses calls without the signatures that it gave them, and so does what passes its models on in the form of
    Chat Completions. The calls of other APIs need none.
    """
    message = native.get("message") if isinstance(native, Mapping) else None
    if not isinstance(native, Mapping) or not isinstance(message, Mapping):
        return None
    if native.get("api") == "gemini":
        calls = [part for part in message.get("parts", ()) if part.get("functionCall")]
        return tagged("gemini", {**message, "parts": [*([{"text": text}] if text else []), *calls]}) if calls else None
    if native.get("api") == "chat" and message.get("tool_calls"):
        return tagged("chat", {"role": "assistant", "content": text or None, "tool_calls": message["tool_calls"]})
    return None
