"""What an agent that speaks ACP tells of the tokens that its turn has taken."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from pytest_evocode.results.records import Usage


def usage_told(told: Any, *, cost: float | None, requests: int) -> Usage | None:
    """Return the usage of a turn; None where nothing is told of it.

    Whether tokens of the cache are among ``inputTokens``, and those of thoughts among ``outputTokens``, differs from
    agent to agent; ``totalTokens`` tells. What is no number of tokens is unknown.

    Args:
        told: The protocol's ``usage``.
        cost: US dollars; None where unknown.
        requests: Number of requests to the model.
    """
    counts: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    if not counts and cost is None:
        return None
    prompt, completion = _tokens(counts, "inputTokens"), _tokens(counts, "outputTokens")
    read, written = _tokens(counts, "cachedReadTokens"), _tokens(counts, "cachedWriteTokens")
    thought = _tokens(counts, "thoughtTokens")
    cached, total = (read or 0) + (written or 0), _tokens(counts, "totalTokens")
    known = (prompt or 0) + (completion or 0)
    ways = product((cached, 0), (0, thought or 0))
    includes = total is not None and total < known + cached
    of_cache, of_thought = next((way for way in ways if total == known + sum(way)), (0 if includes else cached, 0))
    return Usage(
        prompt_tokens=None if prompt is None else prompt + of_cache,
        cached_tokens=read,
        completion_tokens=None if completion is None else completion + of_thought,
        cache_write_tokens=written,
        reasoning_tokens=thought,
        cost_usd=cost,
        requests=requests,
    )


def _tokens(counts: Mapping[str, Any], name: str) -> int | None:
    number = counts.get(name)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
