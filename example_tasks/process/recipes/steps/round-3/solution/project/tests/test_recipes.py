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
            self.assertEqual(show_ingredient(Ingredient(amount, "cup", "milk")), f"{text} cup milk")

    def test_metric_amounts_as_decimals(self):
        for amount, text in (("6/5", "1.2"), ("3/8", "0.38"), ("20", "20"), ("1/900", "0.01")):
            self.assertEqual(show_ingredient(Ingredient(Fraction(amount), "l", "milk")), f"{text} l milk")


class UnitsTest(unittest.TestCase):
    def list_of(self, *ingredients):
        recipe = Recipe("Bread", 1, [Ingredient(Fraction(amount), unit, "flour") for amount, unit in ingredients])
        return [(each.amount, each.unit) for each in shopping_list([recipe])]

    def test_units_that_belong_together_are_added_up(self):
        self.assertEqual(self.list_of((200, "g"), (1, "kg")), [(Fraction(6, 5), "kg")])
        self.assertEqual(self.list_of((1, "tsp"), (1, "tbsp")), [(Fraction(4, 3), "tbsp")])

    def test_less_than_one_is_shown_in_the_smaller_unit(self):
        self.assertEqual(self.list_of(("1/2", "l")), [(500, "ml")])

    def test_pieces_are_rounded_up(self):
        self.assertEqual(self.list_of(("3/4", ""), ("3/4", "")), [(2, "")])

    def test_other_units_stay_apart(self):
        self.assertEqual(self.list_of((1, "cup"), (50, "g"), (1, "")), [(1, ""), (1, "cup"), (50, "g")])
