"""The command line."""

import argparse
import sys

from recipes.recipe import RecipeError, read_recipe, scale_recipe
from recipes.shopping import shopping_list
from recipes.text import show_ingredient


def main():
    parser = argparse.ArgumentParser(prog="recipes")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show")
    show.add_argument("file")
    show.add_argument("--for", dest="people", type=int)
    shop = commands.add_parser("shop")
    shop.add_argument("files", nargs="+")
    options = parser.parse_args()
    try:
        lines = show_lines(options) if options.command == "show" else shop_lines(options)
    except RecipeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def show_lines(options):
    recipe = read_recipe(options.file)
    if options.people:
        recipe = scale_recipe(recipe, options.people)
    return [recipe.title, f"serves {recipe.serves}", "", *map(show_ingredient, recipe.ingredients)]


def shop_lines(options):
    return list(map(show_ingredient, shopping_list(map(read_recipe, options.files))))


sys.exit(main())
