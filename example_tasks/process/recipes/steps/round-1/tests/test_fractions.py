"""Amounts are fractions: read, calculated with and shown."""

import pytest
from cookbook import BREAD, CAKE, recipe


@pytest.mark.requirement("fractions", kind="core")
def test_fractions_and_mixed_numbers(recipes):
    """A recipe with a fraction and a mixed number is shown as it is."""
    assert recipes("show cake.txt", cake=CAKE) == (0, CAKE, "")


@pytest.mark.requirement("fractions", kind="error")
@pytest.mark.parametrize("line", ["1/0 cup sugar", "1e3 g sugar"])
def test_no_amount(recipes, line):
    """What only looks like an amount is refused with its line."""
    message = f"error: cake.txt:4: not an ingredient: {line}\n"
    assert recipes("show cake.txt", cake=recipe(line)) == (1, "", message)


@pytest.mark.requirement("exact", kind="core")
def test_scaled_exactly(recipes):
    """Thirds stay thirds."""
    status, shown, _ = recipes("show cake.txt --for 5", cake=recipe("1/3 cup sugar", "0.1 tbsp salt"))
    assert (status, shown.splitlines()[3:]) == (0, ["1 2/3 cup sugar", "1/2 tbsp salt"])


@pytest.mark.requirement("exact", kind="boundary")
def test_added_up_exactly(recipes):
    """Three thirds are a whole."""
    assert recipes("shop a.txt a.txt a.txt", a=recipe("1/3 cup sugar")) == (0, "1 cup sugar\n", "")


@pytest.mark.requirement("shown", kind="core", retired="metric")
def test_decimals_are_shown_as_fractions(recipes):
    """What the recipe gives as a decimal is a fraction, too."""
    _, shown, _ = recipes("show bread.txt --for 3", bread=BREAD)
    assert shown.splitlines()[3:] == ["3/8 kg flour", "3/4 l water", "3 tsp salt"]


@pytest.mark.requirement("shown", kind="boundary")
def test_lowest_terms(recipes):
    """Fractions are reduced, and whole numbers are no fractions."""
    lines = recipe("6/8 cup oats", "4/2 cup milk", "10/4 tsp salt")
    assert recipes("show a.txt", a=lines)[1].splitlines()[3:] == ["3/4 cup oats", "2 cup milk", "2 1/2 tsp salt"]


@pytest.mark.requirement("own-tests", kind="integration")
def test_own_tests_pass(workspace):
    """The project's own tests pass, and there are some."""
    done = workspace.run("python3 -m unittest discover -s tests -t .")
    assert done.exit_code == 0, done.stderr
    assert "Ran 0 tests" not in done.stderr
