"""Parts of replies that all APIs have: arguments of tool calls, and messages in the provider's own format."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from pytest_evocode.llm.protocol import Message


def tagged(api: str, native: Any) -> dict[str, Any]:
    """Mark a message in the provider's own format with its API, for :attr:`Reply.native`."""
    return {"api": api, "message": native}


def native_of(message: Message, api: str) -> Any:
    """Return the message that :func:`tagged` was given for this API; None where there is none."""
    native = message.native
    return native.get("message") if isinstance(native, dict) and native.get("api") == api else None


def without_open_end(items: list[dict[str, Any]], kinds: Collection[str]) -> list[dict[str, Any]]:
    """Return the items without those at the end whose ``type`` is one of ``kinds``.

    A reply that was cut off while the model reasoned ends with reasoning, which APIs refuse to see again.
    """
    last = max((number for number, item in enumerate(items) if item.get("type") not in kinds), default=-1)
    return items[: last + 1]


def arguments_of(given: Any) -> tuple[dict[str, Any] | None, str]:
    """Return a call's arguments, None where they are no JSON object, and the text that the model wrote.

    >>> arguments_of('{"command": "ls"}'), arguments_of('{"command": '), arguments_of("")
    (({'command': 'ls'}, '{"command": "ls"}'), (None, '{"command": '), ({}, ''))
    """
    if isinstance(given, dict):
        return given, json.dumps(given)
    written = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    try:
        arguments = json.loads(written or "{}")
    except ValueError:
        arguments = None
    return (arguments if isinstance(arguments, dict) else None), written
