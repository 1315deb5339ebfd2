"""Single cells."""

import pytest
from answers import USAGE, complains, prints
from files import version_1

PRICES = """\
bad = gone
total [#,##0.00] = net * packs
net = 1250.5
packs = 2
never = f(1)
def f(x) = f(x)
"""


@pytest.mark.requirement("cell", kind="core")
def test_a_cell(formula):
    """Only the value of the cell is printed, in its format, and only what it needs is computed."""
    assert formula("sheet", "--cell", "total", "prices.sheet", prices_sheet=PRICES) == prints("2,501.00")
    others = {
        "sheet --cell net prices.sheet": prints("1250.5"),
        "sheet --cell bad prices.sheet": complains(3, "bad: unknown name 'gone'"),
    }
    assert formula.answers(others) == others


@pytest.mark.requirement("cell", kind="core")
def test_a_cell_of_a_saved_sheet(formula, built):
    """A saved sheet has the option as well."""
    built("--sheet", "prices.sheet", prices_sheet=PRICES)
    value = {"run --cell total made.f packs=-1": prints("-1,250.50")}
    assert formula.answers(value) == value


@pytest.mark.requirement("cell", kind="boundary")
def test_a_cell_of_the_command_line(formula):
    """A number of the command line takes the cell's place, in its format."""
    values = {
        "sheet --cell total prices.sheet total=1000": prints("1,000.00"),
        "sheet --cell bad prices.sheet gone=3": prints("3"),
    }
    assert formula.answers(values, prices_sheet=PRICES) == values


@pytest.mark.requirement("cell-steps", kind="boundary")
def test_steps_of_a_cell(formula):
    """Only the steps of what the cell needs count, and the options come in any order."""
    # total: LOAD LOAD MUL RET; net: PUSH RET; packs: PUSH RET.
    limited = {
        "sheet --cell total --steps 8 a.sheet": prints("2,501.00"),
        "sheet --steps 7 --cell total a.sheet": complains(5, "step limit 7"),
        "sheet --cell never a.sheet": complains(5, "step limit 100000"),
    }
    assert formula.answers(limited, a_sheet=PRICES) == limited


@pytest.mark.requirement("cell", kind="error")
def test_no_such_cell(formula):
    """A definition, a name of the command line and a formula are no cells."""
    content = version_1("", "x", "LOAD 0; RET")
    refused = {
        "sheet --cell f a.sheet": complains(3, "no cell 'f'"),
        "sheet --cell gone a.sheet gone=1": complains(3, "no cell 'gone'"),
        "run --cell x old.f x=1": complains(3, "no cell 'x'"),
    }
    assert formula.answers(refused, a_sheet=PRICES, old_f=content) == refused


@pytest.mark.requirement("cell", kind="error")
def test_bad_options(formula):
    """What is no NAME is a wrong command line, and so is an option without what it is for."""
    words = ["--cell 2x a.sheet", "--cell a=1 a.sheet", "--cell total", "a.sheet --cell total", "--cell"]
    wrong = dict.fromkeys((f"sheet {each}" for each in words), USAGE)
    assert formula.answers(wrong, a_sheet=PRICES) == wrong


@pytest.mark.requirement("cell", kind="boundary")
def test_an_error_value_of_a_cell(formula):
    """The value may be an error value."""
    value = {"sheet --cell b a.sheet": prints("#DIV0 1:7")}
    assert formula.answers(value, a_sheet="a = 1 / 0\nb [0.0] = a\n") == value
