"""Prices and limits of models: from prices.json, files in its format, and the package ``genai-prices``."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from pytest_evocode.errors import UsageError, describe_validation
from pytest_evocode.results.records import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo


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


#: How the package calls the providers of our specs, where they differ.
_PROVIDERS = {"bedrock": "aws", "vertex": "google"}
#: What a provider takes every request for, and what needs no price of its own.
STANDARD_TIERS = frozenset({"auto", "default", "standard", "standard_only", "on_demand"})


class PackagedFacts(ModelFacts):
    """Rates and limits of a model as the package has them; ``input`` and ``output`` are those of a short prompt."""

    _cost: Callable[[int, int, int, int], float] = PrivateAttr()

    def cost(self, prompt: int, completion: int, cached: int = 0, written: int = 0) -> float:
        """Return the cost of one reply, as the package computes it for the present moment."""
        return self._cost(prompt, completion, cached, written)


@cache
def find_packaged_facts(
    model: str, *, provider: str | None = None, base_url: str | None = None, service_tier: str | None = None
) -> PackagedFacts | None:
    """Return the prices and limits of a model, or None where the package is not installed or does not know it.

    Importing the package takes half a second.

    Args:
        model: The model's name.
        provider: The provider of its spec; None where only the name is known.
        base_url: Address of the server, by which the package knows many providers.
        service_tier: Tier that the requests are made for.
    """
    if not model or importlib.util.find_spec("genai_prices") is None:
        return None
    context = {} if service_tier is None or service_tier in STANDARD_TIERS else {"service_tier": service_tier}
    for found in _candidates(model, provider, base_url):
        if (facts := _facts(found, context)) is not None:
            return facts
    return None


def knows_server(base_url: str) -> bool:
    """Whether the package has the prices of the provider at an address."""
    if importlib.util.find_spec("genai_prices") is None:
        return False
    return _provider_at(base_url) is not None


def _provider_at(base_url: str) -> str | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider(None, None, base_url).id
    except LookupError:
        return None


def _candidates(model: str, provider: str | None, base_url: str | None) -> Iterator[ModelInfo]:
    """Yield the models that a name may stand for, those at the server that is asked first."""
    from genai_prices.data_snapshot import get_snapshot

    named, _, rest = model.partition("/")
    at = _provider_at(base_url) if base_url is not None else _PROVIDERS.get(provider or "", provider)
    # Gateways put the provider before the model's name, such as moonshotai/kimi-k2 or openrouter/qwen/qwen3-coder.
    places = [(at, names_of(model)), (_PROVIDERS.get(named, named), names_of(rest) if rest else [])]
    asked = [(id, name) for id, names in places if id for name in names]
    for id, name in [*asked, *((None, name) for name in names_of(model))]:
        with contextlib.suppress(LookupError):
            yield get_snapshot().find_provider_model(name, None, id, None)[1]


def _facts(model: ModelInfo, context: dict[str, str]) -> PackagedFacts | None:
    from genai_prices import Usage

    def price(name: str) -> Any:
        """Return a rate as it is now, without the higher one of long prompts."""
        rate = getattr(model.get_prices(datetime.now(UTC), context), name)
        return getattr(rate, "base", rate)

    def cost(prompt: int, completion: int, cached: int, written: int) -> float:
        usage = Usage(
            input_tokens=prompt, output_tokens=completion, cache_read_tokens=cached, cache_write_tokens=written
        )
        return float(model.get_prices(datetime.now(UTC), context).calc_price(usage)["total_price"])

    variants: Iterable[Any] = getattr(model, "price_variants", None) or ()
    has_tier = any(all(each.when.get(key) == value for key, value in context.items()) for each in variants)
    if price("input_mtok") is None or price("output_mtok") is None or (context and not has_tier):
        return None
    facts = PackagedFacts(
        input=float(price("input_mtok")), output=float(price("output_mtok")), context_tokens=model.context_window
    )
    facts._cost = cost
    return facts


_TABLE = Path(__file__).with_name("prices.json")
#: Providers whose own prices our table has.
_OWN = ("openai", "anthropic")


class _Table(PriceEntry):
    as_of: str = ""
    note: str = ""
    windows: dict[str, int] = {}
    """Longest conversations of models that are not in the table, by the beginning of their names."""
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
        model: The model's name; see :func:`~pytest_evocode.llm.prices.names_of`.
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


def window_of(model: str) -> int | None:
    """Return the longest conversation of a model whose facts do not tell it, in tokens; None where it is not known."""
    windows = _own_table().windows
    return next((windows[name] for each in names_of(model) for name in windows if each.startswith(name)), None)


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
    prompt: object,
    completion: object,
    cached: object = None,
    written: object = None,
    reasoning: object = None,
    charged: float | None = None,
    *,
    total: object = None,
    contradictions: list[str] | None = None,
) -> Usage:
    """Return the usage of one reply, with its cost where the price and the tokens are known.

    Where parts come to more than the whole, the provider has counted them apart, unless the total says otherwise: then
    they are left out. Where the total is more than all parts, more was used than is known.

    Args:
        facts: The model's prices; None where unknown.
        prompt: All tokens sent; None where the provider does not say.
        completion: All tokens that the model wrote.
        cached: Of the prompt, those read from the cache.
        written: Of the prompt, those written to the cache.
        reasoning: Of the completion, those of the model's reasoning.
        charged: US dollars that the provider says it charged, which count rather than the table's prices.
        total: All tokens, where the provider says.
        contradictions: Gets what cannot be, in words.
    """
    given = (prompt, completion, cached, written, reasoning, total)
    sent, wrote, from_cache, to_cache, thought, whole = map(tokens_of, given)
    told = [] if contradictions is None else contradictions
    sum_told = None if whole is None or sent is None or wrote is None else whole - sent - wrote
    if sent is not None and sent < (of_cache := (from_cache or 0) + (to_cache or 0)):
        if sum_told == 0:
            told.append(f"{of_cache} tokens of the cache are in a prompt of {sent}")
            from_cache = to_cache = None
        else:
            sent += of_cache
    if wrote is not None and thought and (wrote < thought or sum_told == thought):
        if sum_told == 0:
            told.append(f"{thought} tokens of reasoning are in a reply of {wrote}")
            thought = None
        else:
            wrote += thought
    beyond = 0 if whole is None or sent is None or wrote is None else whole - sent - wrote
    if beyond:
        told.append(f"the total of {whole} tokens is not the sum of {sent} and {wrote}")
    cost = charged
    if cost is None and facts is not None and sent is not None and wrote is not None:
        cost = facts.cost(sent, wrote, from_cache or 0, to_cache or 0)
    return Usage(
        prompt_tokens=sent,
        cached_tokens=from_cache,
        completion_tokens=wrote,
        cache_write_tokens=to_cache,
        reasoning_tokens=thought,
        cost_usd=cost,
        requests=1,
        at_least=True if beyond > 0 else None,
    )


def tokens_of(told: object) -> int | None:
    """Return a number of tokens, or None for what is none.

    >>> [tokens_of(told) for told in (10, 10.0, "5", -10, True, "many", None, float("nan"))]
    [10, 10, 5, None, None, None, None, None]
    """
    if isinstance(told, str) and told.isdecimal() and len(told) < 16:
        return int(told)
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < math.inf:
        return None
    return int(told)


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
