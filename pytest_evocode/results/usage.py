"""What requests to models used and cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import ConfigDict, field_validator

from pytest_evocode.results.frozen import ResultsRecord


class Usage(ResultsRecord):
    """What requests to a model used and cost; None is unknown, never 0."""

    model_config = ConfigDict(allow_inf_nan=True)

    prompt_tokens: int | None = None
    """All tokens that were sent, those included that the provider had cached."""
    cached_tokens: int | None = None
    """The part of the prompt tokens that the provider read from its cache."""
    completion_tokens: int | None = None
    """All tokens that the model wrote, its reasoning included."""
    cache_write_tokens: int | None = None
    """The part of the prompt tokens that the provider wrote to its cache."""
    reasoning_tokens: int | None = None
    """The part of the completion tokens that was reasoning."""
    cost_usd: float | None = None
    requests: int | None = None
    at_least: Literal[True] | None = None
    """Set where more was used than is known: an agent's program was killed in mid-turn."""

    @field_validator("cost_usd")
    @classmethod
    def _known(cls, cost: float | None) -> float | None:
        # Agents of others may say NaN, which is no amount.
        return cost if cost is not None and math.isfinite(cost) else None

    @property
    def tokens(self) -> int | None:
        """Prompt tokens and completion tokens together; None where one of them is unknown."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of some usages, or None where no model was used.

    A number that is unknown in one of them is unknown in the sum.

    >>> total = total_usage([Usage(prompt_tokens=1, cost_usd=0.5), None, Usage(prompt_tokens=2)])
    >>> total.prompt_tokens, total.cost_usd, total.at_least
    (3, None, None)
    """
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    sums: dict[str, Any] = {"at_least": True if any(usage.at_least for usage in known) else None}
    for name in Usage.model_fields.keys() - sums.keys():
        values = [getattr(usage, name) for usage in known]
        sums[name] = None if None in values else sum(values)
    return Usage(**sums)
