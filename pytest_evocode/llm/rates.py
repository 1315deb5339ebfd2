"""What a model costs and how much it takes, and the names under which tables have it."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field

# What providers append to a model's name for one version of it: -2026-04-23, -20251001, @20251001, -latest.
_VERSION = re.compile(r"(-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$")
# What Bedrock puts before a model's name, and after it: us.anthropic., -v1:0.
_PLATFORM = re.compile(
    r"^((us-gov|us|eu|apac|au|jp|ca|global)\.)?(anthropic|amazon|cohere|deepseek|meta|mistral|openai|qwen)\."
)
_REVISION = re.compile(r"-v\d+(:\d+)?$")
_DOTTED = re.compile(r"(?<=\d)\.(?=\d)")


class PriceEntry(BaseModel):
    """Part of a table of prices."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Rates(PriceEntry):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    """Tokens read from the cache; None: as other input."""
    cache_write: float | None = Field(default=None, ge=0)
    """Tokens written to the cache; None: as other input."""
    output: float = Field(ge=0)

    def cost(self, prompt: int, completion: int, cached: int = 0, written: int = 0) -> float:
        """Return the cost of one reply in US dollars; ``cached`` and ``written`` are parts of the ``prompt`` tokens.

        >>> Rates(input=2, cached_input=0.5, output=8).cost(prompt=1_000_000, completion=500_000, cached=400_000)
        5.4
        """
        parts = (
            (prompt - cached - written) * self.input,
            cached * (self.input if self.cached_input is None else self.cached_input),
            written * (self.input if self.cache_write is None else self.cache_write),
            completion * self.output,
        )
        return sum(parts) / 1_000_000


class LongPrompt(Rates):
    """Rates for all tokens of a request whose prompt is longer than ``above_tokens``."""

    above_tokens: int = Field(ge=0)


class ModelFacts(Rates):
    """Rates and limits of a model."""

    long_prompt: LongPrompt | None = None
    context_tokens: int | None = Field(default=None, gt=0)
    """Longest conversation, the reply included."""
    output_tokens: int | None = Field(default=None, gt=0)
    """Longest reply."""

    def cost(self, prompt: int, completion: int, cached: int = 0, written: int = 0) -> float:
        """Return the cost of one reply as :meth:`Rates.cost` does, at the rates for a prompt of that length."""
        if self.long_prompt is not None and prompt > self.long_prompt.above_tokens:
            return self.long_prompt.cost(prompt, completion, cached, written)
        return super().cost(prompt, completion, cached, written)


def names_of(model: str) -> list[str]:
    """Return the names under which tables may have a model, the most precise one first.

    They are the name itself, then without the date of a version, then without what gateways and platforms add: a
    provider before a slash or a dot, a region, a revision. Each comes with dots in its version as dashes, too.

    >>> names_of("anthropic/claude-opus-4.5")
    ['anthropic/claude-opus-4.5', 'anthropic/claude-opus-4-5', 'claude-opus-4.5', 'claude-opus-4-5']
    >>> names_of("us.anthropic.claude-sonnet-4-5-20250929-v1:0")[-1]
    'claude-sonnet-4-5'
    """
    short = _PLATFORM.sub("", _REVISION.sub("", model.rpartition("/")[2]))
    names = [model, _VERSION.sub("", model), short, _VERSION.sub("", short)]
    return list(dict.fromkeys(each for name in names for each in (name, _DOTTED.sub("-", name))))
