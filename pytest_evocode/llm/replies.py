"""What the answers of all APIs have in common: arguments, usage, and the provider's own form of a message."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.llm.protocol import Message
from pytest_evocode.results.records import Usage


def tagged(api: str, native: Any) -> dict[str, Any]:
    """The provider's own form of a message, for :attr:`Reply.native`."""
    return {"api": api, "message": native}


def native_of(message: Message, api: str) -> Any:
    """What :func:`tagged` was given for the same API; None for a message of another one, or of none."""
    native = message.native
    return native.get("message") if isinstance(native, dict) and native.get("api") == api else None


def without_open_end(items: list[dict[str, Any]], kinds: Collection[str]) -> list[dict[str, Any]]:
    """The items up to the last that is not of such a ``type``.

    A reply that was cut off while the model reasoned ends with reasoning, and APIs refuse to see that again.
    """
    last = max((number for number, item in enumerate(items) if item.get("type") not in kinds), default=-1)
    return items[: last + 1]


def arguments_of(given: Any) -> tuple[dict[str, Any] | None, str]:
    """The arguments of a call, None where they are no JSON object, and as they were written.

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


def priced_usage(
    facts: ModelFacts | None,
    prompt: int | None,
    completion: int | None,
    cached: int | None = None,
    written: int | None = None,
) -> Usage:
    """What one reply used, with its cost where the price and the tokens are known."""
    cost = None
    if facts is not None and prompt is not None and completion is not None:
        cost = facts.cost(prompt, completion, cached or 0, written or 0)
    return Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion, cost_usd=cost, requests=1)
