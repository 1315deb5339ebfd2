"""Parts of replies that all APIs have: arguments of tool calls, usage, messages in the provider's own format."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.llm.protocol import Message
from pytest_evocode.results.records import Usage


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


def priced_usage(
    facts: ModelFacts | None,
    prompt: int | None,
    completion: int | None,
    cached: int | None = None,
    written: int | None = None,
) -> Usage:
    """Return the usage of one reply, with its cost where the price and the tokens are known.

    Args:
        facts: The model's prices; None where unknown.
        prompt: All tokens sent; None where the provider does not say.
        completion: All tokens that the model wrote.
        cached: Of the prompt, those read from the cache.
        written: Of the prompt, those written to the cache.
    """
    cost = None
    if facts is not None and prompt is not None and completion is not None:
        cost = facts.cost(prompt, completion, cached or 0, written or 0)
    return Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion, cost_usd=cost, requests=1)
