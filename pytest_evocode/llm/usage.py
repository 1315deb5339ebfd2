"""Reads what answers say of their tokens, in each API's form, into one record; what contradicts itself is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_evocode.llm.prices import ModelFacts, priced_usage, tokens_of
from pytest_evocode.results.records import Usage, total_usage

Api = Literal["messages", "chat", "responses", "gemini"]
"""Anthropic's Messages, OpenAI's Chat Completions and Responses, Google's generateContent."""


@dataclass(frozen=True, slots=True)
class CountedAnswer:
    """What one answer used."""

    usage: Usage
    contradictions: tuple[str, ...] = ()
    """What the answer says of it and cannot be, in words."""

    @property
    def remarks(self) -> dict[str, Any]:
        """The contradictions, for the trajectory; nothing where there are none."""
        return {"usage_contradictions": list(self.contradictions)} if self.contradictions else {}


def counted_answer(api: Api, told: object, facts: ModelFacts | None) -> CountedAnswer:
    """Count an answer.

    Args:
        api: The API that was asked.
        told: What the answer has under ``usage`` or ``usageMetadata``; anything but an object counts as nothing.
        facts: The model's prices; None where unknown.
    """
    contradictions: list[str] = []
    usage = _READERS[api](_Told(told, contradictions), facts)
    return CountedAnswer(usage, tuple(dict.fromkeys(contradictions)))


def lower_bound(usage: Usage, facts: ModelFacts | None) -> Usage:
    """Return what an answer is known to have used that broke off: what is unknown is 0, at least."""
    known: dict[str, Any] = dict.fromkeys(Usage.model_fields, 0) | usage.model_dump(exclude_none=True)
    if facts is not None:
        counts = (known[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens"))
        known["cost_usd"] = facts.cost(*counts)
    return Usage(**known | {"requests": 1, "at_least": True})


class _Told:
    """The numbers in an answer's usage."""

    def __init__(self, values: object, contradictions: list[str]) -> None:
        self.values: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
        self.contradictions = contradictions

    def tokens(self, *names: str) -> int | None:
        """Return a number of tokens, by the names that lead to it; None where there is none, or no such number."""
        value: Any = self.values
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        found = tokens_of(value)
        if value is not None and found is None:
            self.contradictions.append(f"{'.'.join(names)} is {value!r}")
        return found


def _of_messages(told: _Told, facts: ModelFacts | None) -> Usage:
    """Count a reply, and summaries with it, which the API counts apart."""
    iterations = told.values.get("iterations")
    summaries = [
        each
        for each in (iterations if isinstance(iterations, list) else ())
        if isinstance(each, Mapping) and each.get("type") == "compaction"
    ]
    of_reply = _of_message(told, facts)
    if not summaries:
        return of_reply
    nothing = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    parts = [_Told({**nothing, **each}, told.contradictions) for each in (told.values, *summaries)]
    whole = total_usage(_of_message(part, facts) for part in parts)
    assert whole is not None
    return whole.model_copy(update={"reasoning_tokens": of_reply.reasoning_tokens, "requests": 1})


def _of_message(told: _Told, facts: ModelFacts | None) -> Usage:
    """Add up the input tokens, which the API counts apart from those read from the cache and written to it."""
    rest, read = told.tokens("input_tokens"), told.tokens("cache_read_input_tokens")
    written = told.tokens("cache_creation_input_tokens")
    return priced_usage(
        facts,
        None if rest is None else rest + (read or 0) + (written or 0),
        told.tokens("output_tokens"),
        cached=read,
        written=written,
        reasoning=told.tokens("output_tokens_details", "thinking_tokens"),
        contradictions=told.contradictions,
    )


def _of_chat(told: _Told, facts: ModelFacts | None) -> Usage:
    # DeepSeek and Moonshot have names of their own.
    names = (("prompt_tokens_details", "cached_tokens"), ("prompt_cache_hit_tokens",), ("cached_tokens",))
    return priced_usage(
        facts,
        told.tokens("prompt_tokens"),
        told.tokens("completion_tokens"),
        cached=next((found for each in names if (found := told.tokens(*each)) is not None), None),
        written=told.tokens("prompt_tokens_details", "cache_write_tokens"),
        reasoning=told.tokens("completion_tokens_details", "reasoning_tokens"),
        total=told.tokens("total_tokens"),
        charged=_charged(told),
        contradictions=told.contradictions,
    )


def _charged(told: _Told) -> float | None:
    """Return the US dollars that OpenRouter says it charged, with those that were charged on a key of the user's."""
    cost = told.values.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool):
        return None
    if cost < 0:
        told.contradictions.append(f"cost is {cost!r}")
        return None
    details = told.values.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, Mapping) else None
    return cost + (upstream if told.values.get("is_byok") and isinstance(upstream, int | float) else 0)


def _of_responses(told: _Told, facts: ModelFacts | None) -> Usage:
    return priced_usage(
        facts,
        told.tokens("input_tokens"),
        told.tokens("output_tokens"),
        cached=told.tokens("input_tokens_details", "cached_tokens"),
        written=told.tokens("input_tokens_details", "cache_write_tokens"),
        reasoning=told.tokens("output_tokens_details", "reasoning_tokens"),
        total=told.tokens("total_tokens"),
        contradictions=told.contradictions,
    )


def _of_gemini(told: _Told, facts: ModelFacts | None) -> Usage:
    """Add up the tokens, which the API counts apart: those of tools' results and those of thoughts."""
    prompt, thoughts = told.tokens("promptTokenCount"), told.tokens("thoughtsTokenCount")
    written = told.tokens("candidatesTokenCount")
    return priced_usage(
        facts,
        None if prompt is None else prompt + (told.tokens("toolUsePromptTokenCount") or 0),
        None if prompt is None else (written or 0) + (thoughts or 0),
        cached=told.tokens("cachedContentTokenCount"),
        reasoning=thoughts,
        total=told.tokens("totalTokenCount"),
        contradictions=told.contradictions,
    )


_READERS: Mapping[Api, Callable[[_Told, ModelFacts | None], Usage]] = {
    "messages": _of_messages,
    "chat": _of_chat,
    "responses": _of_responses,
    "gemini": _of_gemini,
}
