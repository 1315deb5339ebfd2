"""Recipes that tests of several rounds read."""

CAKE = """\
Cake
serves 4

1/2 cup sugar
1 1/2 tsp baking powder
3 eggs
"""

BREAD = """\
Bread
serves 2

0.25 kg flour
1/2 l water
2 tsp salt
"""


def recipe(*ingredients):
    """A recipe for one with these ingredients."""
    return "\n".join(["Test", "serves 1", "", *ingredients, ""])
