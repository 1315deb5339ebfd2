"""Prices and limits of models from the package ``genai-prices``, for models that are in no table of ours."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from pytest_evocode.llm.rates import ModelFacts, names_of

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

#: How the package calls the providers of our specs, where they differ.
_PROVIDERS = {"bedrock": "aws", "vertex": "google"}
#: What a provider takes every request for, and what needs no price of its own.
STANDARD_TIERS = frozenset({"auto", "default", "standard", "standard_only", "on_demand"})
_SCHEME = re.compile(r"^https?://")


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
    named, _, rest = model.partition("/")
    at = _provider_at(base_url) if base_url is not None else _PROVIDERS.get(provider or "", provider)
    # Gateways put the provider before the model's name, such as moonshotai/kimi-k2 or openrouter/qwen/qwen3-coder.
    places = [(at, names_of(model)), (_PROVIDERS.get(named, named), names_of(rest) if rest else [])]
    for id, names in places:
        for name in names if id else ():
            yield from _find(name, id)
    for name in names_of(model):
        yield from _find(name, None)


def _find(name: str, provider: str | None) -> Iterator[ModelInfo]:
    from genai_prices.data_snapshot import get_snapshot

    try:
        yield get_snapshot().find_provider_model(name, None, provider, None)[1]
    except LookupError:
        return


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

    has_tier = any(
        all(variant.when.get(key) == value for key, value in context.items()) for variant in _variants(model)
    )
    if price("input_mtok") is None or price("output_mtok") is None or (context and not has_tier):
        return None
    facts = PackagedFacts(
        input=float(price("input_mtok")), output=float(price("output_mtok")), context_tokens=model.context_window
    )
    facts._cost = cost
    return facts


def _variants(model: ModelInfo) -> list[Any]:
    return list(getattr(model, "price_variants", None) or ())
