"""Prices and limits of models: from prices.json, files in its format, and the package ``genai-prices``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from pytest_evocode.errors import UsageError, describe_validation
from pytest_evocode.llm.packaged_prices import STANDARD_TIERS, find_packaged_facts, knows_server
from pytest_evocode.llm.rates import ModelFacts, PriceEntry, names_of
from pytest_evocode.results.records import Usage

_TABLE = Path(__file__).with_name("prices.json")
#: Providers whose own prices our table has.
_OWN = ("openai", "anthropic")


class _Table(PriceEntry):
    as_of: str = ""
    note: str = ""
    models: dict[str, ModelFacts]


def find_model_facts(
    model: str,
    prices: Path | None = None,
    *,
    provider: str | None = None,
    base_url: str | None = None,
    service_tier: str | None = None,
) -> ModelFacts | None:
    """Return the prices and limits of a model, or None where they are not known.

    Entries of the file ``prices`` come first, then our table, then the package ``genai-prices``. The package comes
    before our table, which has the prices of OpenAI and Anthropic themselves, for another provider that it knows, and
    for another service tier than the standard one.

    Args:
        model: The model's name; see :func:`~pytest_evocode.llm.rates.names_of`.
        prices: File in the format of prices.json.
        provider: The provider of the model's spec; None where only the name is known.
        base_url: Address of the server that is asked; None for the provider's own.
        service_tier: Tier that the requests are made for.

    Raises:
        UsageError: The file cannot be read.
    """
    if (given := _in_table(model, {} if prices is None else _read(prices).models)) is not None:
        return given
    own = _in_table(model, _own_table().models)
    elsewhere = provider not in (None, *_OWN) if base_url is None else not _is_own(base_url) and knows_server(base_url)
    standard = service_tier is None or service_tier in STANDARD_TIERS
    if own is not None and standard and not elsewhere:
        return own
    packaged = find_packaged_facts(model, provider=provider, base_url=base_url, service_tier=service_tier)
    return packaged or (own if standard else None)


def known_models() -> list[str]:
    """Return the names of the models in our table."""
    return list(_own_table().models)


def _in_table(model: str, table: Mapping[str, ModelFacts]) -> ModelFacts | None:
    return next((table[name] for name in names_of(model) if name in table), None)


def _is_own(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return any(host == f"{name}.com" or host.endswith(f".{name}.com") for name in _OWN)


def priced_usage(
    facts: ModelFacts | None,
    prompt: int | None,
    completion: int | None,
    cached: int | None = None,
    written: int | None = None,
    reasoning: int | None = None,
    charged: float | None = None,
) -> Usage:
    """Return the usage of one reply, with its cost where the price and the tokens are known.

    Args:
        facts: The model's prices; None where unknown.
        prompt: All tokens sent; None where the provider does not say.
        completion: All tokens that the model wrote.
        cached: Of the prompt, those read from the cache.
        written: Of the prompt, those written to the cache.
        reasoning: Of the completion, those of the model's reasoning.
        charged: US dollars that the provider says it charged, which count rather than the table's prices.
    """
    cost = charged
    if cost is None and facts is not None and prompt is not None and completion is not None:
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
