import unittest

from recipes.ingredients import Ingredient, parse_ingredient
from recipes.recipe import Recipe, scale_recipe
from recipes.shopping import shopping_list
from recipes.text import show_ingredient


class IngredientTest(unittest.TestCase):
    def test_amount_unit_and_name(self):
        self.assertEqual(parse_ingredient("250 g rye flour"), Ingredient(250, "g", "rye flour"))

    def test_pieces(self):
        self.assertEqual(parse_ingredient("3 eggs"), Ingredient(3, "", "eggs"))

    def test_amount_alone(self):
        with self.assertRaises(ValueError):
            parse_ingredient("250 g")


class RecipeTest(unittest.TestCase):
    recipe = Recipe("Pancakes", 4, [Ingredient(250, "g", "flour"), Ingredient(3, "", "eggs")])

    def test_scaled(self):
        scaled = scale_recipe(self.recipe, 8)
        self.assertEqual([each.amount for each in scaled.ingredients], [500, 6])

    def test_shopping_list_adds_up(self):
        self.assertEqual(shopping_list([self.recipe, self.recipe])[0], Ingredient(6, "", "eggs"))


class TextTest(unittest.TestCase):
    def test_shown_without_zeros(self):
        self.assertEqual(show_ingredient(Ingredient(0.5, "l", "milk")), "0.5 l milk")
