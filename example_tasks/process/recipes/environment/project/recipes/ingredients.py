"""The lines of a recipe."""

from typing import NamedTuple

UNITS = ("g", "kg", "ml", "l", "tsp", "tbsp", "cup", "pinch")


class Ingredient(NamedTuple):
    """So much of something; a unit of "" is a number of pieces."""

    amount: float
    unit: str
    name: str


def parse_ingredient(text):
    """The ingredient that a line names; raises ValueError for a line that is none."""
    first, *rest = text.split()
    amount = float(first)
    unit = rest.pop(0) if rest and rest[0] in UNITS else ""
    if not rest:
        raise ValueError("no name")
    return Ingredient(amount, unit, " ".join(rest))
