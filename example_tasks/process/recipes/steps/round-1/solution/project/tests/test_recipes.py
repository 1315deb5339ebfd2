import unittest
from fractions import Fraction

from recipes.ingredients import Ingredient, parse_ingredient
from recipes.recipe import Recipe, scale_recipe
from recipes.shopping import shopping_list
from recipes.text import show_ingredient


class IngredientTest(unittest.TestCase):
    def test_amount_unit_and_name(self):
        self.assertEqual(parse_ingredient("250 g rye flour"), Ingredient(250, "g", "rye flour"))

    def test_pieces(self):
        self.assertEqual(parse_ingredient("3 eggs"), Ingredient(3, "", "eggs"))

    def test_fractions(self):
        for text, amount in (("1/2", Fraction(1, 2)), ("1 1/2", Fraction(3, 2)), ("0.1", Fraction(1, 10))):
            self.assertEqual(parse_ingredient(f"{text} cup cocoa"), Ingredient(amount, "cup", "cocoa"))

    def test_no_ingredient(self):
        for text in ("250 g", "1/0 cup cocoa", "1e3 g flour", "some salt"):
            with self.assertRaises(ValueError, msg=text):
                parse_ingredient(text)


class RecipeTest(unittest.TestCase):
    recipe = Recipe("Pancakes", 4, [Ingredient(Fraction(250), "g", "flour"), Ingredient(Fraction(3), "", "eggs")])

    def test_scaled_exactly(self):
        scaled = scale_recipe(self.recipe, 3)
        self.assertEqual([each.amount for each in scaled.ingredients], [Fraction(375, 2), Fraction(9, 4)])

    def test_shopping_list_adds_up_exactly(self):
        third = Recipe("Cocoa", 1, [Ingredient(Fraction(1, 3), "cup", "cocoa")])
        self.assertEqual(shopping_list([third] * 3), [Ingredient(1, "cup", "cocoa")])


class TextTest(unittest.TestCase):
    def test_shown_as_fraction(self):
        for amount, text in ((Fraction(2, 4), "1/2"), (Fraction(3, 2), "1 1/2"), (Fraction(2), "2")):
            self.assertEqual(show_ingredient(Ingredient(amount, "l", "milk")), f"{text} l milk")
