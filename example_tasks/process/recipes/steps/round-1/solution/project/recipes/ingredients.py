"""The lines of a recipe."""

import re
from fractions import Fraction
from typing import NamedTuple

UNITS = ("g", "kg", "ml", "l", "tsp", "tbsp", "cup", "pinch")
_LINE = re.compile(r"(?:(\d+) +)?(\d+)/(\d+) +(.+)|(\d+(?:\.\d+)?) +(.+)", re.ASCII)


class Ingredient(NamedTuple):
    """So much of something; a unit of "" is a number of pieces."""

    amount: Fraction
    unit: str
    name: str


def parse_ingredient(text):
    """The ingredient that a line names; raises ValueError for a line that is none."""
    amount, words = split_amount(text.strip())
    unit, _, name = words.partition(" ") if words.split()[0] in UNITS else ("", "", words)
    if not name.strip():
        raise ValueError("no name")
    return Ingredient(amount, unit, " ".join(name.split()))


def split_amount(text):
    """The amount that a line begins with, and the rest of it."""
    match = _LINE.fullmatch(text)
    if not match:
        raise ValueError("no amount")
    whole, numerator, denominator, words, decimal, words_after_decimal = match.groups()
    if decimal:
        return Fraction(decimal), words_after_decimal
    if not int(denominator):
        raise ValueError("no fraction")
    return int(whole or 0) + Fraction(int(numerator), int(denominator)), words
