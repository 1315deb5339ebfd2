"""Metric amounts are decimals, and nobody buys parts of pieces."""

import pytest
from cookbook import BREAD, recipe


@pytest.mark.requirement("metric", kind="core")
def test_shown_as_decimals(recipes):
    """Metric amounts are decimals when a recipe is shown, and others are fractions."""
    _, shown, _ = recipes("show bread.txt --for 3", bread=BREAD)
    assert shown.splitlines()[3:] == ["0.38 kg flour", "0.75 l water", "3 tsp salt"]


@pytest.mark.requirement("metric", kind="core")
def test_bought_as_decimals(recipes):
    """So it is with shopping lists."""
    other = recipe("950 g flour", "1 tbsp salt")
    answer = recipes("shop bread.txt other.txt", bread=BREAD, other=other)
    assert answer == (0, "1.2 kg flour\n1 2/3 tbsp salt\n500 ml water\n", "")


@pytest.mark.requirement("metric", kind="boundary")
def test_two_places(recipes):
    """Halves go up, nothing becomes nothing, and zeros at the end are left out."""
    lines = recipe("1/8 kg flour", "1/900 l rum", "3/2 g salt", "100 ml tea")
    shown = ["0.13 kg flour", "0.01 l rum", "1.5 g salt", "100 ml tea"]
    assert recipes("show a.txt", a=lines)[1].splitlines()[3:] == shown


@pytest.mark.requirement("metric", kind="boundary")
def test_exact_until_shown(recipes):
    """Eight eighths of a gram are a gram: what is shown is rounded, and not what is added up."""
    assert recipes("shop " + "a.txt " * 8, a=recipe("1/8 g saffron")) == (0, "1 g saffron\n", "")


@pytest.mark.requirement("pieces", kind="core")
def test_pieces_are_rounded_up(recipes):
    """Pieces are rounded up when everything has been added up, in shopping lists only."""
    lines = recipe("3/4 eggs", "1/4 cup milk")
    assert recipes("shop a.txt a.txt", a=lines) == (0, "2 eggs\n1/2 cup milk\n", "")
    assert recipes("show a.txt", a=lines)[1].endswith("\n3/4 eggs\n1/4 cup milk\n")
