"""Whole recipes: reading and scaling."""

from typing import NamedTuple

from recipes.ingredients import parse_ingredient


class Recipe(NamedTuple):
    """A recipe as its file has it."""

    title: str
    serves: int
    ingredients: list


class RecipeError(Exception):
    """A file is no recipe; says where."""


def read_recipe(path):
    """The recipe in a file; raises RecipeError for a line that is no ingredient."""
    with open(path, encoding="utf-8") as file:
        title, serves, _, *lines = file.read().splitlines()
    ingredients = []
    for number, line in enumerate(lines, start=4):
        try:
            ingredients.append(parse_ingredient(line))
        except ValueError:
            raise RecipeError(f"{path}:{number}: not an ingredient: {line}") from None
    return Recipe(title, int(serves.split()[1]), ingredients)


def scale_recipe(recipe, people):
    """The same recipe for another number of people."""
    factor = people / recipe.serves
    scaled = [each._replace(amount=round(each.amount * factor, 6)) for each in recipe.ingredients]
    return recipe._replace(serves=people, ingredients=scaled)
