"""Units that belong together, in shopping lists."""

import pytest
from cookbook import BREAD, recipe


@pytest.mark.requirement("units", kind="core", retired="round-3")
def test_added_up(recipes):
    """Grams and kilograms are one line, and so are teaspoons and tablespoons."""
    other = recipe("950 g flour", "1 tbsp salt")
    answer = recipes("shop bread.txt other.txt", bread=BREAD, other=other)
    assert answer == (0, "1 1/5 kg flour\n1 2/3 tbsp salt\n500 ml water\n", "")


@pytest.mark.requirement("units", kind="boundary")
def test_larger_unit_from_one_on(recipes):
    """The larger unit is used as soon as there is one of it."""
    lines = recipe("999 g flour", "1000 g oats", "3 tsp salt", "2 tsp zest")
    assert recipes("shop a.txt", a=lines) == (0, "999 g flour\n1 kg oats\n1 tbsp salt\n2 tsp zest\n", "")


@pytest.mark.requirement("units", kind="boundary")
def test_other_units_stay_apart(recipes):
    """Cups belong to nothing; lines of one thing are sorted by the unit that is shown."""
    lines = recipe("2000 g oats", "1 cup oats", "2 oats", "1 tsp oats")
    assert recipes("shop a.txt", a=lines) == (0, "2 oats\n1 cup oats\n2 kg oats\n1 tsp oats\n", "")


@pytest.mark.requirement("units", kind="boundary")
def test_show_keeps_units(recipes):
    """A recipe is shown in the units that it has."""
    assert recipes("show a.txt", a=recipe("1500 g flour"))[1].endswith("\n1500 g flour\n")
