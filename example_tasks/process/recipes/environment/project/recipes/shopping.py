"""Shopping lists."""

from recipes.ingredients import Ingredient


def shopping_list(recipes):
    """All that the recipes need, each thing once for each unit, by name."""
    sums = {}
    for recipe in recipes:
        for amount, unit, name in recipe.ingredients:
            sums[name, unit] = sums.get((name, unit), 0.0) + amount
    return [Ingredient(amount, unit, name) for (name, unit), amount in sorted(sums.items())]
