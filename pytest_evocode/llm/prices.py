"""Prices and limits of models, from prices.json and from files in its format."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_evocode.errors import UsageError, describe_validation
from pytest_evocode.results.records import Usage

_TABLE = Path(__file__).with_name("prices.json")
# What providers append to a model's name for one version of it: -2026-04-23, -20251001, @20251001, -latest.
_VERSION = re.compile(r"(-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rates(_Entry):
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


class _Table(_Entry):
    as_of: str = ""
    note: str = ""
    models: dict[str, ModelFacts]


def find_model_facts(model: str, prices: Path | None = None) -> ModelFacts | None:
    """Return the prices and limits of a model, or None where no table has it.

    The name is looked up as it is, then without the date of a version, then without what is before a slash, as routers
    name models. Entries of the file ``prices`` come before ours.

    Raises:
        UsageError: The file cannot be read.
    """
    tables = ([] if prices is None else [_read(prices).models]) + [_own_table().models]
    names = dict.fromkeys([model, _VERSION.sub("", model), _VERSION.sub("", model.rpartition("/")[2])])
    return next((table[name] for table in tables for name in names if name in table), None)


def priced_usage(
    facts: ModelFacts | None,
    prompt: int | None,
    completion: int | None,
    cached: int | None = None,
    written: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Return the usage of one reply, with its cost where the price and the tokens are known.

    Args:
        facts: The model's prices; None where unknown.
        prompt: All tokens sent; None where the provider does not say.
        completion: All tokens that the model wrote.
        cached: Of the prompt, those read from the cache.
        written: Of the prompt, those written to the cache.
        reasoning: Of the completion, those of the model's reasoning.
    """
    cost = None
    if facts is not None and prompt is not None and completion is not None:
        cost = facts.cost(prompt, completion, cached or 0, written or 0)
    return Usage(
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
        cost_usd=cost,
        requests=1,
    )


@cache
def _own_table() -> _Table:
    return _Table.model_validate_json(_TABLE.read_bytes())


def _read(path: Path) -> _Table:
    try:
        text = path.read_text(encoding="utf-8")
        data: Mapping[str, Any] = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        return _Table.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{path}: {describe_validation(error)}; see the format of {_TABLE.name}") from None
    except (OSError, ValueError) as error:  # a file that is not there, and JSON, TOML or UTF-8 that is none
        raise UsageError(f"{path}: the prices cannot be read: {error}") from None
