"""Shopping lists."""

from math import ceil

from recipes.ingredients import Ingredient

# What a larger unit has of a smaller one.
LARGER = {"kg": ("g", 1000), "l": ("ml", 1000), "tbsp": ("tsp", 3)}
_LARGER_OF = {small: (large, size) for large, (small, size) in LARGER.items()}


def shopping_list(recipes):
    """All that the recipes need, each thing once for each kind of unit, by name."""
    sums = {}
    for recipe in recipes:
        for ingredient in recipe.ingredients:
            amount, unit, name = in_smaller_unit(ingredient)
            sums[name, unit] = sums.get((name, unit), 0) + amount
    found = (as_sold(Ingredient(amount, unit, name)) for (name, unit), amount in sums.items())
    return sorted(found, key=lambda each: (each.name, each.unit))


def in_smaller_unit(ingredient):
    """The same amount in the smaller of two units that belong together."""
    unit, size = LARGER.get(ingredient.unit, (ingredient.unit, 1))
    return ingredient._replace(amount=ingredient.amount * size, unit=unit)


def as_sold(ingredient):
    """The amount as a shop has it: in the larger unit if that makes at least 1, and pieces whole."""
    return in_larger_unit(ingredient) if ingredient.unit else ingredient._replace(amount=ceil(ingredient.amount))


def in_larger_unit(ingredient):
    """The same amount in the larger unit, if that makes at least 1."""
    unit, size = _LARGER_OF.get(ingredient.unit, (ingredient.unit, 1))
    return ingredient._replace(amount=ingredient.amount / size, unit=unit) if ingredient.amount >= size else ingredient
