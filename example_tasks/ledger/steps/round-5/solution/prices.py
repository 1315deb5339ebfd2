"""Exchange rates as the journal states them, and exact conversion with one rounding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from fractions import Fraction
from typing import NamedTuple

PRICE = re.compile(r"P\s+([0-9]{4}-[0-9]{2}-[0-9]{2})\s+([A-Z]{3})\s+([0-9]+(?:\.[0-9]+)?)\s+([A-Z]{3})")


class Price(NamedTuple):
    """From this day on, one unit of `currency` is worth `rate` units of `target`."""

    day: date
    currency: str
    rate: Fraction
    target: str


def parse_price(text: str) -> Price:
    """Read one price line; raises ValueError when it is not one."""
    match = PRICE.fullmatch(text)
    if match is None or not Fraction(match.group(3)):
        raise ValueError(text)
    day, currency, rate, target = match.groups()
    return Price(date.fromisoformat(day), currency, Fraction(rate), target)


def rates_to(target: str, prices: Iterable[Price], end: date | None) -> dict[str, Fraction]:
    """The rates into `target` that hold on `end` (None: after all prices), by currency."""
    rates = {"": Fraction(1), target: Fraction(1)}
    for price in sorted(prices, key=lambda price: price.day):
        if price.target == target != price.currency and (end is None or price.day <= end):
            rates[price.currency] = price.rate
    return rates


def round_cents(cents: Fraction) -> int:
    """Round to a whole cent, halves away from zero."""
    rounded = int(abs(cents) + Fraction(1, 2))
    return -rounded if cents < 0 else rounded
